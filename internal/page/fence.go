package page

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The fence around text that came from the web. A model is told by it where
// the words of a stranger begin and end.
const (
	fenceWord  = "pawgate-untrusted"
	FenceBegin = "<" + fenceWord + ">"
	FenceEnd   = "</" + fenceWord + ">"
)

// neutral stands where a text repeated the fence's word.
const neutral = "[marker removed]"

// Fence wraps text from the web. Inside it the fence's word does not occur, in
// whatever spelling: see Neutralize.
func Fence(text string) string {
	return FenceBegin + "\n" + Neutralize(text) + "\n" + FenceEnd
}

// Neutralize replaces the fence's word in a text, so that no page can close
// the fence early or open one of its own. Spellings that look alike count:
// other case, full-width and accented letters, look-alikes of other alphabets,
// with hyphens, spaces or invisible characters between the letters.
func Neutralize(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r == 'p' || r == 'P' || r >= 0x80 }) {
		return text
	}
	target := strings.ReplaceAll(fenceWord, "-", "")
	var b strings.Builder
	done := 0
	for start := 0; start < len(text); {
		if c := text[start]; c < 0x80 && c != 'p' && c != 'P' { // most of most texts
			start++
			continue
		}
		size := runeLen(text[start:])
		if fold(text[start:start+size]) != target[:1] {
			start += size
			continue
		}
		end := matchFolded(text[start:], target)
		if end == 0 {
			start += size
			continue
		}
		b.WriteString(text[done:start])
		b.WriteString(neutral)
		done = start + end
		start = done
	}
	if done == 0 {
		return text
	}
	b.WriteString(text[done:])
	return b.String()
}

// matchFolded is the length of the beginning of text that reads as target;
// zero when it does not.
func matchFolded(text, target string) int {
	matched := 0
	for i := 0; i < len(text); {
		size := runeLen(text[i:])
		folded := fold(text[i : i+size])
		i += size
		switch {
		case folded == "":
		case strings.HasPrefix(target[matched:], folded):
			matched += len(folded)
		default:
			return 0
		}
		if matched == len(target) {
			return i
		}
	}
	return 0
}

// runeLen is the size of a character with the marks that belong to it.
func runeLen(s string) int {
	for i, r := range s {
		if i > 0 && !unicode.Is(unicode.Mn, r) {
			return i
		}
	}
	return len(s)
}

// lookAlikes are letters of other alphabets that a reader takes for a letter
// of the fence's word.
var lookAlikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'р': 'p', 'ѕ': 's', 'ԁ': 'd', 'ԝ': 'w', 'ɡ': 'g', 'т': 't', 'ѡ': 'w', 'п': 'n', 'г': 'r', 'ц': 'u', 'ս': 'u', 'ո': 'n',
	'α': 'a', 'ε': 'e', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'η': 'n', 'ω': 'w', 'ı': 'i', 'ꮪ': 's', 'ᴀ': 'a', 'ᴘ': 'p', 'ᴡ': 'w', 'ɢ': 'g', 'ᴛ': 't', 'ᴇ': 'e', 'ᴜ': 'u', 'ɴ': 'n', 'ʀ': 'r', 'ꜱ': 's', 'ᴅ': 'd',
	'0': 'o', '3': 'e', '4': 'a', '5': 's',
}

// fold brings one character to the letter it reads as; empty for what a reader
// passes over between letters.
func fold(char string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(char) {
		r = unicode.ToLower(r)
		if alike, ok := lookAlikes[r]; ok {
			r = alike
		}
		switch {
		case unicode.In(r, unicode.Mn, unicode.Cf, unicode.Zs, unicode.Cc, unicode.Pd), r == '_', r == '.', r == '\\', r == '\u2028', r == '\u2029':
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
