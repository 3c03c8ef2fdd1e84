package page

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// unread are elements whose content is not text for a reader.
var unread = []string{"script", "style", "template", "iframe", "frame", "object", "embed", "applet",
	"canvas", "audio", "video", "map", "param", "source", "track", "datalist", "noembed", "noframes"}

// minNoscript is the text, in characters, from which a noscript element holds
// a page's content and not a request to switch scripts on.
const minNoscript = 500

// clean removes what a reader does not see and makes links absolute.
func (d *Document) clean() {
	sheets := styleSheets(d.root)
	drop := elements(d.root, func(n *html.Node) bool {
		return slices.Contains(unread, n.Data) || n.Data == "noscript" && textLength(n) < minNoscript
	})
	for _, n := range drop {
		detach(n)
	}
	d.dropComments()
	d.HiddenChars = dropHidden(d.root, sheets)
	for n := range descendants(d.root) {
		switch n.Type {
		case html.TextNode:
			n.Data = visible(n.Data)
		case html.ElementNode:
			d.elements++
			d.resolve(n)
		}
	}
}

func (d *Document) dropComments() {
	var comments []*html.Node
	for n := range descendants(d.root) {
		if n.Type == html.CommentNode {
			comments = append(comments, n)
		}
	}
	for _, n := range comments {
		detach(n)
	}
}

// resolve makes the addresses of an element absolute. One that no reader can
// follow (javascript:, data:) goes.
func (d *Document) resolve(n *html.Node) {
	for i := range n.Attr {
		a := &n.Attr[i]
		switch a.Key {
		case "href", "src", "cite", "action", "poster":
			a.Val = d.absolute(a.Val)
		case "alt", "title", "placeholder", "aria-label", "label":
			a.Val = visible(a.Val)
		}
	}
}

func (d *Document) absolute(ref string) string {
	ref = strings.TrimSpace(ref)
	if ref == "" || strings.HasPrefix(ref, "#") {
		return ref
	}
	u, err := d.base.Parse(ref)
	if err != nil || !slices.Contains([]string{"http", "https", "mailto", "tel", "ftp"}, u.Scheme) {
		return ""
	}
	return u.String()
}

// Absolute resolves a reference as the document would; empty when it leads
// nowhere a reader could go.
func Absolute(base *url.URL, ref string) string { return (&Document{base: base}).absolute(ref) }

// visible removes characters that no reader sees but a model reads: the tag
// block, which can spell a whole message beside the text (outside the flags of
// England, Scotland and Wales, which use it), and control characters.
func visible(s string) string {
	if !strings.ContainsFunc(s, invisible) {
		return s
	}
	var b strings.Builder
	flag := false
	for _, r := range s {
		switch {
		case r == '\U0001F3F4':
			flag = true
		case !isTag(r):
			flag = false
		}
		if !invisible(r) || isTag(r) && flag {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isTag(r rune) bool { return 0xE0000 <= r && r <= 0xE007F }

// invisible are tags, the variation selectors beyond those that fonts use,
// bidirectional overrides, and controls other than white space.
func invisible(r rune) bool {
	switch {
	case isTag(r), 0xE0100 <= r && r <= 0xE01EF, r == 0x202D, r == 0x202E:
		return true
	case r == '\t', r == '\n', r == '\r', r == '\f':
		return false
	}
	return r < ' ' || 0x7f <= r && r < 0xa0
}

// runes counts characters.
func runes(s string) int { return utf8.RuneCountInString(s) }
