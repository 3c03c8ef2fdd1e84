package terms

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
)

// language is a language whose word forms are known.
type language struct {
	name string
	stem func(*snowballstem.Env) bool
}

// latin are the languages that share the Latin script, so that the text has
// to show which of them it is in.
func latin() []language {
	return []language{
		{"en", english.Stem}, {"de", german.Stem}, {"fr", french.Stem}, {"es", spanish.Stem}, {"it", italian.Stem},
		{"pt", portuguese.Stem}, {"nl", dutch.Stem}, {"sv", swedish.Stem},
	}
}

//go:embed stop.txt
var stopText string

// stops leads from a word that carries no subject to its languages.
var stops = sync.OnceValue(func() map[string][]string {
	of := map[string][]string{}
	for line := range strings.Lines(stopText) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		for _, w := range fields[1:] {
			of[w] = append(of[w], fields[0])
		}
	}
	return of
})

// stop reports whether a word carries no subject in one of the languages.
func stop(word string, speaks []language) bool {
	return slices.ContainsFunc(stops()[strings.ToLower(word)], func(name string) bool {
		return !slices.ContainsFunc(latin(), named(name)) || slices.ContainsFunc(speaks, named(name))
	})
}

func named(name string) func(language) bool {
	return func(l language) bool { return l.name == name }
}

// languagesOf are the languages that the words show signs of: those with at
// least half as many signs as the one with most. Without any sign it is every
// language, because a note of two words has no sign and yet has word forms.
func languagesOf(lexemes []lexeme) []language {
	signs := map[string]int{}
	most := 0
	for _, l := range lexemes {
		if l.kind != word {
			continue
		}
		if of := stops()[strings.ToLower(l.text)]; len(of) == 1 { // a word of one language alone
			signs[of[0]]++
			most = max(most, signs[of[0]])
		}
	}
	return slices.DeleteFunc(latin(), func(l language) bool { return signs[l.name]*2 < most })
}

// maxStem is the longest word, in bytes, that is taken for a word of a
// language rather than a key, a hash or encoded data.
const maxStem = 48

// forms are the word itself, folded, and its stems.
func forms(part string, speaks []language) []string {
	all := []string{foldWord(part)}
	if len(part) > maxStem || strings.ContainsFunc(part, unicode.IsDigit) {
		return all
	}
	lower := strings.ToLower(part)
	r := []rune(lower)[0]
	switch {
	case unicode.Is(unicode.Cyrillic, r):
		speaks = []language{{"ru", russian.Stem}}
	case !unicode.Is(unicode.Latin, r):
		return all
	}
	for _, l := range speaks {
		w := lower
		if l.name == "en" {
			if base, ok := irregular()[lower]; ok {
				w = base
			}
		}
		env := snowballstem.NewEnv(w)
		l.stem(env)
		if stem := foldWord(env.Current()); stem != "" && !slices.Contains(all, stem) {
			all = append(all, stem)
		}
	}
	return all
}

//go:embed irregular.txt
var irregularText string

// irregular leads from an English form to its base.
var irregular = sync.OnceValue(func() map[string]string {
	bases := map[string]string{}
	for line := range strings.Lines(irregularText) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		for _, form := range words[1:] {
			bases[form] = words[0]
		}
	}
	return bases
})
