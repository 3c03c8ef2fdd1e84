package page_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/page"
)

func parse(t *testing.T, text string) *page.Document {
	t.Helper()
	d, err := page.Parse(text, &url.URL{Scheme: "https", Host: "example.org", Path: "/dir/page"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestHidden/CTS-07: text that a reader does not see is left out and counted.
func TestHidden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, head, body string }{
		{"display none", "", `<div style="display:none">TRAP</div>`},
		{"display none, important, odd case", "", `<div style="DISPLAY : NONE !important">TRAP</div>`},
		{"inside a hidden parent", "", `<div style="display:none"><p><b>TRAP</b></p></div>`},
		{"visibility", "", `<p style="visibility:hidden">TRAP</p>`},
		{"opacity", "", `<p style="opacity:0">TRAP</p>`},
		{"opacity nearly none", "", `<p style="opacity:.01">TRAP</p>`},
		{"font size 0", "", `<p style="font-size:0">TRAP</p>`},
		{"font size 1px", "", `<p style="font-size:1px">TRAP</p>`},
		{"off screen to the left", "", `<span style="position:absolute;left:-9999px">TRAP</span>`},
		{"off screen above, in em", "", `<span style="position:fixed; top:-100em">TRAP</span>`},
		{"indented away", "", `<h2 style="text-indent:-9999px">TRAP</h2>`},
		{"clipped", "", `<span style="position:absolute;clip:rect(0,0,0,0)">TRAP</span>`},
		{"clip path", "", `<span style="position:absolute;clip-path: inset(50%)">TRAP</span>`},
		{"no height", "", `<div style="height:0;overflow:hidden">TRAP</div>`},
		{"scaled away", "", `<div style="transform:scale(0)">TRAP</div>`},
		{"transparent", "", `<p style="color:transparent">TRAP</p>`},
		{"white on white", "", `<p style="color:#fff;background-color:white">TRAP</p>`},
		{"hidden attribute", "", `<p hidden>TRAP</p>`},
		{"until-found", "", `<p hidden="until-found">TRAP</p>`},
		{"template", "", `<template><p>TRAP</p></template>`},
		{"closed dialog", "", `<dialog>TRAP</dialog>`},
		{"comment", "", `<!-- TRAP -->`},
		{"screen reader class", "", `<span class="sr-only">TRAP</span>`},
		{"script and style", "", `<script>TRAP</script><style>TRAP</style>`},
		{"noscript", "", `<noscript>TRAP</noscript>`},
		{"rule by class", "<style>.x, .y > p {color:red; display:none}</style>", `<div class="y"><p>TRAP</p></div>`},
		{"rule by id in a media query", "<style>@media screen { #x { font-size: 0px } }</style>", `<p id="x">TRAP</p>`},
		{"rule in a layer, after a comment and an import", "<style>@import url(a.css);/* } */ @layer a { p.x { visibility:hidden } }</style>", `<p class="x">TRAP</p>`},
		{"rule that wins by importance", "<style>.x{display:none!important} #y{display:block}</style>", `<p class="x" id="y">TRAP</p>`},
		{"tag characters", "", "<p>a" + tags("TRAP") + "b</p>"},
	} {
		t.Run("CTS-07 "+c.name, func(t *testing.T) {
			t.Parallel()
			d := parse(t, `<html><head><title>x</title>`+c.head+`</head><body><p>Seen before.</p>`+c.body+`<p>Seen after.</p></body></html>`)
			markdown, err := page.Markdown(d.Body())
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{markdown, page.Text(d.Body()), page.Text(d.Main())} {
				if strings.Contains(text, "TRAP") || strings.ContainsRune(text, 0xE0054) || !strings.Contains(text, "Seen before.") || !strings.Contains(text, "Seen after.") {
					t.Errorf("text %q", text)
				}
			}
		})
	}
	if d := parse(t, `<p>a</p><p style="display:none">six ch</p>`); d.HiddenChars != 6 {
		t.Errorf("hidden characters: %d", d.HiddenChars)
	}
}

func tags(s string) string {
	return strings.Map(func(r rune) rune { return 0xE0000 + r }, s)
}

// TestShown: what a reader sees is not taken for hidden.
func TestShown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, head, body string }{
		{"a rule is overruled", "<style>.tab{display:none} .tab.active{display:block}</style>", `<div class="tab active">SEEN</div>`},
		{"a rule is overruled by the attribute", "<style>.tab{display:none}</style>", `<div class="tab" style="display:block">SEEN</div>`},
		{"a rule for print", "<style media=print>p{display:none}</style><style>@media print{p{display:none}}</style>", `<p>SEEN</p>`},
		{"a rule for a state", "<style>p:hover{display:none} p::before{visibility:hidden}</style>", `<p>SEEN</p>`},
		{"the page waits for its scripts", "<style>body{opacity:0;visibility:hidden}</style>", `<p>SEEN</p>`},
		{"hidden on small screens only", "", `<p class="hidden md:block">SEEN</p><p class="d-none d-lg-block">SEEN</p>`},
		{"small and pale", "", `<p style="font-size:10px;opacity:.6;color:#eee;background:#ddd">SEEN</p>`},
		{"a gradient behind letters", "", `<h1 style="color:transparent;background-clip:text">SEEN</h1>`},
		{"a closed details element", "", `<details><summary>More</summary>SEEN</details>`},
		{"a broken sheet", "<style>p{display:none</style>", `<div>SEEN</div>`},
		{"a flag of tags", "", "<p>SEEN \U0001F3F4" + tags("gbeng\x7f") + "</p>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := parse(t, `<html><head>`+c.head+`</head><body>`+c.body+`</body></html>`)
			if text := page.Text(d.Body()); !strings.Contains(text, "SEEN") || d.HiddenChars != 0 {
				t.Errorf("text %q, hidden %d", text, d.HiddenChars)
			}
		})
	}
	if got := page.Text(parse(t, "<p>\U0001F3F4"+tags("gbeng\x7f")+"</p>").Body()); !strings.ContainsRune(got, 0xE0067) {
		t.Errorf("the flag of England lost its tags: %q", got)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	got := page.Text(parse(t, `<h1>Title</h1><p>One <b>two</b>
	three<br>four</p><ul><li>a</li><li>b</li></ul><table><tr><th>h1</th><th>h2</th></tr><tr><td>1</td><td>2</td></tr></table><pre> keep
  this</pre>`).Body())
	want := "Title\n\nOne two three\nfour\n\na\nb\n\nh1\th2\n1\t2\n\n keep\n  this"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, html, want string }{
		{"links and images", `<p><a href="../x?a=1&b=2">rel</a> <a href="javascript:alert(1)">script</a> <a href="#top">anchor</a> <img src="/p.png" alt="A pier"> <img src="data:image/png;base64,AAAA" alt="inline"> <img src="/spacer.gif"></p>`,
			"[rel](https://example.org/x?a=1&b=2) script anchor ![A pier](https://example.org/p.png)"},
		{"heading with permalink", `<h2 id="a">Usage<a class="headerlink" href="#a">¶</a></h2>`, "## Usage"},
		{"code", `<pre><code class="language-go">if a &lt; b {
	return
}</code></pre>`, "```go\nif a < b {\n\treturn\n}\n```"},
		{"table", `<table><tr><th>a</th><th>b</th></tr><tr><td>1 | 2</td><td>x<br>y</td></tr></table>`, "| a | b |\n|---|---|\n| 1 \\| 2 | x  <br />y |"},
		{"lists", `<ol><li>one<ul><li>sub</li></ul></li><li>two</li></ol>`, "1. one\n   \n   - sub\n2. two"},
		{"quote and emphasis", `<blockquote><p>Said <em>he</em> and <strong>she</strong>.</p></blockquote>`, "> Said *he* and **she**."},
		{"definitions", `<dl><dt>Term</dt><dd>Meaning</dd></dl>`, "Term\n\nMeaning"},
		{"form controls", `<p>Text <button>Buy</button><input value="x"></p>`, "Text"},
		{"base element", `<base href="https://cdn.example.net/docs/"><a href="a">x</a>`, "[x](https://cdn.example.net/docs/a)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := page.Markdown(parse(t, c.html).Body())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("markdown (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMeta(t *testing.T) {
	t.Parallel()
	d := parse(t, `<html lang="de"><head><title> A  title </title><meta name="description" content="About `+strings.Repeat("x", 400)+`"><meta property="og:site_name" content="Site">
		<script type="application/ld+json">{"@graph":[{"@type":"WebPage"},{"@type":"NewsArticle","datePublished":"2026-12-01T10:00:00+01:00","author":[{"name":"Jo Example"}]}]}</script></head><body>x</body></html>`)
	m := d.Meta
	if m.Title != "A title" || m.SiteName != "Site" || m.Language != "de" || m.Author != "Jo Example" || m.Published.Format("2006-01-02T15:04Z07:00") != "2026-12-01T09:00Z" || len(m.Description) > 310 {
		t.Errorf("meta %+v", m)
	}
}

// TestHostileHTML: a page may be large, deep or broken; it costs little time.
func TestHostileHTML(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"wide":              strings.Repeat("<p>a<b>b</b></p>", 60_000),
		"unclosed":          strings.Repeat("<p><a href=x><b>", 200),
		"many hiding rules": "<style>" + strings.Repeat(".a .b{display:none}", 3000) + "</style>" + strings.Repeat("<p class=b>x</p>", 20_000),
		"many links":        "<div>" + strings.Repeat(`<a href="/x">y</a>`, 30_000) + "</div>",
		"nested lists":      strings.Repeat("<ul><li>", 240) + "x",
		"nested tables":     strings.Repeat("<table><tr><td>", 120) + "x",
		"nested divs":       strings.Repeat("<div class=nav>", 500) + "x" + strings.Repeat("<div>y</div>", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := parse(t, text)
			if _, err := page.Markdown(d.Main()); err != nil {
				t.Error(err)
			}
			_ = page.Text(d.Body())
		})
	}
	if _, err := page.Parse(strings.Repeat("<div>", 600), &url.URL{}); err == nil {
		t.Error("a document of depth 600 was parsed")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`<html><style>.a{display:none}</style><body><p class=a>x<table><td>`)
	f.Add("<h1>a</h1><p style='opacity:0;left:-1e9px'>b")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := page.Parse(text, &url.URL{Scheme: "https", Host: "example.org"})
		if err != nil {
			return
		}
		if _, err := page.Markdown(d.Main()); err != nil {
			t.Error(err)
		}
		_ = page.Text(d.Main())
	})
}
