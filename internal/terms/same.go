package terms

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The bounds within which two texts say the same.
const (
	leastKeys    = 3    // of the shorter text; fewer tell too little
	leastShare   = 0.75 // of the longer one's keys, how many the shorter must have
	leastInOrder = 0.6  // of the shorter one's neighbouring keys, how many the longer must have, too
)

// negations turn a sentence round, so they are never beside the point.
var negations = []string{"not", "no", "never", "cannot", "nicht", "kein", "keine", "nie", "pas", "jamais", "nunca", "non", "mai", "não", "niet", "geen",
	"inte", "не", "нет"}

// Same reports whether two texts say the same in nearly the same words: all
// keys of the shorter one are in the longer one, which has few others, and
// most of them stand in the same order. "In March Ann moved to Rome" says the
// same as "Ann moved to Rome in March", while "Ann moved to Paris in March",
// "Ann never moved to Rome" and "Rome moved to Ann" do not.
func Same(a, b string) bool {
	short, long := Keys(a), Keys(b)
	if len(short) > len(long) {
		short, long = long, short
	}
	if len(short) < leastKeys || float64(len(short)) < leastShare*float64(len(long)) {
		return false
	}
	for _, key := range short {
		if !slices.Contains(long, key) {
			return false
		}
	}
	if negated(short) != negated(long) {
		return false
	}
	inOrder := 0
	for i := range len(short) - 1 {
		at := slices.Index(long, short[i])
		if at+1 < len(long) && long[at+1] == short[i+1] {
			inOrder++
		}
	}
	return float64(inOrder) >= leastInOrder*float64(len(short)-1)
}

func negated(keys []string) bool {
	return slices.ContainsFunc(keys, func(k string) bool {
		return slices.Contains(negations, k) || strings.HasSuffix(k, "n't") || k == "不" || k == "没" || k == "无" || k == "未"
	})
}

// Keys are what a text is about, in its order and each once: its words without
// function words, by their stems, and the single characters of scripts without
// blanks. Every key is a term of the text.
func Keys(text string) []string {
	lexemes := scan(normalize(text, MaxQuestion))
	speaks := languagesOf(lexemes)
	var keys []string
	add := func(key string) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, l := range lexemes {
		switch {
		case len(keys) >= MaxNeeds:
			return keys
		case l.kind == symbol:
			add(l.text)
		case l.kind == unspaced:
			for _, gram := range grams(l.text) {
				if utf8.RuneCountInString(gram) == 1 {
					add(gram)
				}
			}
		case l.simple():
			w := strings.ToLower(l.part(0))
			if !stop(w, speaks) || slices.Contains(negations, w) {
				add(stemOf(w, speaks))
			}
		case l.kind == word:
			add(foldWord(l.text))
		}
	}
	return keys
}

// stemOf is the one form that stands for a word: its English stem where the
// text may be English, or that of its first language.
func stemOf(w string, speaks []language) string {
	all := forms(w, speaks[:1])
	return all[len(all)-1]
}
