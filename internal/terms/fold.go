package terms

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

//go:embed han.txt
var hanText string

// hanForms leads from a character's other forms to the one that stands for
// all of them.
var hanForms = sync.OnceValue(func() map[rune]rune {
	forms := make(map[rune]rune, 4500)
	for line := range strings.Lines(hanText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		runes := []rune(line)
		for _, other := range runes[1:] {
			forms[other] = runes[0]
		}
	}
	return forms
})

func hanForm(r rune) rune {
	if r < 0x3400 || !unicode.Is(unicode.Han, r) {
		return r
	}
	if one, ok := hanForms()[r]; ok {
		return one
	}
	return r
}

// ignorable characters change how a text looks, not what it says: format
// characters such as zero-width blanks, variation selectors, skin tones, the
// keycap frame.
func ignorable(r rune) bool {
	if r < 0xAD {
		return false
	}
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) ||
		r >= 0x1F3FB && r <= 0x1F3FF || r == 0x20E3
}

// letterFolds are letters with a stroke or ligature, which Unicode does not
// take apart.
var letterFolds = strings.NewReplacer("ß", "ss", "æ", "ae", "œ", "oe", "ø", "o", "đ", "d", "ð", "d",
	"ł", "l", "ħ", "h", "ı", "i", "þ", "th")

// foldWord drops case and accents.
func foldWord(word string) string {
	word = strings.ToLower(word)
	if ascii(word) {
		return word
	}
	word = letterFolds.Replace(word)
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if accent(r) {
			return -1
		}
		return r
	}, norm.NFD.String(word)))
}

// accent marks are those that people leave out when they type: of Latin,
// Greek and Cyrillic letters, and the vowel points of Arabic and Hebrew. The
// voicing marks of kana are not among them.
func accent(r rune) bool {
	return r >= 0x300 && r <= 0x36F || r >= 0x64B && r <= 0x652 || r >= 0x591 && r <= 0x5C7
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
