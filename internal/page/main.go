package page

import (
	"slices"
	"strings"

	readability "codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Main is the document's main content. It is the whole body where there is no
// better answer: a page too large to judge, a page of links, an empty one.
func (d *Document) Main() *html.Node {
	body := d.Body()
	if d.elements > maxElements {
		return body
	}
	pruned, prunedBody := d.pruned(true)
	if prunedBody == nil {
		return body
	}
	if textLength(prunedBody)*4 < textLength(body) { // a page of teasers, which are its content
		pruned, prunedBody = d.pruned(false)
	}
	marked := markedContent(prunedBody)
	judged := d.judge(pruned)
	return withLead(choose(body, prunedBody, marked, judged), prunedBody)
}

// pruned is a copy of the document without what surrounds the content.
func (d *Document) pruned(strict bool) (root, body *html.Node) {
	root = clone(d.root)
	if body = first(root, "body"); body != nil {
		prune(body, strict)
	}
	return root, body
}

// judge asks go-readability; nil when it has no answer.
func (d *Document) judge(root *html.Node) *html.Node {
	p := readability.NewParser()
	p.DisableJSONLD = true
	p.KeepClasses = true
	p.CharThresholds = 200
	a, err := p.ParseDocument(clone(root), d.base)
	if err != nil {
		return nil
	}
	return a.Node
}

// markedContent is the element that the page itself marks as its content.
func markedContent(body *html.Node) *html.Node {
	for _, want := range []func(*html.Node) bool{
		func(n *html.Node) bool { return attr(n, "itemprop") == "articleBody" },
		func(n *html.Node) bool { return n.Data == "article" },
		contentName,
		func(n *html.Node) bool { return n.Data == "main" || attr(n, "role") == "main" },
	} {
		found := elements(body, want)
		if len(found) == 0 {
			continue
		}
		largest := slices.MaxFunc(found, func(a, b *html.Node) int { return textLength(a) - textLength(b) })
		total := 0
		for _, n := range found {
			total += textLength(n)
		}
		// Several of a size are a list of articles, not the article.
		if n := textLength(largest); n > 150 && n*3 > total*2 {
			return largest
		}
	}
	return nil
}

// contentNames are the classes and ids that the common systems give to the
// element around an article's text.
var contentNames = []string{"entry-content", "post-content", "article-content", "article-body", "article__body", "post-body", "entry-body",
	"story-body", "articlebody", "story-content", "post_content", "single-content", "page-content", "blog-content", "article-text",
	"mw-parser-output", "markdown-body", "theme-doc-markdown", "rst-content", "td-post-content", "field--name-body"}

func contentName(n *html.Node) bool {
	for name := range strings.FieldsSeq(attr(n, "class") + " " + attr(n, "id")) {
		if slices.Contains(contentNames, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// choose picks between the answers: the judged one, unless it has less than
// half of what the page marks as its content. Measured: always the marked
// element costs four points of precision, the shorter of both one of recall.
func choose(body, pruned, marked, judged *html.Node) *html.Node {
	length := func(n *html.Node) int {
		if n == nil {
			return 0
		}
		return textLength(n)
	}
	j, m, p := length(judged), length(marked), length(pruned)
	switch {
	case m > 0 && j*2 < m:
		return marked
	case m == 0 && j*100 < p*55 && linkLength(pruned)*10 < p: // a page of sections side by side
		return pruned
	case j > 0 && (j > 500 || j*4 > p):
		return judged
	case m > 0:
		return marked
	case p > 0: // little of a page with much: a page of many small parts
		return pruned
	}
	return body
}

// The lead is what an article says between its headline and its text: at most
// maxLead blocks of leadMin to leadMax characters.
const (
	maxLead = 4
	leadMin = 40
	leadMax = 900
)

// withLead puts the headline and the lead before the content, which usually
// begins after them: they stand in a header of their own.
func withLead(content, body *html.Node) *html.Node {
	headline := first(body, "h1")
	text := squash(textOf(content))
	if headline != nil {
		restoreHeadline(content, squash(textOf(headline)))
	}
	if headline == nil || within(content, func(n *html.Node) bool { return n == body }) || text == "" {
		return content
	}
	result := &html.Node{Type: html.ElementNode, Data: "div"}
	if title := squash(textOf(headline)); title != "" && !strings.HasPrefix(text, title) && runes(title) < maxMeta {
		result.AppendChild(clone(headline))
	}
	for _, block := range lead(headline, body, text) {
		result.AppendChild(clone(block))
	}
	if result.FirstChild == nil {
		return content
	}
	result.AppendChild(clone(content))
	return result
}

// restoreHeadline undoes go-readability's lowering of the headline to h2.
func restoreHeadline(content *html.Node, title string) {
	if h := find(content, isHeading); h != nil && h.Data == "h2" && squash(textOf(h)) == title {
		h.Data, h.DataAtom = "h1", atom.H1
	}
}

// lead collects the blocks after the headline until the content begins; none
// when the content never comes, for then the headline is not its own.
func lead(headline, body *html.Node, content string) []*html.Node {
	var found []*html.Node
	passed := false
	for n := range descendants(body) {
		passed = passed || n == headline
		if !passed || n.Type != html.ElementNode || !isLeaf(n) || within(n, func(n *html.Node) bool { return n == headline }) {
			continue
		}
		text := squash(textOf(n))
		if runes(text) < leadMin {
			continue
		}
		if strings.Contains(content, beginning(text)) {
			return found
		}
		if runes(text) <= leadMax && linkLength(n)*3 < textLength(n) {
			found = append(found, n)
		}
		if len(found) > maxLead {
			return nil
		}
	}
	return nil
}

// isLeaf finds blocks that hold text and no block.
func isLeaf(n *html.Node) bool {
	return slices.Contains(blocks, n.Data) && find(n, func(c *html.Node) bool { return slices.Contains(blocks, c.Data) }) == nil
}

func beginning(text string) string {
	r := []rune(text)
	return string(r[:min(len(r), 60)])
}

// squash brings white space to single spaces.
func squash(s string) string { return strings.Join(strings.Fields(s), " ") }
