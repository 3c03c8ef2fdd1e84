package page

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// blocks are the elements that begin and end a line.
var blocks = []string{"address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt",
	"fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "html", "legend",
	"li", "main", "menu", "nav", "ol", "optgroup", "option", "p", "pre", "search", "section", "summary", "table", "tbody", "tfoot", "thead", "title", "tr", "ul"}

// paragraphs are the blocks with an empty line around them.
var paragraphs = []string{"article", "blockquote", "dl", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "main", "ol", "p", "pre", "section", "table", "ul"}

// Text writes a tree as plain text: blocks on lines of their own, cells
// separated by tabs, white space as a browser shows it.
func Text(n *html.Node) string {
	var t textWriter
	t.node(n, false)
	return strings.TrimSpace(t.b.String())
}

type textWriter struct {
	b        strings.Builder
	newlines int  // wanted before the next text
	space    bool // wanted before the next text
}

func (t *textWriter) node(n *html.Node, preformatted bool) {
	switch n.Type {
	case html.TextNode:
		t.text(n.Data, preformatted)
		return
	case html.ElementNode, html.DocumentNode:
	default:
		return
	}
	switch n.Data {
	case "br":
		t.breakLine(1)
		return
	case "td", "th":
		if previousCell(n) {
			t.flush()
			t.b.WriteByte('\t')
			t.space = false
		}
	case "pre", "textarea":
		preformatted = true
	}
	block := n.Type == html.ElementNode && slices.Contains(blocks, n.Data)
	height := 1
	if slices.Contains(paragraphs, n.Data) {
		height = 2
	}
	if block {
		t.breakLine(height)
	}
	for c := range n.ChildNodes() {
		t.node(c, preformatted)
	}
	if block {
		t.breakLine(height)
	}
}

func previousCell(n *html.Node) bool {
	for p := n.PrevSibling; p != nil; p = p.PrevSibling {
		if p.Type == html.ElementNode && (p.Data == "td" || p.Data == "th") {
			return true
		}
	}
	return false
}

func (t *textWriter) breakLine(height int) {
	t.newlines = max(t.newlines, height)
	t.space = false
}

func (t *textWriter) flush() {
	if t.newlines > 0 && t.b.Len() > 0 {
		t.b.WriteString(strings.Repeat("\n", t.newlines))
	} else if t.space && t.b.Len() > 0 {
		t.b.WriteByte(' ')
	}
	t.newlines, t.space = 0, false
}

func (t *textWriter) text(s string, preformatted bool) {
	if preformatted {
		if s != "" {
			t.flush()
			t.b.WriteString(s)
		}
		return
	}
	fields := strings.Fields(s)
	if len(fields) == 0 {
		t.space = t.space || s != ""
		return
	}
	t.space = t.space || isSpace(s[0])
	t.flush()
	t.b.WriteString(strings.Join(fields, " "))
	t.space = isSpace(s[len(s)-1])
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' || b == '\f' }

// Plain is the text of a piece of markup, such as a search engine's snippet,
// on one line.
func Plain(markup string) string {
	if !strings.ContainsAny(markup, "<&") {
		return squash(visible(markup))
	}
	root, err := html.Parse(strings.NewReader(markup))
	if err != nil {
		return squash(visible(markup))
	}
	return squash(visible(Text(root)))
}
