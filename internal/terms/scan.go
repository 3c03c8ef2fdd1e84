package terms

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind int

const (
	blank    kind = iota // separates
	word                 // letters and digits, perhaps several parts with joiners between
	unspaced             // a run of a script without blanks between words
	symbol               // an emoji or another sign that stands for itself
)

// lexeme is a piece of text: a word, an unspaced run or a symbol.
type lexeme struct {
	kind kind
	text string
	// parts of a word, without the joiners: "v1.2" has v1 and 2.
	parts []span
}

type span struct{ from, to int }

// unspacedScripts are written without blanks between words, or, as Korean, with
// particles joined to them.
var unspacedScripts = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Yi,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

func kindOf(r rune) kind {
	switch {
	case r < 0x80:
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return word
		}
		return blank
	case r >= 0xE00 && unicode.In(r, unspacedScripts...), r == 'ー', r == '々', r == '〇':
		if unicode.IsPunct(r) {
			return blank
		}
		return unspaced
	case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r):
		return word
	case unicode.In(r, unicode.So, unicode.Sm, unicode.Sc):
		return symbol
	}
	return blank
}

// startOf is the kind of lexeme that a character begins. A mark with nothing
// before it to mark begins none.
func startOf(r rune) kind {
	if unicode.IsMark(r) {
		return blank
	}
	return kindOf(r)
}

// scan cuts normalised text into lexemes.
func scan(text string) []lexeme {
	var all []lexeme
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch startOf(r) {
		case blank:
			i += size
		case symbol:
			end := symbolEnd(text, i, r, size)
			all = append(all, lexeme{kind: symbol, text: text[i:end]})
			i = end
		case unspaced:
			end := runEnd(text, i, unspaced)
			all = append(all, lexeme{kind: unspaced, text: text[i:end]})
			i = end
		case word:
			l := scanWord(text[i:])
			all = append(all, l)
			i += len(l.text)
		}
	}
	return all
}

// runEnd is where the characters of one kind end. Marks that could not be
// composed stay with what they mark.
func runEnd(text string, from int, k kind) int {
	for i, r := range text[from:] {
		if kindOf(r) != k && (i == 0 || !unicode.IsMark(r)) {
			return from + i
		}
	}
	return len(text)
}

// symbolEnd keeps the two halves of a flag together.
func symbolEnd(text string, i int, r rune, size int) int {
	regional := func(r rune) bool { return r >= 0x1F1E6 && r <= 0x1F1FF }
	if next, n := utf8.DecodeRuneInString(text[i+size:]); regional(r) && regional(next) {
		return i + size + n
	}
	return i + size
}

// joiners hold the parts of an identifier, path, version, address or
// contraction together, when a word follows at once.
const joiners = `_-./:@&+#'~\,`

// maxParts bounds a chain such as a very long path; the rest is a new word.
const maxParts = 24

// scanWord reads the word at the start of the text.
func scanWord(text string) lexeme {
	l := lexeme{kind: word}
	end := 0
	for len(l.parts) < maxParts {
		next := end
		if end > 0 {
			next += len(text[end:]) - len(strings.TrimLeft(text[end:min(end+3, len(text))], joiners)) - len(text[min(end+3, len(text)):])
			if next == end || !joins(text, end, next) {
				break
			}
		}
		to := runEnd(text, next, word)
		l.parts = append(l.parts, span{next, to})
		end = to
	}
	end += suffix(text[:end], text[end:])
	l.text = text[:end]
	return l
}

// joins reports whether the joiner text[from:to] has a word behind it. A
// comma joins only digits: "1,000", but not "red,blue".
func joins(text string, from, to int) bool {
	r, _ := utf8.DecodeRuneInString(text[to:])
	if to == len(text) || startOf(r) != word {
		return false
	}
	if text[from] != ',' {
		return true
	}
	return to == from+1 && digit(text[from-1]) && digit(text[to])
}

// suffix is the length of what belongs to a word though it is no letter:
// "100%", "C++", "F#".
func suffix(before, after string) int {
	n := 0
	switch last := before[len(before)-1]; {
	case digit(last) && strings.HasPrefix(after, "%"):
		n = 1
	case len(before) <= 2 && !digit(last) && strings.HasPrefix(after, "++"):
		n = 2
	case len(before) <= 2 && !digit(last) && strings.HasPrefix(after, "#"):
		n = 1
	}
	if r, _ := utf8.DecodeRuneInString(after[n:]); n < len(after) && kindOf(r) == word {
		return 0
	}
	return n
}

func digit(b byte) bool { return b >= '0' && b <= '9' }
