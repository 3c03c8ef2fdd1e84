package pdftext

import (
	"context"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/ledongthuc/pdf"
)

// maxForms is how deep forms within forms are followed.
const maxForms = 6

// walker goes through a page's operators and writes its text. Where the text
// position moves decides where words and lines end: PDF itself knows neither.
type walker struct {
	ctx   context.Context
	fonts map[string]*font
	b     strings.Builder
	count int

	state
	saved []state
	line  matrix  // text line matrix
	x, y  float64 // where the last shown text ended on the page; x is an estimate
	shown bool
}

// state is the part of the graphics state that q saves (§8.4.2).
type state struct {
	ctm     matrix
	font    *font
	size    float64 // of the font, before the matrices
	leading float64
	mode    int // text rendering mode; 3 is invisible
}

// maxSaved is how deep q may nest.
const maxSaved = 256

// matrix is [a b c d e f] of §8.3.3.
type matrix [6]float64

func (m matrix) translate(x, y float64) matrix {
	m[4], m[5] = x*m[0]+y*m[2]+m[4], x*m[1]+y*m[3]+m[5]
	return m
}

func (m matrix) times(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

var identity = matrix{1, 0, 0, 1, 0, 0}

func (w *walker) text() string {
	lines := strings.Split(w.b.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.Map(printable, line), " ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func printable(r rune) rune {
	if r < ' ' && r != '\t' || r == utf8.RuneError || 0xE000 <= r && r <= 0xF8FF {
		return -1
	}
	return r
}

// content interprets a content stream, or several.
func (w *walker) content(stream, resources pdf.Value, depth int) {
	switch stream.Kind() {
	case pdf.Array:
		for i := range min(stream.Len(), 1000) {
			if !measured(stream.Index(i)) {
				panic("content stream beyond reason")
			}
		}
	case pdf.Stream:
		if !measured(stream) {
			panic("content stream beyond reason")
		}
	default:
		return
	}
	pdf.Interpret(stream, func(stack *pdf.Stack, op string) {
		if w.count++; w.count%1024 == 0 && w.ctx.Err() != nil || w.b.Len() > maxText {
			panic("stopped")
		}
		args := make([]pdf.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		w.operator(op, args, resources, depth)
	})
}

// operator carries out one operator; those that show no text and move no text
// are passed over.
func (w *walker) operator(op string, args []pdf.Value, resources pdf.Value, depth int) {
	number := func(i int) float64 {
		if i < len(args) {
			return args[i].Float64()
		}
		return 0
	}
	switch op {
	case "q":
		if len(w.saved) < maxSaved {
			w.saved = append(w.saved, w.state)
		}
	case "Q":
		if n := len(w.saved); n > 0 {
			w.state, w.saved = w.saved[n-1], w.saved[:n-1]
		}
	case "cm":
		w.ctm = matrix{number(0), number(1), number(2), number(3), number(4), number(5)}.times(w.ctm)
	case "BT":
		w.line = identity
	case "Tf":
		if len(args) == 2 {
			w.setFont(resources, args[0].Name(), args[1].Float64())
		}
	case "TL":
		w.leading = number(0)
	case "Tr":
		w.mode = int(number(0))
	case "Td":
		w.line = w.line.translate(number(0), number(1))
	case "TD":
		w.leading = -number(1)
		w.line = w.line.translate(number(0), number(1))
	case "Tm":
		w.line = matrix{number(0), number(1), number(2), number(3), number(4), number(5)}
	case "T*":
		w.line = w.line.translate(0, -w.leading)
	case "'", "\"":
		w.line = w.line.translate(0, -w.leading)
		if len(args) > 0 {
			w.show(args[len(args)-1:])
		}
	case "Tj":
		w.show(args)
	case "TJ":
		if len(args) == 1 {
			w.showArray(args[0])
		}
	case "Do":
		if len(args) == 1 && depth < maxForms {
			w.form(resources.Key("XObject").Key(args[0].Name()), resources, depth)
		}
	}
}

func (w *walker) form(form, outer pdf.Value, depth int) {
	if form.Key("Subtype").Name() != "Form" {
		return
	}
	resources := form.Key("Resources")
	if resources.IsNull() {
		resources = outer
	}
	before, saved := w.state, w.saved
	if m := form.Key("Matrix"); m.Len() == 6 {
		var own matrix
		for i := range own {
			own[i] = m.Index(i).Float64()
		}
		w.ctm = own.times(w.ctm)
	}
	w.content(form, resources, depth+1)
	w.state, w.saved = before, saved
}

func (w *walker) setFont(resources pdf.Value, name string, size float64) {
	v := resources.Key("Font").Key(name)
	w.size = size
	key := v.String() // the dictionary's text, references unresolved
	if f, known := w.fonts[key]; known {
		w.font = f
		return
	}
	w.font = newFont(v)
	w.fonts[key] = w.font
}

func (w *walker) showArray(array pdf.Value) {
	var parts []pdf.Value
	for i := range array.Len() {
		parts = append(parts, array.Index(i))
	}
	w.show(parts)
}

// show writes strings at the current position. A number between them moves
// left by thousandths of the font size; a large move is a space.
func (w *walker) show(parts []pdf.Value) {
	if w.font == nil || w.mode == 3 {
		return
	}
	w.separate()
	width := 0.0
	for _, part := range parts {
		if part.Kind() != pdf.String {
			if shift := part.Float64(); shift < -180 {
				w.space()
				width -= shift / 1000
			}
			continue
		}
		text := w.font.decode(part.RawString())
		w.b.WriteString(text)
		width += w.font.width(text)
	}
	at := w.line.times(w.ctm)
	w.x, w.y, w.shown = at[4]+width*w.size*math.Hypot(at[0], at[1]), at[5], true
}

// separate puts a space or a new line between the last text and this one, by
// the distance between them.
func (w *walker) separate() {
	if !w.shown {
		return
	}
	at := w.line.times(w.ctm)
	height := max(math.Abs(w.size)*math.Hypot(at[2], at[3]), 1)
	dy := math.Abs(at[5] - w.y)
	switch dx := at[4] - w.x; {
	case dy > 1.9*height:
		w.newline(2)
	case dy > 0.4*height:
		w.newline(1)
	case dx > 0.15*height, dx < -4*height:
		w.space()
	}
}

func (w *walker) space() {
	if s := w.b.String(); s != "" && !strings.HasSuffix(s, " ") && !strings.HasSuffix(s, "\n") {
		w.b.WriteByte(' ')
	}
}

func (w *walker) newline(n int) { w.b.WriteString(strings.Repeat("\n", n)) }
