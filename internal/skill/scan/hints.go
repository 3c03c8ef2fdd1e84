package scan

import (
	"regexp/syntax"
	"slices"
)

// hints are texts of which every match of a pattern has one; none when the
// pattern has no such texts. A whole file is looked through for them, which is
// a hundred times faster than for the pattern, and the pattern is matched
// around them alone.
func hints(pattern string) []string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil // regexp.MustCompile says so
	}
	found := required(parsed)
	slices.Sort(found)
	return slices.Compact(found)
}

// maxHints bounds the texts of one pattern.
const maxHints = 128

// required is the best set of texts of which a match has one.
func required(re *syntax.Regexp) []string {
	if all, ok := exact(re); ok && shortest(all) > 0 {
		return all
	}
	switch re.Op {
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			one := required(sub)
			if len(one) == 0 {
				return nil
			}
			all = append(all, one...)
		}
		if len(all) <= maxHints {
			return all
		}
	case syntax.OpConcat:
		return best(re.Sub)
	}
	return nil
}

// best is the set with the longest texts among the parts of a sequence,
// neighbours with known texts joined.
func best(parts []*syntax.Regexp) []string {
	var found []string
	consider := func(set []string) {
		if shortest(set) > shortest(found) {
			found = set
		}
	}
	joined := []string{""}
	for _, part := range parts {
		set, ok := exact(part)
		if ok && len(set)*len(joined) <= maxHints {
			joined = cross(joined, set)
			consider(joined)
			continue
		}
		joined = []string{""}
		if ok {
			joined = set
			consider(set)
			continue
		}
		consider(required(part))
	}
	return found
}

// exact are all the texts that an expression matches, if they are few.
func exact(re *syntax.Regexp) ([]string, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}, true
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return []string{""}, true
	case syntax.OpCapture:
		return exact(re.Sub[0])
	case syntax.OpQuest:
		set, ok := exact(re.Sub[0])
		return append([]string{""}, set...), ok
	case syntax.OpCharClass:
		return class(re.Rune)
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			set, ok := exact(sub)
			if all = append(all, set...); !ok || len(all) > maxHints {
				return nil, false
			}
		}
		return all, true
	case syntax.OpConcat:
		all := []string{""}
		for _, sub := range re.Sub {
			set, ok := exact(sub)
			if !ok || len(all)*len(set) > maxHints {
				return nil, false
			}
			all = cross(all, set)
		}
		return all, true
	}
	return nil, false
}

// class are the characters of a small class, given as pairs of bounds.
func class(bounds []rune) ([]string, bool) {
	var all []string
	for i := 0; i+1 < len(bounds); i += 2 {
		for r := bounds[i]; r <= bounds[i+1]; r++ {
			if all = append(all, string(r)); len(all) > 8 {
				return nil, false
			}
		}
	}
	return all, true
}

func cross(a, b []string) []string {
	all := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			all = append(all, x+y)
		}
	}
	return all
}

func shortest(set []string) int {
	if len(set) == 0 {
		return 0
	}
	return len(slices.MinFunc(set, func(a, b string) int { return len(a) - len(b) }))
}
