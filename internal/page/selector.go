package page

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// Selector is a parsed CSS selector. Beyond CSS 3 it takes :has(),
// :contains("text"), :containsOwn("text"), :matches(regexp), and at its end
// ::attr(name) or ::text, which ask for an attribute's value or for the
// element's own text.
type Selector struct {
	group     cascadia.SelectorGroup
	Attribute string // of ::attr(name)
	OwnText   bool   // of ::text
}

var pseudoElement = regexp.MustCompile(`\s*::\s*(?:attr\(\s*["']?([a-zA-Z_:][\w:.-]*)["']?\s*\)|(text))\s*$`)

// ParseSelector reads a selector. The error says what is wrong in words for
// the caller.
func ParseSelector(text string) (Selector, error) {
	var s Selector
	text = strings.TrimSpace(text)
	if m := pseudoElement.FindStringSubmatch(text); m != nil {
		s.Attribute, s.OwnText = strings.ToLower(m[1]), m[2] != ""
		if text = strings.TrimSpace(text[:len(text)-len(m[0])]); text == "" {
			text = "*"
		}
	}
	switch {
	case text == "":
		return s, fmt.Errorf("it is empty; write a CSS selector such as article p or table.prices")
	case strings.HasPrefix(text, "/"), strings.HasPrefix(text, "("):
		return s, fmt.Errorf("it looks like XPath; write a CSS selector, such as div.item > a for //div[@class='item']/a")
	}
	group, err := cascadia.ParseGroup(text)
	if err != nil {
		return s, fmt.Errorf("%s", selectorProblem(text, err))
	}
	s.group = group
	return s, nil
}

// selectorProblem words the parser's complaint.
func selectorProblem(text string, err error) string {
	switch {
	case strings.Contains(text, "::"):
		return "of the pseudo-elements only ::text and ::attr(name) are understood, at the end"
	case strings.Count(text, "[") != strings.Count(text, "]"):
		return "a bracket [ is not closed"
	case strings.Count(text, "(") != strings.Count(text, ")"):
		return "a parenthesis ( is not closed"
	case strings.Contains(err.Error(), "pseudo"):
		return "it has a pseudo-class that is not understood; :nth-child(), :not(), :has(), :contains(\"text\") and the other structural ones are"
	}
	return "it is not a CSS selector"
}

// Find gives the elements that a selector matches, in document order. A
// selector may cost the square of a document's size; it is given up when the
// context ends.
func (d *Document) Find(ctx context.Context, s Selector) []*html.Node {
	var found []*html.Node
	for n := range descendants(d.root) {
		if n.Type != html.ElementNode {
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		if s.group.Match(n) {
			found = append(found, n)
		}
	}
	return found
}

// Element is a part of a document as data. Text is the element's own; the text
// of its children is with them, so that nothing is said twice.
type Element struct {
	Tag        string            `json:"tag"`
	Attributes map[string]string `json:"attributes,omitzero"`
	Text       string            `json:"text,omitzero"`
	Children   []Element         `json:"children,omitzero"`
	// Cut says that children were left out for depth or number.
	Cut bool `json:"cut,omitzero"`
}

const maxDepth = 12 // of an Element

// ElementOf writes an element as data, with at most budget elements in all.
func ElementOf(n *html.Node, budget *int) Element { return elementOf(n, budget, maxDepth) }

func elementOf(n *html.Node, budget *int, depth int) Element {
	*budget--
	e := Element{Tag: n.Data, Attributes: Attributes(n), Text: OwnText(n)}
	for c := range n.ChildNodes() {
		if c.Type != html.ElementNode {
			continue
		}
		if *budget <= 0 || depth == 0 {
			e.Cut = true
			break
		}
		e.Children = append(e.Children, elementOf(c, budget, depth-1))
	}
	return e
}

// Attributes are an element's attributes that mean something to a reader; nil
// when there are none.
func Attributes(n *html.Node) map[string]string {
	var m map[string]string
	for _, a := range n.Attr {
		if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		m[a.Key] = Visible(a.Val)
	}
	return m
}

// Attribute is one attribute of an element, and whether it has it.
func Attribute(n *html.Node, name string) (string, bool) {
	return Visible(attr(n, name)), hasAttr(n, name)
}

// OwnText is the text directly inside an element, not inside its children.
func OwnText(n *html.Node) string {
	var b strings.Builder
	for c := range n.ChildNodes() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data + " ")
		}
	}
	return squash(b.String())
}

// InnerHTML is what is inside an element, as cleaned.
func InnerHTML(n *html.Node) string {
	var b strings.Builder
	for c := range n.ChildNodes() {
		_ = html.Render(&b, c) // a strings.Builder does not fail
	}
	return strings.TrimSpace(b.String())
}

// Visible removes characters from a text that no reader sees but a model
// reads.
func Visible(s string) string { return visible(s) }
