package channel

import "strings"

// Wrap are the marks on both sides of a styled text; zero: the style is not
// shown.
type Wrap struct{ Before, After string }

// Format is how a platform writes what a Doc holds. The zero Format is plain
// text.
type Format struct {
	Text func(string) string // escapes ordinary text; nil: as it is
	Code func(string) string // escapes text inside Mono and Fence; nil: as it is

	Bold, Italic, Strike, Mono Wrap

	Link  func(label, address string) string // the label is escaped; nil: "label (address)"
	Fence func(lang, code string) string     // the code is escaped; nil: as it is
	Quote func(string) string                // nil: lines with "> "
}

// Marked reports whether the format is more than plain text.
func (f Format) Marked() bool { return f.Bold != Wrap{} || f.Link != nil || f.Fence != nil }

// Render writes a Doc in the format.
func (f Format) Render(d Doc) string {
	var b strings.Builder
	for i, block := range d {
		switch {
		case i == 0:
		case block.Tight:
			b.WriteString("\n")
		default:
			b.WriteString("\n\n")
		}
		b.WriteString(f.block(block))
	}
	return b.String()
}

func (f Format) block(b Block) string {
	var s string
	switch b.Kind {
	case Code:
		s = f.code(b)
	case Heading:
		runs := make([]Run, len(b.Runs))
		for i, run := range b.Runs {
			run.Bold = true
			runs[i] = run
		}
		s = f.runs(runs)
	default:
		s = f.escape(b.Lead) + f.runs(b.Runs)
	}
	if b.Quote {
		return f.quote(s)
	}
	return s
}

func (f Format) code(b Block) string {
	code := plain(b.Runs)
	if f.Fence == nil {
		return code
	}
	if f.Code != nil {
		code = f.Code(code)
	}
	return f.Fence(b.Lang, code)
}

func (f Format) quote(s string) string {
	if f.Quote != nil {
		return f.Quote(s)
	}
	return Prefixed("> ", s)
}

// Prefixed puts a prefix before each line.
func Prefixed(prefix, s string) string {
	return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix)
}

func (f Format) escape(s string) string {
	if f.Text == nil {
		return s
	}
	return f.Text(s)
}

func (f Format) runs(runs []Run) string {
	var b strings.Builder
	for _, run := range runs {
		b.WriteString(f.run(run))
	}
	return b.String()
}

func (f Format) run(r Run) string {
	var s string
	switch {
	case r.Link != "":
		s = f.link(r)
	case r.Mono && f.Mono != Wrap{}:
		s = r.Text
		if f.Code != nil {
			s = f.Code(s)
		}
		return f.Mono.around(s)
	default:
		s = f.escape(r.Text)
	}
	if r.Strike {
		s = f.Strike.around(s)
	}
	if r.Italic {
		s = f.Italic.around(s)
	}
	if r.Bold {
		s = f.Bold.around(s)
	}
	return s
}

// link shows an address behind its label where the platform can, and beside it
// where it cannot; a bare address stays bare.
func (f Format) link(r Run) string {
	bare := strings.TrimPrefix(r.Link, "mailto:")
	switch {
	case f.Link != nil:
		return f.Link(f.escape(r.Text), r.Link)
	case strings.EqualFold(r.Text, r.Link), r.Text == bare:
		return f.escape(r.Text)
	}
	return f.escape(r.Text + " (" + bare + ")")
}

// around sets the marks line by line and inside of spaces, since most
// platforms know them nowhere else.
func (w Wrap) around(s string) string {
	if w == (Wrap{}) {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		core := strings.TrimSpace(line)
		if core == "" {
			continue
		}
		start := strings.Index(line, core)
		lines[i] = line[:start] + w.Before + core + w.After + line[start+len(core):]
	}
	return strings.Join(lines, "\n")
}
