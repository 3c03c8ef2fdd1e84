package terms

import (
	"strings"
	"unicode"
)

// possessive reports whether the word is "somebody's".
func (l lexeme) possessive() bool {
	return len(l.parts) == 2 && strings.EqualFold(l.text[l.parts[0].to:], "'s")
}

// simple reports whether the word is its one part and nothing else.
func (l lexeme) simple() bool {
	return l.possessive() || len(l.parts) == 1 && l.parts[0].to == len(l.text)
}

// identifier reports whether the whole is what counts, and not its parts: a
// word with a suffix or a digit, a path, an address, a qualified name; not
// "well-known", "don't" or "R&D".
func (l lexeme) identifier() bool {
	return l.parts[len(l.parts)-1].to != len(l.text) || strings.ContainsAny(l.text, `_./\:@#+~`) ||
		strings.ContainsFunc(l.text, unicode.IsDigit)
}

// words are the parts, as written, and the words within them: "getUserName"
// also has get, User and Name.
func (l lexeme) words() []string {
	if l.possessive() {
		return []string{l.part(0)}
	}
	all := make([]string, 0, len(l.parts))
	for i := range l.parts {
		part := l.part(i)
		all = append(all, part)
		if humps := camel(part); len(humps) > 1 {
			all = append(all, humps...)
		}
	}
	return all
}

func (l lexeme) part(i int) string { return l.text[l.parts[i].from:l.parts[i].to] }

// maxRun is how many neighbouring parts of a word are one term.
const maxRun = 4

// chain is what to ask for to find an identifier: the whole, or, of one with
// more parts than a run has, all its runs of the full length.
func (l lexeme) chain() []string {
	if len(l.parts) <= maxRun {
		return []string{foldWord(l.text)}
	}
	var all []string
	for from := range len(l.parts) - maxRun + 1 {
		all = append(all, foldWord(l.text[l.parts[from].from:l.parts[from+maxRun-1].to]))
	}
	return all
}

// runs are the whole word and every run of two to four of its parts, joiners
// included: so "local/bin" finds /usr/local/bin and v1.2 finds v1.2.3, and
// case_1 does not find case-1.
func (l lexeme) runs() []string {
	if l.simple() {
		return nil
	}
	all := []string{foldWord(l.text)}
	for from := range l.parts {
		for to := from + 1; to < min(from+maxRun, len(l.parts)); to++ {
			run := foldWord(l.text[l.parts[from].from:l.parts[to].to])
			if run != all[0] {
				all = append(all, run)
			}
		}
	}
	return all
}

// camel splits a word where a capital follows a small letter.
func camel(part string) []string {
	var humps []string
	from := 0
	before := ' '
	for i, r := range part {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			humps = append(humps, part[from:i])
			from = i
		}
		before = r
	}
	if from == 0 {
		return nil
	}
	return append(humps, part[from:])
}
