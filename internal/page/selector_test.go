package page_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/page"
)

func find(t *testing.T, d *page.Document, selector string) []string {
	t.Helper()
	s, err := page.ParseSelector(selector)
	if err != nil {
		t.Fatalf("%s: %v", selector, err)
	}
	texts := []string{}
	for _, n := range d.Find(t.Context(), s) {
		text := page.Text(n)
		if s.Attribute != "" {
			text, _ = page.Attribute(n, s.Attribute)
		} else if s.OwnText {
			text = page.OwnText(n)
		}
		texts = append(texts, text)
	}
	return texts
}

func TestFind(t *testing.T) {
	t.Parallel()
	d := parse(t, `<head><meta property="og:image" content="/i.png"></head><div class="a item" id="x"><a href="/1">One <b>bold</b></a></div><div class="item"><a href="/2">Two</a><p>costs 5 EUR</p></div><p style="display:none">hid</p>`)
	for selector, want := range map[string][]string{
		"div.item > a":     {"One bold", "Two"},
		"#x a::attr(href)": {"https://example.org/1"},
		"a::text":          {"One", "Two"},
		`.item:has(p) a, .item:contains("bold") b`: {"bold", "Two"},
		`p:matches(\d+ EUR)`:                       {"costs 5 EUR"},
		"div:nth-of-type(2) a":                     {"Two"},
		`meta[property="og:image"]::attr(content)`: {"/i.png"},
		"p":     {"costs 5 EUR"}, // CTS-07: hidden text is not found either
		".none": {},
	} {
		t.Run(selector, func(t *testing.T) {
			if diff := cmp.Diff(want, find(t, d, selector)); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseSelectorRefuses(t *testing.T) {
	t.Parallel()
	for selector, want := range map[string]string{
		"":                   "is empty",
		"//div[@class='x']":  "XPath",
		"div[":               "bracket",
		"p:nth-child(2":      "parenthesis",
		"p:frobnicate":       "pseudo-class",
		"p::before":          "::text and ::attr",
		">>>":                "not a CSS selector",
		"::attr(x)::attr(y)": "::text and ::attr",
	} {
		t.Run(selector, func(t *testing.T) {
			t.Parallel()
			if _, err := page.ParseSelector(selector); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		})
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	long := "<p>" + strings.Repeat("word ", 80) + "</p>"
	for _, c := range []struct{ name, html, selector, want string }{
		{"a part matches", `<div class="x"><span class="price">1</span></div>`, "div.y > span.price::text", "span.price alone matches 1"},
		{"a similar class", `<div class="product-price">1</div><i id="pricebox"></i>`, ".price", "names on the page that resemble it: #pricebox, .product-price"},
		{"an app", `<div id="root"></div>`, ".card", "scripts, which are not run"},
		{"nothing similar", long, ".zzz", "elements on the page: p (1)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := parse(t, c.html).Suggest(t.Context(), c.selector); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTableOf(t *testing.T) {
	t.Parallel()
	d := parse(t, `<table><caption>Levels</caption><thead><tr><th>Month</th><th colspan="2">Gauge</th></tr></thead>
		<tr><td rowspan="2">May</td><td>1</td><td>2</td></tr><tr><td colspan=2>3<table><tr><td>inner</td></tr></table></td></tr><tr></tr></table>`)
	tables := page.Tables(d.Body())
	if len(tables) != 1 {
		t.Fatalf("%d tables", len(tables))
	}
	want := page.Table{Caption: "Levels", Headers: []string{"Month", "Gauge", "Gauge"},
		Rows: [][]string{{"May", "1", "2"}, {"May", "3 inner", "3 inner"}}}
	if diff := cmp.Diff(want, page.TableOf(tables[0])); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	hostile := parse(t, `<table>`+strings.Repeat(`<tr><td rowspan=99999 colspan=99999>x</td></tr>`, 3000)+`</table>`)
	if got := page.TableOf(page.Tables(hostile.Body())[0]); !got.Cut || len(got.Rows) > 2000 || len(got.Rows[0]) > 200 {
		t.Errorf("hostile spans: %d rows, cut %v", len(got.Rows), got.Cut)
	}
}

func TestElementOf(t *testing.T) {
	t.Parallel()
	d := parse(t, `<ul class="l" style="color:red" onclick="x()"><li>a<b>bold</b> tail</li><li>c</li></ul>`)
	s, _ := page.ParseSelector("ul")
	budget := 3
	want := page.Element{Tag: "ul", Attributes: map[string]string{"class": "l"}, Cut: true,
		Children: []page.Element{{Tag: "li", Text: "a tail", Children: []page.Element{{Tag: "b", Text: "bold"}}}}}
	if diff := cmp.Diff(want, page.ElementOf(d.Find(t.Context(), s)[0], &budget)); diff != "" {
		t.Errorf("element (-want +got):\n%s", diff)
	}
}

func TestParseXML(t *testing.T) {
	t.Parallel()
	d, err := page.ParseXML(`<?xml version="1.0" encoding="big5"?><rss xmlns:dc="d"><channel><item><title>A &amp; B</title><link>https://example.org/a</link><dc:creator><![CDATA[Jo]]></dc:creator><pubDate>today</pubDate></item></channel></rss>`, &url.URL{})
	if err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{"item > title": "A & B", "item link": "https://example.org/a", `dc\:creator`: "Jo", "pubDate": "today"} {
		if got := find(t, d, selector); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
	for name, text := range map[string]string{"no XML": "plain", "deep": strings.Repeat("<a>", 600), "damaged": "<a><"} {
		if _, err := page.ParseXML(text, &url.URL{}); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestPointer(t *testing.T) {
	t.Parallel()
	document := []byte(` {"items":[{"id":12345678901234567890,"a/b":"x","":1}],"n":null} `)
	for pointer, want := range map[string]string{"/items/0/id": "12345678901234567890", "/items/0/a~1b": `"x"`, "/n": "null", "/items/0/": "1"} {
		got, err := page.Pointer(document, pointer)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", pointer, got, err, want)
		}
	}
	for pointer, want := range map[string]string{"items": "begins with /", "/items/5": "an array of 1 elements", "/itms": "the names are items, n", "/n/x": "plain value"} {
		if _, err := page.Pointer(document, pointer); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", pointer, err, want)
		}
	}
	if _, err := page.Pointer([]byte("{"), ""); err == nil {
		t.Error("broken JSON was read")
	}
}
