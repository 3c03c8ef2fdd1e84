package page

import (
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// attr is an attribute's value, empty when the node or the attribute is missing.
func attr(n *html.Node, name string) string {
	if n == nil {
		return ""
	}
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

// first is the first element with one of the tags, in document order.
func first(n *html.Node, tags ...string) *html.Node {
	return find(n, func(n *html.Node) bool { return slices.Contains(tags, n.Data) })
}

// descendants are the nodes below root, in document order. It walks by
// pointers: html.Node.Descendants nests an iterator in each level, which makes
// every step of a deep document as costly as it is deep.
func descendants(root *html.Node) iter.Seq[*html.Node] {
	return func(yield func(*html.Node) bool) {
		for n := root.FirstChild; n != nil; n = following(n, root) {
			if !yield(n) {
				return
			}
		}
	}
}

// following is the node after n in document order, below root.
func following(n, root *html.Node) *html.Node {
	if n.FirstChild != nil {
		return n.FirstChild
	}
	for ; n != nil && n != root; n = n.Parent {
		if n.NextSibling != nil {
			return n.NextSibling
		}
	}
	return nil
}

// find is the first element, in document order, that satisfies want.
func find(n *html.Node, want func(*html.Node) bool) *html.Node {
	if n == nil {
		return nil
	}
	for c := range descendants(n) {
		if c.Type == html.ElementNode && want(c) {
			return c
		}
	}
	return nil
}

// elements are the elements below n that satisfy want, in document order.
func elements(n *html.Node, want func(*html.Node) bool) []*html.Node {
	var found []*html.Node
	for c := range descendants(n) {
		if c.Type == html.ElementNode && want(c) {
			found = append(found, c)
		}
	}
	return found
}

// detach removes a node from its tree, if it is in one.
func detach(n *html.Node) {
	if n.Parent != nil {
		n.Parent.RemoveChild(n)
	}
}

// within reports whether n is below, or is, an element that satisfies want.
func within(n *html.Node, want func(*html.Node) bool) bool {
	for ; n != nil; n = n.Parent {
		if n.Type == html.ElementNode && want(n) {
			return true
		}
	}
	return false
}

// textLength counts the characters of the text below n, runs of white space as
// one.
func textLength(n *html.Node) int {
	length, inWord := 0, false
	for c := range descendants(n) {
		if c.Type != html.TextNode {
			continue
		}
		for field := range strings.FieldsSeq(c.Data) {
			length += utf8.RuneCountInString(field)
			if inWord {
				length++
			}
			inWord = true
		}
	}
	return length
}

// linkLength counts the characters of text inside links below n.
func linkLength(n *html.Node) int {
	length := 0
	for _, a := range elements(n, func(n *html.Node) bool { return n.Data == "a" }) {
		length += textLength(a)
	}
	return length
}

// clone copies a tree.
func clone(n *html.Node) *html.Node {
	c := &html.Node{Type: n.Type, DataAtom: n.DataAtom, Data: n.Data, Namespace: n.Namespace, Attr: slices.Clone(n.Attr)}
	for child := range n.ChildNodes() {
		c.AppendChild(clone(child))
	}
	return c
}
