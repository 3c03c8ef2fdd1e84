package terms

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Need is one thing that a question asks for: any of some terms, best first.
type Need struct {
	// Weight says how much it matters, between 0 and 1, apart from how rare
	// the terms are.
	Weight float64
	// Hint marks a need that lifts what also meets another need, and is no
	// answer alone: a single character of a pair.
	Hint bool
	Any  []Alternative
}

// Alternative is some terms that together meet a need, and how well, between
// 0 and 1.
type Alternative struct {
	Terms []string
	Fit   float64
}

// Weights of needs and fits of alternatives. They are set so that a pair of
// characters outweighs both of its characters, and a word its stem.
const (
	weightWhole  = 1.0  // a word, a pair of characters, an identifier
	weightChain  = 0.3  // the whole of a word that is also asked for in parts
	weightPart   = 0.15 // a part in letters of an identifier
	weightSingle = 0.25 // a Chinese character of a pair
	fitStem      = 0.9  // another form of the word
	fitAlias     = 0.95 // another name of the thing
)

// Query takes a question apart. It returns nothing when the question has
// nothing to look for, such as blanks or punctuation alone.
func Query(text string) []Need {
	lexemes := scan(normalize(text, MaxQuestion))
	speaks := languagesOf(lexemes)
	var all, plain needs
	for _, l := range lexemes {
		switch l.kind {
		case symbol:
			all.add(weightWhole, l.text)
		case unspaced:
			all.addRun(l.text, &plain)
		case word:
			all.addWord(l, speaks, &plain)
		}
	}
	if len(all.list) == 0 {
		return plain.list // only function words: then they are what is meant
	}
	return all.list
}

// needs are different from one another; the first MaxNeeds are kept.
type needs struct {
	list []Need
	seen map[string]bool
}

// add takes the word itself, then its other forms.
func (n *needs) add(weight float64, forms ...string) {
	need := Need{Weight: weight}
	for i, form := range forms {
		fit := 1.0
		if i > 0 {
			fit = fitStem
		}
		need.Any = append(need.Any, Alternative{Terms: []string{form}, Fit: fit})
	}
	n.append(need)
}

func (n *needs) append(need Need) {
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	first := need.Any[0].Terms[0]
	if n.seen[first] || len(n.list) >= MaxNeeds {
		return
	}
	n.seen[first] = true
	n.list = append(n.list, need)
}

// addRun asks for the pairs of a run, and a little for its Chinese
// characters, which carry meaning one by one.
func (n *needs) addRun(run string, plain *needs) {
	single := utf8.RuneCountInString(run) == 1
	for _, gram := range grams(run) {
		into := n
		if stop(gram, nil) {
			into = plain
		}
		switch r, size := utf8.DecodeRuneInString(gram); {
		case single || size < len(gram):
			into.add(weightWhole, gram)
		case unicode.Is(unicode.Han, r):
			n.append(Need{Weight: weightSingle, Hint: true, Any: []Alternative{{Terms: []string{gram}, Fit: 1}}})
		}
	}
}

func (n *needs) addWord(l lexeme, speaks []language, plain *needs) {
	whole := foldWord(l.text)
	if stop(l.text, speaks) {
		n = plain
	}
	switch {
	case l.simple() && stop(l.part(0), speaks): // "what's"
		plain.add(weightWhole, forms(l.part(0), speaks)...)
	case l.simple():
		n.add(weightWhole, forms(l.part(0), speaks)...)
	case strings.Contains(whole, "_") || len(l.parts) == 1:
		n.add(weightWhole, whole)
	case l.identifier():
		for _, run := range l.chain() {
			n.add(weightWhole, run)
		}
		for i := range l.parts {
			if p := l.part(i); len(p) > 1 && !strings.ContainsFunc(p, unicode.IsDigit) {
				n.add(weightPart, forms(p, speaks)...)
			}
		}
	default:
		for i := range l.parts {
			n.add(weightWhole, forms(l.part(i), speaks)...)
		}
		n.add(weightChain, whole)
	}
}

// Alias makes whatever meets the words of one name meet the needs of another:
// where the question has the name found, the name other will do as well.
func Alias(needs []Need, found, other string) {
	var all []string // terms that together are the other name
	for _, n := range Query(other) {
		if !n.Hint && n.Weight == weightWhole {
			all = append(all, n.Any[0].Terms...)
		}
	}
	if len(all) == 0 {
		return
	}
	for _, f := range Query(found) {
		for i := range needs {
			if needs[i].Any[0].Terms[0] == f.Any[0].Terms[0] {
				needs[i].Any = append(needs[i].Any, Alternative{Terms: all, Fit: fitAlias})
			}
		}
	}
}
