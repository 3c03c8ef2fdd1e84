package scan

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// spellings are a text and the other ways in which its readers take it: without
// the marks of Markdown and HTML, and as a shell or a program joins its pieces.
// They keep every line break. A spelling that changes nothing is left out.
func spellings(text string) []string {
	all := []string{text}
	for _, other := range []string{unmarked(text), joined(text)} {
		if other != text {
			all = append(all, other)
		}
	}
	return all
}

var (
	comments = lazily(`(?s)<!--.*?-->`)
	element  = lazily(`</?[A-Za-z][^<>\n]{0,200}>`)
	link     = lazily(`\[([^\[\]\n]{1,200})\]\([^()\n]{0,400}\)`)
	percent  = lazily(`%[2-7][0-9A-Fa-f]`)
	entity   = lazily(`&#?[A-Za-z0-9]{1,10};`)
)

// unmarked is a text as it looks when it is shown.
func unmarked(text string) string {
	text = comments().ReplaceAllStringFunc(text, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	text = element().ReplaceAllString(text, "")
	text = link().ReplaceAllString(text, "$1")
	text = entity().ReplaceAllStringFunc(text, func(e string) string { return strings.ReplaceAll(html.UnescapeString(e), "\n", " ") })
	text = percent().ReplaceAllStringFunc(text, func(p string) string {
		n, _ := strconv.ParseUint(p[1:], 16, 8) // two digits, as the pattern says
		return string(rune(n))
	})
	var b strings.Builder
	b.Grow(len(text))
	var before rune
	for i, r := range text {
		next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
		switch {
		case r == '|': // between the cells of a table
			b.WriteByte(' ')
		case r == '*', r == '~',
			r == '_' && !(wordRune(before) && wordRune(next)),
			r == '\\' && next != '\n' && !unicode.IsDigit(next):
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

var (
	escaped = lazily(`\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\u\{[0-9A-Fa-f]{1,6}\}|\\[0-3][0-7]{2}`)
	added   = lazily(`"[ \t]*(?:\+|\.\.?)[ \t]*"|'[ \t]*(?:\+|\.\.?)[ \t]*'`)
	split   = lazily(`\$\{IFS\}|\$IFS(?:\$\d)?`)
)

// joined is a text as a shell or a program takes it: escapes read, strings
// added up, quotes and backslashes within words left out.
func joined(text string) string {
	text = escaped().ReplaceAllStringFunc(text, func(e string) string {
		digits, base := strings.Trim(e[2:], "{}"), 16
		if e[1] != 'x' && e[1] != 'u' {
			digits, base = e[1:], 8
		}
		if n, err := strconv.ParseUint(digits, base, 32); err == nil && n >= 0x20 && utf8.ValidRune(rune(n)) {
			return string(rune(n))
		}
		return e
	})
	text = added().ReplaceAllString(text, "")
	text = split().ReplaceAllString(text, " ")
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case (c == '"' || c == '\'') && i+2 < len(text) && text[i+1] == c && letter(text[i+2]) && i > 0 && letter(text[i-1]):
			i++
			continue
		case c == '\\' && i+1 < len(text) && letter(text[i+1]) && (i == 0 || letter(text[i-1]) || text[i-1] == ' ' || text[i-1] == '|'):
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '/' || c == '-' }

// Texts that hold another: base64 of both alphabets (RFC 4648 sections 4 and 5)
// and hexadecimal, long enough to say something.
var (
	blob    = lazily(`[A-Za-z0-9+/]{20,}`)
	urlBlob = lazily(`[A-Za-z0-9_-]{20,}`)
	hexBlob = lazily(`(?:[0-9A-Fa-f]{2}){16,}`)
	piece   = lazily(`^[A-Za-z0-9+/_-]{16,}={0,2}$`)
)

// deepest is how often an encoding is looked for within another.
const deepest = 3

// hidden is a text that another one encodes, and its line there.
type hidden struct {
	text string
	line int
}

// encodings are the texts that a text holds in an encoding. An encoding may
// run over lines, as programs wrap it.
func encodings(lines []string) []hidden {
	var all []hidden
	try := func(text string, line int) {
		for _, decoded := range decode(text) {
			all = append(all, hidden{decoded, line})
		}
	}
	var whole strings.Builder
	from := 0
	for i, line := range lines {
		try(line, i+1)
		if bare := strings.Trim(line, " \t\r\"'`,\\+#>*/"); piece().MatchString(bare) {
			if whole.Len() == 0 {
				from = i + 1
			}
			whole.WriteString(bare)
			continue
		}
		if whole.Len() > 0 {
			try(whole.String(), from)
			whole.Reset()
		}
	}
	if whole.Len() > 0 {
		try(whole.String(), from)
	}
	return all
}

// decode gives what is text of the encodings in a line.
func decode(line string) []string {
	var all []string
	keep := func(content []byte, err error) {
		if err != nil {
			return
		}
		text := strings.ReplaceAll(string(content), "\x00", "") // UTF-16, as PowerShell takes it
		if utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
			all = append(all, text)
		}
	}
	for _, b := range hexBlob().FindAllString(line, -1) {
		keep(hex.DecodeString(b))
	}
	for _, b := range blob().FindAllString(line, -1) {
		keep(base64.RawStdEncoding.DecodeString(whole(b)))
	}
	if strings.ContainsAny(line, "-_") {
		for _, b := range urlBlob().FindAllString(line, -1) {
			keep(base64.RawURLEncoding.DecodeString(whole(b)))
		}
	}
	return all
}

// whole leaves out a last character that no encoding ends with.
func whole(b string) string {
	if len(b)%4 == 1 {
		return b[:len(b)-1]
	}
	return b
}

// look finds what the rules of the table say of a text and of what is encoded
// in it. A finding is one of the file's line, however the line is spelled.
func look(d document, text string, depth int) []Finding {
	var all []Finding
	type place struct {
		rule string
		line int
	}
	seen := map[place]Severity{}
	for i, spelled := range spellings(text) {
		other := d
		if i > 0 || d.folded == "" {
			other.read(spelled)
			other.raw = d.raw
		}
		for _, f := range append(other.match(rules()), other.fetchedThenRun()...) {
			at := place{f.Rule, f.Line}
			if i > 0 && seen[at].AtLeast(f.Severity) {
				continue
			}
			seen[at] = f.Severity
			all = append(all, f)
		}
	}
	if depth == deepest {
		return all
	}
	found := encodings(strings.Split(text, "\n"))
	if len(found) == 0 {
		return all
	}
	// All of them are one text, for a file may hold thousands.
	var inner strings.Builder
	var lines []int
	for _, h := range found {
		inner.WriteString(h.text + "\n")
		for range strings.Count(h.text, "\n") + 1 {
			lines = append(lines, h.line)
		}
	}
	for _, f := range look(read(d.path, inner.String()), inner.String(), depth+1) {
		if !f.Severity.AtLeast(Medium) {
			continue
		}
		f.Line = lines[f.Line-1]
		f.Severity, f.Evidence = High, d.excerpt(f.Line)
		if depth == 0 {
			f.Message = "in an encoding: " + f.Message
		}
		all = append(all, f)
	}
	return all
}
