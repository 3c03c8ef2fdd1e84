package page

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// Meta is what a document says of itself. All of it is the page's own word.
type Meta struct {
	Title       string
	Description string
	Author      string
	SiteName    string
	Language    string
	Published   time.Time // zero when the page does not say
}

// maxMeta bounds each text of Meta, in characters.
const maxMeta = 300

func readMeta(root *html.Node) Meta {
	named := metaElements(root)
	ld := linkedData(root)
	m := Meta{
		Title:       cmp.Or(named["og:title"], line(textOf(first(root, "title"))), named["twitter:title"], line(textOf(first(root, "h1")))),
		Description: cmp.Or(named["description"], named["og:description"]),
		Author:      cmp.Or(named["author"], named["article:author"], ld.author()),
		SiteName:    named["og:site_name"],
		Language:    line(attr(first(root, "html"), "lang")),
	}
	if strings.HasPrefix(m.Author, "http") { // a profile's address, not a name
		m.Author = ld.author()
	}
	for _, text := range []string{named["article:published_time"], ld.DatePublished, named["date"], named["dc.date"],
		named["dc.date.issued"], named["datepublished"], attr(find(root, publishedTime), "datetime")} {
		if m.Published = ParseTime(text); !m.Published.IsZero() {
			break
		}
	}
	return m
}

// publishedTime finds a time element that says it is the publication's.
func publishedTime(n *html.Node) bool {
	return n.Data == "time" && hasAttr(n, "datetime") &&
		(attr(n, "itemprop") == "datePublished" || hasAttr(n, "pubdate") || strings.Contains(attr(n, "class"), "publish"))
}

func metaElements(root *html.Node) map[string]string {
	named := map[string]string{}
	for _, n := range elements(root, func(n *html.Node) bool { return n.Data == "meta" }) {
		name := strings.ToLower(cmp.Or(attr(n, "property"), attr(n, "name"), attr(n, "itemprop")))
		if content := line(attr(n, "content")); name != "" && named[name] == "" {
			named[name] = content
		}
	}
	return named
}

// article is the part of schema.org's linked data that is read.
type article struct {
	DatePublished string          `json:"datePublished"`
	Author        json.RawMessage `json:"author"`
	Graph         []article       `json:"@graph"`
}

// linkedData is the first JSON-LD object with a date of publication.
func linkedData(root *html.Node) article {
	for _, n := range elements(root, func(n *html.Node) bool {
		return n.Data == "script" && strings.EqualFold(attr(n, "type"), "application/ld+json")
	}) {
		if n.FirstChild == nil {
			continue
		}
		var one article
		var many []article
		text := []byte(n.FirstChild.Data)
		if json.Unmarshal(text, &one) == nil {
			many = append([]article{one}, one.Graph...)
		} else if json.Unmarshal(text, &many) != nil {
			continue
		}
		for _, a := range many {
			if a.DatePublished != "" {
				return a
			}
		}
	}
	return article{}
}

func (a article) author() string {
	var one struct{ Name string }
	if json.Unmarshal(a.Author, &one) == nil {
		return line(one.Name)
	}
	var many []struct{ Name string }
	if json.Unmarshal(a.Author, &many) == nil && len(many) > 0 {
		return line(many[0].Name)
	}
	return ""
}

// ParseTime reads the ways in which pages and search engines write a time;
// zero when it is none of them. A time without a zone is taken as UTC.
func ParseTime(text string) time.Time {
	text = strings.TrimSpace(text)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05-0700", "2006-01-02T15:04:05", "2006-01-02T15:04-07:00", "2006-01-02T15:04",
		"2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05", "2006-01-02", "2006/01/02", time.RFC1123Z, time.RFC1123,
		"Mon, 2 Jan 2006 15:04:05 MST", "Jan 2, 2006", "January 2, 2006", "2 Jan 2006", "2 January 2006"} {
		if t, err := time.Parse(layout, text); err == nil && t.Year() > 1970 && t.Year() < 2200 {
			return t.UTC()
		}
	}
	return time.Time{}
}

// line brings a page's text to one line of bounded length without control
// characters.
func line(s string) string {
	s = strings.Join(strings.Fields(visible(s)), " ")
	if runes(s) <= maxMeta {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:maxMeta])) + "…"
}

func textOf(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	for c := range descendants(n) {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}
