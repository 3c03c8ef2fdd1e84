package page

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// extent is how much there is below an element.
type extent struct {
	text     int // characters, without white space between elements
	linkText int // those of them inside links
	links    int
	headline bool // there is an h1
}

// extents are those of all elements of a tree, measured in one pass: asking
// each element for its own would make a deep page as costly as it is deep.
type extents map[*html.Node]extent

func measure(root *html.Node) extents {
	m := extents{}
	m.visit(root, false)
	return m
}

func (m extents) visit(n *html.Node, inLink bool) extent {
	var e extent
	if n.Type == html.TextNode {
		e.text = trimmedLength(n.Data)
		if inLink {
			e.linkText = e.text
		}
		return e
	}
	link := n.Data == "a" && n.Type == html.ElementNode
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		below := m.visit(c, inLink || link)
		e.text, e.linkText, e.links = e.text+below.text, e.linkText+below.linkText, e.links+below.links
		e.headline = e.headline || below.headline
	}
	if n.Type == html.ElementNode {
		m[n] = e
		if link {
			e.links++
		}
		e.headline = e.headline || n.Data == "h1"
	}
	return e
}

// trimmedLength counts the characters of a text, runs of white space as one.
func trimmedLength(s string) int {
	length := 0
	for field := range strings.FieldsSeq(s) {
		length += utf8.RuneCountInString(field) + 1
	}
	return max(length-1, 0)
}

// cut detaches the elements that want names, except those that hold two fifths
// of the text or more, whatever they are called.
func (m extents) cut(body *html.Node, want func(*html.Node) bool) {
	total := m[body].text
	for _, n := range elements(body, want) {
		if m[n].text*10 < total*4 && attached(n, body) {
			detach(n)
		}
	}
}

// isListElement are the elements that lists of links are made of.
func isListElement(n *html.Node) bool {
	return slices.Contains([]string{"ul", "ol", "div", "section"}, n.Data)
}
