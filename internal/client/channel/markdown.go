package channel

import (
	"html"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Doc is a text as a chat can show it: a sequence of blocks.
type Doc []Block

// Kind is the sort of a block.
type Kind int

// The kinds of blocks.
const (
	Paragraph Kind = iota
	Heading
	Code
)

// Block is a paragraph, a heading, a line of a list, or a piece of code.
type Block struct {
	Kind  Kind
	Runs  []Run
	Lead  string // what stands before it in a list: indentation and bullet
	Quote bool
	Tight bool   // no empty line before it
	Lang  string // of Code
}

// Run is text of one style. Text is as it is to be read, unescaped.
type Run struct {
	Text                       string
	Bold, Italic, Strike, Mono bool
	Link                       string // http, https or mailto address; empty: none
}

// markdown is made at the first message: its tables are no use to a function
// that sends none.
var markdown = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Strikethrough, extension.Linkify, extension.Table)).Parser()
})

// Parse reads markdown (CommonMark with GitHub's strikethrough, tables and bare
// addresses). Every text is markdown; HTML in it is shown as it is written.
// A line's end stays one, as chat users expect.
func Parse(source string) Doc {
	source = strings.ReplaceAll(source, "\r\n", "\n")
	r := reader{source: []byte(source)}
	r.blocks(markdown().Parse(text.NewReader(r.source)), place{})
	return r.doc
}

// Plain is a text that is no markdown: one block, shown as it is.
func Plain(source string) Doc { return Doc{{Runs: []Run{{Text: source}}}} }

// reader turns goldmark's tree into a Doc.
type reader struct {
	source []byte
	doc    Doc
}

// place is where in the tree a block stands.
type place struct {
	quote bool
	depth int    // of lists
	lead  string // for the next block only
	tight bool
}

func (r *reader) blocks(parent ast.Node, p place) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		r.block(n, p)
		p.lead = strings.Repeat(" ", len([]rune(p.lead)))
	}
}

func (r *reader) block(n ast.Node, p place) {
	b := Block{Quote: p.quote, Lead: p.lead, Tight: p.tight}
	switch n := n.(type) {
	case *ast.Heading:
		b.Kind, b.Runs = Heading, r.runs(n, Run{})
	case *ast.ThematicBreak:
		b.Runs = []Run{{Text: "———"}}
	case *ast.FencedCodeBlock:
		b.Kind, b.Lang, b.Runs = Code, string(n.Language(r.source)), r.lines(n)
	case *ast.CodeBlock:
		b.Kind, b.Runs = Code, r.lines(n)
	case *ast.HTMLBlock:
		b.Runs = r.lines(n)
		if n.HasClosure() {
			b.Runs = append(b.Runs, Run{Text: "\n" + string(n.ClosureLine.Value(r.source))})
		}
	case *ast.Blockquote:
		p.quote = true
		r.blocks(n, p)
		return
	case *ast.List:
		r.list(n, p)
		return
	case *east.Table:
		b.Kind, b.Runs = Code, []Run{{Text: r.table(n)}}
	case *ast.LinkReferenceDefinition:
		return
	default:
		b.Runs = r.runs(n, Run{})
	}
	if strings.TrimSpace(plain(b.Runs)) != "" {
		r.doc = append(r.doc, b)
	}
}

func (r *reader) list(l *ast.List, p place) {
	number := l.Start
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		inner := place{quote: p.quote, depth: p.depth + 1, tight: p.depth > 0 || l.IsTight && item != l.FirstChild()}
		mark := "•"
		if l.IsOrdered() {
			mark = strconv.Itoa(number) + "."
			number++
		}
		inner.lead = strings.Repeat("  ", p.depth) + mark + " "
		r.blocks(item, inner)
	}
}

func (r *reader) lines(n ast.Node) []Run {
	var b strings.Builder
	for i := range n.Lines().Len() {
		segment := n.Lines().At(i)
		b.Write(segment.Value(r.source))
	}
	return []Run{{Text: strings.TrimRight(b.String(), "\n")}}
}

// table is a table's text, a row a line: no platform has tables in messages.
func (r *reader) table(t *east.Table) string {
	var rows []string
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, plain(r.runs(cell, Run{})))
		}
		rows = append(rows, strings.Join(cells, " | "))
	}
	return strings.Join(rows, "\n")
}

func (r *reader) runs(parent ast.Node, style Run) []Run {
	var runs []Run
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		runs = append(runs, r.inline(n, style)...)
	}
	return runs
}

func (r *reader) inline(n ast.Node, style Run) []Run {
	switch n := n.(type) {
	case *ast.Text:
		style.Text = string(n.Segment.Value(r.source))
		if !n.IsRaw() && !style.Mono {
			style.Text = unescape(style.Text)
		}
		if n.SoftLineBreak() || n.HardLineBreak() {
			style.Text += "\n"
		}
		return []Run{style}
	case *ast.String:
		style.Text = string(n.Value)
		return []Run{style}
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			segment := n.Segments.At(i)
			style.Text += string(segment.Value(r.source))
		}
		return []Run{style}
	case *ast.AutoLink:
		style.Text, style.Link = string(n.Label(r.source)), linkable(string(n.URL(r.source)))
		return []Run{style}
	case *ast.Link:
		return link(r.runs(n, style), string(n.Destination), style)
	case *ast.Image:
		return link(r.runs(n, style), string(n.Destination), style)
	case *ast.CodeSpan:
		style.Mono = true
	case *ast.Emphasis:
		style.Bold, style.Italic = style.Bold || n.Level > 1, style.Italic || n.Level == 1
	case *east.Strikethrough:
		style.Strike = true
	}
	return r.runs(n, style)
}

// link is one run, so that it is never cut: its label loses inner styles. An
// address that no reader should be led to is shown as text.
func link(label []Run, address string, style Run) []Run {
	address = unescape(address)
	style.Text, style.Link = strings.ReplaceAll(plain(label), "\n", " "), linkable(address)
	switch {
	case strings.TrimSpace(style.Text) == "":
		style.Text = address
	case style.Link == "":
		style.Text += " (" + address + ")"
	}
	return []Run{style}
}

func linkable(address string) string {
	scheme, _, _ := strings.Cut(strings.ToLower(address), ":")
	switch {
	case strings.ContainsAny(address, " \t\n<>\"|\\`"):
		return ""
	case scheme == "http", scheme == "https", scheme == "mailto":
		return address
	case strings.Contains(address, "@") && !strings.ContainsAny(address, ":/"):
		return "mailto:" + address
	}
	return ""
}

// unescape undoes backslashes and entities (CommonMark 0.31 §2.4, §2.5), each
// once and from left to right.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch end := strings.IndexByte(s[i:], ';'); {
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		case s[i] == '&' && end > 0 && end < 40:
			b.WriteString(html.UnescapeString(s[i : i+end+1]))
			i += end
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func plain(runs []Run) string {
	var b strings.Builder
	for _, run := range runs {
		b.WriteString(run.Text)
	}
	return b.String()
}
