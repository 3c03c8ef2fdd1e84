package redact

import (
	"regexp"
	"strings"
	"sync"
)

// form is one kind of secret.
type form struct {
	name string
	// hints are literals, without regard to ASCII case. Every secret of the
	// form has one of them, where find or pattern expects it. (Discord's has
	// none, see dotsApart.)
	hints []string
	// pattern is an RE2 expression that begins with the hint; its first group,
	// or else all of it, is the secret. It must fail within a bounded number of
	// bytes (no open repetition before something that must follow), so that no
	// text makes it slow.
	pattern string
	// exact refuses a match that is followed by a letter, digit, _ or -.
	exact bool
	// find is for what no such expression says.
	find func(s string, at, end int) (span, bool)
	// example is a text with one made-up secret of the form.
	example string

	compiled func() *regexp.Regexp
}

// span is what to replace. quote goes on both sides of the replacement.
type span struct {
	from, to int
	quote    string
}

// window is how far a pattern looks; no token of a known form is longer.
const window = 8 << 10

// prepare makes the expression compile at its first use: most texts need none.
func (f *form) prepare() {
	if f.pattern != "" {
		f.compiled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\A(?:` + f.pattern + `)`) })
	}
}

// match looks for a secret whose hint is s[at:end].
func (f *form) match(s string, at, end int) (span, bool) {
	if f.find != nil {
		return f.find(s, at, end)
	}
	if isToken(s[at]) && !boundary(s, at) {
		return span{}, false
	}
	m := f.compiled().FindStringSubmatchIndex(s[at:min(len(s), at+window)])
	if m == nil || f.exact && at+m[1] < len(s) && isToken(s[at+m[1]]) {
		return span{}, false
	}
	if len(m) > 2 && m[2] >= 0 {
		return span{from: at + m[2], to: at + m[3]}, true
	}
	return span{from: at, to: at + m[1]}, true
}

func whole(text string) func(string, int, int) (span, bool) {
	return func(s string, at, end int) (span, bool) { return span{from: at, to: end}, s[at:end] == text }
}

func isWord(b byte) bool  { return 'a' <= lower(b) && lower(b) <= 'z' || isDigit(b) || b == '_' }
func isToken(b byte) bool { return isWord(b) || b == '-' } // base64url, RFC 4648 §5
func isDigit(b byte) bool { return '0' <= b && b <= '9' }
func isHex(b byte) bool   { return isDigit(b) || 'a' <= lower(b) && lower(b) <= 'f' }
func isBase64(b byte) bool {
	return isToken(b) || b == '+' || b == '/' || b == '='
}

// boundary reports whether a word begins at a place of the text. The escapes
// of JSON ("\n", "\u0026") and of URLs ("%20") end in letters or digits but are
// no part of a word.
func boundary(s string, at int) bool {
	if at == 0 || !isToken(s[at-1]) {
		return true
	}
	switch {
	case at >= 2 && s[at-2] == '\\' && strings.IndexByte("nrtbf", s[at-1]) >= 0:
		return true
	case at >= 3 && s[at-3] == '%' && isHex(s[at-2]) && isHex(s[at-1]):
		return true
	}
	return at >= 6 && s[at-6] == '\\' && s[at-5] == 'u' && isHex(s[at-4]) && isHex(s[at-3]) && isHex(s[at-2]) && isHex(s[at-1])
}

// wordStart moves the beginning of a run of letters past the end of an escape
// of JSON before it.
func wordStart(s string, from, to int) int {
	switch {
	case from == 0 || s[from-1] != '\\' || from == to:
		return from
	case s[from] == 'u':
		return min(to, from+5)
	}
	return from + 1
}

// run is where the bytes that ok accepts end.
func run(s string, from int, ok func(byte) bool) int {
	for from < len(s) && ok(s[from]) {
		from++
	}
	return from
}

// runBack is where the bytes before a place that ok accepts begin.
func runBack(s string, to int, ok func(byte) bool) int {
	for to > 0 && ok(s[to-1]) {
		to--
	}
	return to
}

// hasDigit tells a token from a word.
func hasDigit(s string) bool {
	return strings.ContainsAny(s, "0123456789")
}
