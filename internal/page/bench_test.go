package page

import (
	"net/url"
	"strings"
	"testing"
)

// BenchmarkMain is the way from source to markdown for an ordinary page, a
// long one, and the worst one that was found.
func BenchmarkMain(b *testing.B) {
	paragraph := "<p>The harbour authority reopened the <a href=/q>eastern quay</a> on Monday, after eleven weeks of repairs that cost more than planned.</p>"
	for name, text := range map[string]string{
		"20_KB":  "<article><h1>Title</h1>" + strings.Repeat(paragraph, 140) + "</article>",
		"1_MB":   "<article><h1>Title</h1>" + strings.Repeat(paragraph, 7000) + "</article>",
		"nested": strings.Repeat("<div class=nav>", 500) + strings.Repeat("<div><a href=x>y</a></div>", 25_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				d, err := Parse(text, &url.URL{Scheme: "https", Host: "example.org"})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Markdown(d.Main()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
