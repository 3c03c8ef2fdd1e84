package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// Bounds on what is read of a document's style sheets; a hostile one must not
// cost more than a page is worth.
const (
	maxSheet   = 512 << 10 // bytes
	maxRules   = 3000
	maxMatches = 20_000_000 // comparisons of an element with a rule
)

// rule is a style rule with declarations that can hide or show.
type rule struct {
	selector cascadia.Sel
	declared []declaration
	order    int
}

type declaration struct {
	property, value string
	important       bool
}

// styleSheets reads the style elements of a document.
func styleSheets(root *html.Node) []rule {
	var rules []rule
	budget := maxSheet
	for _, n := range elements(root, func(n *html.Node) bool { return n.Data == "style" && appliesToScreen(attr(n, "media")) }) {
		if n.FirstChild == nil || len(n.FirstChild.Data) > budget {
			continue
		}
		budget -= len(n.FirstChild.Data)
		rules = appendRules(rules, stripComments(n.FirstChild.Data))
	}
	return rules
}

// appliesToScreen accepts the media queries that certainly hold for a reader.
func appliesToScreen(query string) bool {
	query = strings.ToLower(strings.TrimSpace(query))
	return query == "" || query == "all" || query == "screen" || query == "only screen"
}

func stripComments(css string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(css, "/*")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, css, _ = strings.Cut(after, "*/")
	}
}

// appendRules reads rules up to the end of the text. Of the at-rules, @media
// for screens, @layer and @supports are entered, all others passed over.
func appendRules(rules []rule, css string) []rule {
	for len(rules) < maxRules {
		prelude, rest, found := strings.Cut(css, "{")
		if !found {
			return rules
		}
		if i := strings.LastIndexByte(prelude, ';'); i >= 0 { // @import, @charset
			prelude = prelude[i+1:]
		}
		block, after := cutBlock(rest)
		css = after
		prelude = strings.TrimSpace(prelude)
		if at, condition, _ := strings.Cut(prelude, " "); strings.HasPrefix(at, "@") {
			if at == "@layer" || at == "@supports" || at == "@media" && appliesToScreen(condition) {
				rules = appendRules(rules, block)
			}
			continue
		}
		rules = appendRule(rules, prelude, block)
	}
	return rules
}

// cutBlock splits after the brace that closes the block.
func cutBlock(css string) (block, after string) {
	depth := 1
	for i := range len(css) {
		switch css[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return css[:i], css[i+1:]
			}
		}
	}
	return css, ""
}

func appendRule(rules []rule, prelude, block string) []rule {
	declared := declarations(block)
	if len(declared) == 0 || strings.Contains(prelude, ":") { // :hover, ::before say nothing about the element at rest
		return rules
	}
	group, err := cascadia.ParseGroup(prelude)
	if err != nil {
		return rules
	}
	for _, selector := range group {
		rules = append(rules, rule{selector, declared, len(rules)})
	}
	return rules
}

// declarations are those of the styled properties.
func declarations(block string) []declaration {
	var list []declaration
	for part := range strings.SplitSeq(block, ";") {
		property, value, found := strings.Cut(part, ":")
		property = strings.ToLower(strings.TrimSpace(property))
		if !found || !slices.Contains(styled, property) {
			continue
		}
		value = strings.ToLower(strings.TrimSpace(value))
		value, important := strings.CutSuffix(value, "!important")
		list = append(list, declaration{property, strings.TrimSpace(value), important})
	}
	return list
}

// cascade gives the style of an element by the rules and its own attribute
// (CSS Cascade §6: importance, then the attribute, specificity, order).
// Inheritance is left out: what an element hides, it hides with its children.
func cascade(root *html.Node, rules []rule) func(*html.Node) style {
	matched := map[*html.Node][]rule{}
	all := elements(root, func(*html.Node) bool { return true })
	budget := maxMatches
	for _, r := range rules {
		if !(style{}).with(r.declared).hides() {
			continue
		}
		if budget -= len(all); budget < 0 {
			break
		}
		for _, n := range all {
			if r.selector.Match(n) {
				matched[n] = append(matched[n], r)
			}
		}
	}
	for n, hiding := range matched { // only these can be hidden by a sheet; what shows them again counts too
		if budget -= len(rules); budget < 0 { // in doubt it stays hidden
			break
		}
		matched[n] = hiding[:0:0]
		for _, r := range rules {
			if r.selector.Match(n) {
				matched[n] = append(matched[n], r)
			}
		}
		slices.SortStableFunc(matched[n], func(a, b rule) int {
			switch sa, sb := a.selector.Specificity(), b.selector.Specificity(); {
			case sa.Less(sb):
				return -1
			case sb.Less(sa):
				return 1
			}
			return cmp.Compare(a.order, b.order)
		})
	}
	return func(n *html.Node) style {
		own := declarations(attr(n, "style"))
		if len(own) == 0 && len(matched[n]) == 0 {
			return nil
		}
		s := style{}
		for _, important := range []bool{false, true} {
			for _, r := range matched[n] {
				s.apply(r.declared, important)
			}
			s.apply(own, important)
		}
		return s
	}
}

func (s style) apply(list []declaration, important bool) {
	for _, d := range list {
		if d.important == important {
			s[d.property] = d.value
		}
	}
}

func (s style) with(list []declaration) style {
	s.apply(list, false)
	s.apply(list, true)
	return s
}
