package channel

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Unit is what a platform counts a text in.
type Unit int

// The units.
const (
	UTF16 Unit = iota // UTF-16 code units: an emoji outside the BMP is two
	Bytes             // bytes of UTF-8
	Runes             // code points
)

// Count is the length of a text in the unit.
func (u Unit) Count(s string) int {
	switch u {
	case Bytes:
		return len(s)
	case Runes:
		return utf8.RuneCountInString(s)
	}
	n := 0
	for _, r := range s {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// Limit is the most that one message may hold.
type Limit struct {
	Max  int
	Unit Unit
	// Visible says that marks do not count, only what a reader sees.
	Visible bool
}

// cost is a Doc's length as the platform counts it. Both forms must fit where
// marks count, since the plain one may have to be sent.
func (l Limit) cost(d Doc, f Format) int {
	visible := l.Unit.Count(Format{}.Render(d))
	if l.Visible || !f.Marked() {
		return visible
	}
	return max(visible, l.Unit.Count(f.Render(d)))
}

// Split writes a Doc as messages within the limits: first is the first one's,
// rest that of the others. A message never ends inside a grapheme or a link;
// code that is cut is closed and opened again; what is blank is left out.
func Split(d Doc, f Format, first, rest Limit) []Part {
	s := splitter{format: f, limit: first, rest: rest}
	for _, block := range d {
		s.add(block)
	}
	s.flush()
	return s.parts
}

type splitter struct {
	format      Format
	limit, rest Limit
	now         Doc // the message being filled
	parts       []Part
}

func (s *splitter) fits(d Doc) bool { return s.limit.cost(d, s.format) <= s.limit.Max }

// with is the message being filled with one more block.
func (s *splitter) with(b Block) Doc { return append(slices.Clone(s.now), b) }

// add puts a block into the message being filled, or into a new one, or in
// pieces into several. Code begins anew rather than being cut early.
func (s *splitter) add(b Block) {
	for {
		switch {
		case s.fits(s.with(b)):
			s.now = s.with(b)
			return
		case len(s.now) > 0:
			s.flush()
			continue
		}
		head, tail, ok := s.cut(b)
		if !ok && s.limit != s.rest {
			s.limit = s.rest // a caption too small for anything is left out
			continue
		}
		if !ok { // not even one grapheme fits: no platform's limit is so small
			return
		}
		s.now, b = Doc{head}, tail
		s.flush()
	}
}

func (s *splitter) flush() {
	plain := Format{}.Render(s.now)
	if strings.TrimSpace(plain) != "" {
		part := Part{Text: plain, Plain: plain}
		if s.format.Marked() {
			part.Text, part.Markup = s.format.Render(s.now), true
		}
		s.parts = append(s.parts, part)
		s.limit = s.rest
	}
	s.now = nil
}

// How good a place the end of an atom is to cut.
const (
	inWord = iota
	betweenWords
	endOfLine
)

// atom is what is never cut: a grapheme or a link.
type atom struct {
	run   Run
	after int // inWord, betweenWords or endOfLine
}

// cut takes the largest good head of a block that fits a message. ok is false
// when there is none.
func (s *splitter) cut(b Block) (head, tail Block, ok bool) {
	atoms := atomsOf(b)
	fits := func(n int) bool { return s.fits(Doc{b.with(atoms[:n])}) }
	// Every atom costs at least one unit.
	most := sort.Search(min(len(atoms), s.limit.Max+1), func(n int) bool { return !fits(n + 1) })
	if most == 0 {
		if len(atoms) == 0 || atoms[0].run.Link == "" {
			return b, b, false
		}
		return s.cut(b.unlink()) // a link longer than a message is text
	}
	at := bestCut(atoms[:most])
	head, tail = b.with(atoms[:at]), b.with(atoms[at:])
	tail.Lead = ""
	if b.Kind == Code { // the fence ends the line
		head.Runs = []Run{{Text: strings.TrimSuffix(plain(head.Runs), "\n")}}
	}
	return head, tail, true
}

// bestCut is the last end of a line, else of a word, in the second half, else
// the very end.
func bestCut(atoms []atom) int {
	for _, quality := range []int{endOfLine, betweenWords} {
		for n := len(atoms); n > len(atoms)/2; n-- {
			if atoms[n-1].after >= quality {
				return n
			}
		}
	}
	return len(atoms)
}

// with is the block with other text.
func (b Block) with(atoms []atom) Block {
	b.Runs = nil
	var text strings.Builder
	for i, a := range atoms {
		text.WriteString(a.run.Text)
		if i+1 < len(atoms) && a.run.joins(atoms[i+1].run) {
			continue
		}
		run := a.run
		run.Text = text.String()
		text.Reset()
		b.Runs = append(b.Runs, run)
	}
	return b
}

// joins: runs of one style are one, but two links never are.
func (r Run) joins(next Run) bool {
	r.Text, next.Text = "", ""
	return r == next && r.Link == ""
}

// unlink turns the first link into text.
func (b Block) unlink() Block {
	b.Runs = slices.Clone(b.Runs)
	for i, run := range b.Runs {
		if run.Link == "" {
			continue
		}
		if run.Text != run.Link {
			run.Text += " (" + run.Link + ")"
		}
		run.Link = ""
		b.Runs[i] = run
		break
	}
	return b
}

// maxGrapheme is how many code points stay together. Unicode's Stream-Safe Text
// Format (UAX #15) has 30 marks on a letter; a heap of more is no writing, and
// one longer than a message would take what follows it along.
const maxGrapheme = 64

// longest is how many bytes of a grapheme stay together; 0: all of it.
func longest(grapheme string) int {
	n := 0
	for i := range grapheme {
		if n == maxGrapheme {
			return i
		}
		n++
	}
	return 0
}

func atomsOf(b Block) []atom {
	var atoms []atom
	for _, run := range b.Runs {
		if run.Link != "" {
			atoms = append(atoms, atom{run, betweenWords})
			continue
		}
		rest, state := run.Text, -1
		for rest != "" {
			a := atom{run: run}
			var boundaries int
			a.run.Text, rest, boundaries, state = uniseg.StepString(rest, state)
			for n := longest(a.run.Text); n > 0; n = longest(a.run.Text) {
				piece := a
				piece.run.Text, a.run.Text = a.run.Text[:n], a.run.Text[n:]
				atoms = append(atoms, piece)
			}
			switch {
			case strings.HasSuffix(a.run.Text, "\n"):
				a.after = endOfLine
			case strings.TrimSpace(a.run.Text) == "",
				b.Kind != Code && rest != "" && boundaries&uniseg.MaskLine == uniseg.LineCanBreak:
				a.after = betweenWords
			}
			atoms = append(atoms, a)
		}
	}
	return atoms
}
