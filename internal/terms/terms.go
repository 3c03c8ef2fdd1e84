// Package terms turns text into the terms it is found by, and a question into
// the terms it asks for.
//
// It needs no language setting and no dictionary of words. Scripts without
// blanks (Chinese, Japanese, Korean, Thai …) are cut into single characters
// and overlapping pairs, so that any two neighbouring characters are a term.
// Words of other scripts stand for themselves and for their stems, in the
// languages that the text shows signs of. Identifiers, paths and versions
// (snake_case, v1.2.3, a/b) are kept whole, in their parts and in runs of
// parts; every emoji is a term. Width, case, accents, composition (NFC, NFD)
// and Traditional, Simplified and Japanese forms of a character make no
// difference.
//
// The package does no I/O and knows nothing of ranking or storage. Version
// changes whenever the same text would give other terms, so that a store can
// tell which of its rows must be indexed anew.
package terms

import (
	"math"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Version of the rules below.
const Version = 1

// Bounds. What lies beyond them is kept by the store but not searched.
const (
	// MaxTerms is how many different terms a text is found by: its first ones.
	MaxTerms = 4096
	// MaxText is how many bytes of a text are looked at.
	MaxText = 256 << 10
	// MaxQuestion is how many bytes of a question are looked at.
	MaxQuestion = 8 << 10
	// MaxNeeds is how many terms of a question are asked for.
	MaxNeeds = 48
)

// Term is a term of a text and how often it occurs there.
type Term struct {
	Text  string
	Count int
}

// Bag is a text as search sees it.
type Bag struct {
	Terms []Term // in the order of first occurrence
	// Length is the number of words; four characters of a script without
	// blanks count as three words.
	Length int
}

// Document takes a text apart.
func Document(text string) Bag {
	lexemes := scan(normalize(text, MaxText))
	b := bagger{seen: map[string]int{}, forms: map[string][]string{}, speaks: languagesOf(lexemes)}
	dense := 0
	for _, l := range lexemes {
		if len(b.bag.Terms) >= MaxTerms {
			break
		}
		switch l.kind {
		case unspaced:
			dense += utf8.RuneCountInString(l.text)
			for _, gram := range grams(l.text) {
				b.add(gram)
			}
		case symbol:
			b.add(l.text)
		case word:
			b.bag.Length++
			b.addWord(l)
		}
	}
	b.bag.Length += dense * 3 / 4
	return b.bag
}

type bagger struct {
	bag    Bag
	seen   map[string]int      // where each term stands in the bag
	forms  map[string][]string // of the words met so far
	speaks []language
}

func (b *bagger) add(term string) {
	if at, again := b.seen[term]; again {
		b.bag.Terms[at].Count++
		return
	}
	if len(b.bag.Terms) < MaxTerms {
		b.seen[term] = len(b.bag.Terms)
		b.bag.Terms = append(b.bag.Terms, Term{Text: term, Count: 1})
	}
}

func (b *bagger) addWord(l lexeme) {
	for _, part := range l.words() {
		all, known := b.forms[part]
		if !known {
			all = forms(part, b.speaks)
			b.forms[part] = all
		}
		for _, form := range all {
			b.add(form)
		}
	}
	for _, run := range l.runs() {
		b.add(run)
	}
}

// grams are the single characters and the neighbouring pairs of a run.
func grams(run string) []string {
	all := make([]string, 0, len(run))
	before := 0 // where the character before this one starts
	for i, r := range run {
		if i > 0 {
			all = append(all, run[before:i+utf8.RuneLen(r)])
		}
		all = append(all, run[i:i+utf8.RuneLen(r)])
		before = i
	}
	return all
}

// cut shortens a text to at most n bytes, between characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// normalize makes width, composition and compatibility forms one, drops what
// is invisible and unifies the forms of Chinese characters, in at most the
// first n bytes.
func normalize(text string, n int) string {
	return strings.Map(func(r rune) rune {
		switch {
		case ignorable(r):
			return -1
		case r == '’' || r == 'ʼ':
			return '\''
		}
		return hanForm(r)
	}, cut(norm.NFKC.String(cut(text, n)), n))
}

// Fold is a text without regard to case, width, accents, composition, Chinese
// forms and blanks: equal for two texts that say the same in the same words.
// Punctuation counts, because it may be the difference.
func Fold(text string) string {
	return foldWord(strings.Join(strings.Fields(normalize(text, math.MaxInt)), " "))
}
