// Package page makes text for a model out of what a web server sent.
//
// Everything here is a pure function of bytes: no network, no clock, no
// database. A body is decoded (charset.go, guess.go), an HTML document is
// parsed and cleaned of what a reader does not see (clean.go, hidden.go,
// style.go), its main content is found (main.go) and written as markdown or
// plain text; PDF text is read (package pdftext); a document is queried by CSS selector
// or JSON Pointer (selector.go). What leaves for a model goes through Fence,
// which marks it as untrusted and keeps a page from forging the mark.
//
// The main content is found by go-readability, after boilerplate that it is
// known to keep has been cut, and with a choice of our own between its answer
// and the element that the page itself marks as its content. go-trafilatura
// was measured beside it (2026-12, eval_test.go and its own 983 pages): alone
// it is better, with our cuts it is not, and it costs every cold start 435 ms
// and 88 MB of package initialisation, ours one millisecond.
//
// The package never fetches what a document refers to (style sheets, frames,
// images) and never runs its scripts, so it sees what a reader without both
// would see.
package page

import (
	"errors"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// maxElements is the largest document whose main content is looked for; beyond
// it the whole page is given. The search is not linear in hostile documents.
const maxElements = 60_000

// ErrTooDeep is a document nested deeper than the parser accepts (512).
var ErrTooDeep = errors.New("document is nested too deeply")

// Document is a cleaned HTML document.
type Document struct {
	Meta Meta
	// HiddenChars is how many characters were left out because a reader
	// would not see them.
	HiddenChars int

	root     *html.Node
	base     *url.URL
	elements int
}

// Parse reads decoded HTML and cleans it. base is where it came from; links
// become absolute by it and by the document's own base element.
func Parse(text string, base *url.URL) (*Document, error) {
	// As a reader without scripts: noscript holds elements, not text.
	root, err := html.ParseWithOptions(strings.NewReader(text), html.ParseOptionEnableScripting(false))
	if err != nil {
		return nil, ErrTooDeep // the parser has no other complaint about a string
	}
	d := &Document{root: root, base: base, Meta: readMeta(root)}
	if href := attr(first(root, "base"), "href"); href != "" {
		if u, err := base.Parse(href); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			d.base = u
		}
	}
	d.clean()
	return d, nil
}

// Body is the whole cleaned document.
func (d *Document) Body() *html.Node {
	if body := first(d.root, "body"); body != nil {
		return body
	}
	return d.root
}
