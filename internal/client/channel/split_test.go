package channel_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"pawgate/internal/client/channel"
)

// html is a format with everything.
var html = channel.Format{
	Text: strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace, Code: strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace,
	Bold: channel.Wrap{Before: "<b>", After: "</b>"}, Italic: channel.Wrap{Before: "<i>", After: "</i>"},
	Strike: channel.Wrap{Before: "<s>", After: "</s>"}, Mono: channel.Wrap{Before: "<code>", After: "</code>"},
	Link:  func(label, address string) string { return `<a href="` + address + `">` + label + "</a>" },
	Fence: func(lang, code string) string { return "<pre " + lang + ">" + code + "</pre>" },
	Quote: func(s string) string { return "<q>" + s + "</q>" },
}

func TestRender(t *testing.T) {
	for _, c := range []struct{ name, source, want, plain string }{
		{"styles", "**b** *i* ~~s~~ `c<d` a<b", "<b>b</b> <i>i</i> <s>s</s> <code>c&lt;d</code> a&lt;b", "b i s c<d a<b"},
		{"nested", "**b *bi***", "<b>b</b> <b><i>bi</i></b>", "b bi"},
		{"link", "[site](https://e.example/x)", `<a href="https://e.example/x">site</a>`, "site (https://e.example/x)"},
		{"bare link", "see https://e.example/x.", `see <a href="https://e.example/x">https://e.example/x</a>.`, "see https://e.example/x."},
		{"no scripts", "[x](javascript:alert(1))", "x (javascript:alert(1))", "x (javascript:alert(1))"},
		{"lines stay", "one\ntwo\n\nthree", "one\ntwo\n\nthree", "one\ntwo\n\nthree"},
		{"heading", "# Title", "<b>Title</b>", "Title"},
		{"code", "```go\na := 1 < 2\n\nb\n```", "<pre go>a := 1 &lt; 2\n\nb</pre>", "a := 1 < 2\n\nb"},
		{"quote", "> a\n> b", "<q>a\nb</q>", "> a\n> b"},
		{"list", "- a\n- b\n  1. c\n  2. d", "• a\n• b\n  1. c\n  2. d", "• a\n• b\n  1. c\n  2. d"},
		{"table", "| a | b |\n|---|---|\n| 1 | 2 |", "<pre >a | b\n1 | 2</pre>", "a | b\n1 | 2"},
		{"html is text", "a <b>x</b>\n\n<div>\ny\n</div>", "a &lt;b>x&lt;/b>\n\n&lt;div>\ny\n&lt;/div>", "a <b>x</b>\n\n<div>\ny\n</div>"},
		{"escapes", `\*not\* &lt;b&gt; \&amp; a_b_c`, "*not* &lt;b> &amp;amp; a_b_c", "*not* <b> &amp; a_b_c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := channel.Parse(c.source)
			if got := html.Render(doc); got != c.want {
				t.Errorf("format: got %q, want %q", got, c.want)
			}
			if got := (channel.Format{}).Render(doc); got != c.plain {
				t.Errorf("plain: got %q, want %q", got, c.plain)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	limit := func(max int, unit channel.Unit) channel.Limit { return channel.Limit{Max: max, Unit: unit} }
	for _, c := range []struct {
		name, source string
		format       channel.Format
		limit        channel.Limit
		parts        int
	}{
		{"MSG-01 2049 emoji are 4098 UTF-16 units", strings.Repeat("😀", 2049), html, limit(4096, channel.UTF16), 2},
		{"MSG-03 long CJK cut by bytes", strings.Repeat("訊息", 1000), channel.Format{}, limit(1000, channel.Bytes), 7},
		{"MSG-13 2001 characters", strings.Repeat("a", 2001), html, limit(2000, channel.Runes), 2},
		{"MSG-26 multi-byte characters over 4096 bytes", strings.Repeat("é", 2049), channel.Format{}, limit(4096, channel.Bytes), 2},
		{"families stay together", strings.Repeat("👨‍👩‍👧‍👦", 40), channel.Format{}, limit(60, channel.UTF16), 8},
		{"flags stay together", strings.Repeat("🇹🇼", 30), channel.Format{}, limit(7, channel.UTF16), 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := channel.Split(channel.Parse(c.source), c.format, c.limit, c.limit)
			if len(parts) < c.parts || len(parts) > c.parts+2 {
				t.Errorf("%d parts, want about %d", len(parts), c.parts)
			}
			var joined strings.Builder
			for i, p := range parts {
				joined.WriteString(p.Plain)
				if n := c.limit.Unit.Count(p.Text); n > c.limit.Max || n == 0 || !utf8.ValidString(p.Text) {
					t.Errorf("part %d has %d units, most is %d", i, n, c.limit.Max)
				}
			}
			if joined.String() != c.source {
				t.Error("the joined parts are not the original")
			}
			if got, want := clusters(parts), uniseg.GraphemeClusterCount(c.source); got != want {
				t.Errorf("%d graphemes in the parts, %d in the text: one was cut", got, want)
			}
		})
	}
}

func clusters(parts []channel.Part) int {
	n := 0
	for _, p := range parts {
		n += uniseg.GraphemeClusterCount(p.Plain)
	}
	return n
}

func TestSplitKeepsCodeAndLinksWhole(t *testing.T) {
	line := "fmt.Println(\"one line of code\")\n"
	source := "before\n\n```go\n" + strings.Repeat(line, 40) + "```\n\n" + strings.Repeat("words and [a link](https://example.com/some/long/path) ", 20)
	limit := channel.Limit{Max: 300, Unit: channel.UTF16}
	parts := channel.Split(channel.Parse(source), html, limit, limit)
	lines, links := 0, 0
	for i, p := range parts {
		if channel.UTF16.Count(p.Text) > limit.Max {
			t.Errorf("part %d has %d units", i, len(p.Text))
		}
		for _, tag := range []string{"pre", "a"} {
			if opened, closed := strings.Count(p.Text, "<"+tag+" "), strings.Count(p.Text, "</"+tag+">"); opened != closed {
				t.Errorf("part %d opens %s %d times and closes it %d times: %q", i, tag, opened, closed, p.Text)
			}
		}
		lines += strings.Count(p.Text, "one line of code\")")
		links += strings.Count(p.Text, `<a href="https://example.com/some/long/path">a link</a>`)
	}
	if lines != 40 || links != 20 {
		t.Errorf("%d lines and %d links arrived, want 40 and 20", lines, links)
	}
}

func TestSplitLeavesBlanksOut(t *testing.T) {
	limit := channel.Limit{Max: 10, Unit: channel.UTF16}
	t.Run("MSG-21 a part only of newlines", func(t *testing.T) {
		parts := channel.Split(channel.Plain("word"+strings.Repeat("\n", 40)+"end"), channel.Format{}, limit, limit)
		for _, p := range parts {
			if strings.TrimSpace(p.Text) == "" {
				t.Errorf("a blank part %q", p.Text)
			}
		}
		if len(parts) != 2 {
			t.Errorf("%d parts, want 2: %+v", len(parts), parts)
		}
	})
	t.Run("MSG-21 blank", func(t *testing.T) {
		if parts := channel.Split(channel.Parse("\n\n"), html, limit, limit); len(parts) != 0 {
			t.Errorf("a blank text has parts %+v", parts)
		}
	})
	t.Run("a link longer than a message is text", func(t *testing.T) {
		parts := channel.Split(channel.Parse("[x](https://example.com/0123456789)"), html, limit, limit)
		joined := ""
		for _, p := range parts {
			joined += p.Plain
		}
		if joined != "x (https://example.com/0123456789)" {
			t.Errorf("got %q", joined)
		}
	})
}

// A heap of marks on one letter is longer than a message. What follows it is
// not lost.
func TestSplitLosesNothingBehindAHeapOfMarks(t *testing.T) {
	source := "start a" + strings.Repeat("\u0301", 5000) + " end"
	for _, limit := range []channel.Limit{{Max: 4096, Unit: channel.UTF16}, {Max: 4096, Unit: channel.Bytes}} {
		var joined strings.Builder
		for _, p := range channel.Split(channel.Parse(source), html, limit, limit) {
			joined.WriteString(p.Plain)
			if limit.Unit.Count(p.Text) > limit.Max || !utf8.ValidString(p.Text) {
				t.Errorf("a part has %d units", limit.Unit.Count(p.Text))
			}
		}
		if joined.String() != source {
			t.Errorf("%d bytes arrive of %d", joined.Len(), len(source))
		}
	}
}

// FuzzSplit: no text breaks a limit, loses a visible character or hangs.
func FuzzSplit(f *testing.F) {
	f.Add("# a\n\n- **b** `c` [d](https://e.example)\n\n```x\ny\n```", 40)
	f.Add("> 你好 👨‍👩‍👧‍👦 \\* &amp;", 33)
	f.Fuzz(func(t *testing.T, source string, most int) {
		if most < 64 || most > 4096 || len(source) > 2000 || !utf8.ValidString(source) {
			return
		}
		limit := channel.Limit{Max: most, Unit: channel.UTF16}
		for _, p := range channel.Split(channel.Parse(source), html, limit, limit) {
			if channel.UTF16.Count(p.Text) > most || strings.TrimSpace(p.Plain) == "" {
				t.Fatalf("part %q of %q breaks the limit %d", p.Text, source, most)
			}
		}
	})
}
