package redact

import "strings"

// family says what counts as the value of a named secret.
type family struct {
	// shortest is the least length of a value that is assigned or quoted.
	shortest int
	// digit asks for a digit in values shorter than 20.
	digit bool
	// harmless are words before the name that make it something else:
	// "next_page_token".
	harmless []string
	// number hides numbers too, in a quoted member.
	number bool
}

// find takes a hint that is the end of a name, and looks for a separator and a
// value after it: password=…, "password":"…", password: …, <password>…, --password …,
// in each of JSON's levels of escaping.
func (f family) find(s string, at, end int) (span, bool) {
	name := s[nameStart(s, at):end]
	prefix := strings.Trim(strings.ToLower(name[:len(name)-(end-at)]), "_-.")
	for _, word := range f.harmless {
		if strings.HasSuffix(prefix, word) {
			return span{}, false
		}
	}
	p, ok := separator(s, end-len(name), end)
	if !ok {
		return span{}, false
	}
	if quote, from := openQuote(s, p.value); quote != "" && !f.closes(s, p, quote, from) {
		to := closeQuote(s, from, quote)
		return span{from: from, to: to}, f.secret(s[from:min(to, from+window)], name, true)
	}
	if p.quote != "" {
		return f.findNumber(s, p)
	}
	return f.findBare(s, name, p)
}

// findBare takes a value without quotes.
func (f family) findBare(s, name string, p place) (span, bool) {
	if p.value < len(s) && strings.IndexByte(stands, s[p.value]) >= 0 {
		return span{}, false
	}
	to := run(s, p.value, func(b byte) bool { return b > ' ' && b < 0x7f && strings.IndexByte("\"'`\\;&<>()[]{}|", b) < 0 })
	if to-p.value > longestWord {
		return span{from: p.value, to: to}, true // no word of prose or program text
	}
	trailing := ",.:!?" // of the sentence around it
	if p.assigned {
		trailing = ","
	}
	to = p.value + len(strings.TrimRight(s[p.value:to], trailing))
	if to < len(s) && s[to] == '(' || p.tag && !strings.HasPrefix(s[to:], "</") && !strings.HasPrefix(s[to:], `\u003c`) {
		return span{}, false // a function's call; a word in angle brackets
	}
	return span{from: p.value, to: to}, f.secret(s[p.value:to], name, p.assigned)
}

// longestWord bounds what a failure costs.
const longestWord = 256

// closes reports whether the quote after a name's separator ends a JSON string
// that the name is the end of, as in ["password:","next"].
func (f family) closes(s string, p place, quote string, from int) bool {
	if p.quote == quote {
		return false // "password":" can only be a member
	}
	return from == len(s) || s[from] <= ' ' || strings.IndexByte(",}]:\\\"", s[from]) >= 0
}

// findNumber is for "password":123456. The replacement needs the quotes of the
// name, to stay a value of JSON.
func (f family) findNumber(s string, p place) (span, bool) {
	to := run(s, p.value, func(b byte) bool { return isDigit(b) || strings.IndexByte("+-.eE", b) >= 0 })
	ok := f.number && to-p.value >= 4 && isDigit(s[to-1]) && (to == len(s) || !isWord(s[to]))
	return span{from: p.value, to: to, quote: p.quote}, ok
}

// secret tells a secret from a placeholder, a reference, a word of prose or a
// piece of program text. sure means that the value is assigned or quoted.
func (f family) secret(value, name string, sure bool) bool {
	if placeholder(value) || strings.EqualFold(value, name) || strings.HasPrefix(value, "/") && strings.HasSuffix(strings.ToLower(name), "pwd") {
		return false // PWD=/home is the working directory
	}
	if !sure {
		return len(value) >= max(6, f.shortest) && hasDigit(value) && !reference(value) && !strings.Contains(value, "://")
	}
	return len(value) >= f.shortest && !reference(value) && (!f.digit || len(value) >= 20 || hasDigit(value))
}

// stands begin a text that stands for a secret: $NAME, <name>, {name}, ***,
// [redacted].
const stands = "$<{%*["

// placeholder reports whether a text stands for a secret without being one.
func placeholder(value string) bool {
	if value == "" || strings.IndexByte(stands, value[0]) >= 0 || strings.Contains(value, "[redacted:") || strings.Trim(value, "*xX.-•…") == "" {
		return true
	}
	switch strings.ToLower(value) {
	case "null", "none", "nil", "true", "false", "undefined", "string", "str", "text", "required", "optional", "redacted", "hidden":
		return true
	}
	for _, scheme := range []string{"env://", "file://", "secretsmanager://", "ssm://", "secret://", "vault://"} {
		if strings.HasPrefix(value, scheme) {
			return true
		}
	}
	return false
}

// reference reports whether a text is a name in a program: args.password.
func reference(value string) bool {
	if !strings.Contains(value, ".") {
		return false
	}
	for part := range strings.SplitSeq(value, ".") {
		if part == "" || isDigit(part[0]) || run(part, 0, func(b byte) bool { return isWord(b) && !isDigit(b) }) != len(part) {
			return false
		}
	}
	return true
}

// nameStart is where the name that ends with a hint begins.
func nameStart(s string, at int) int {
	const longest = 64
	from := at
	for from > 0 && at-from < longest && (isToken(s[from-1]) || s[from-1] == '.') {
		from--
	}
	return wordStart(s, from, at)
}

// place is where a value begins, after a name.
type place struct {
	value    int
	quote    string // with which the name is quoted
	assigned bool   // by = or within a tag, so that no prose is meant
	tag      bool
}

func separator(s string, from, end int) (place, bool) {
	quote, i := openQuote(s, end)
	p := place{quote: quote}
	i = spaces(s, i)
	rest := s[i:]
	switch {
	case strings.HasPrefix(rest, "="), strings.HasPrefix(rest, "%3D"):
		p.assigned = i == end || quote != ""
		i += map[bool]int{true: 3, false: 1}[rest[0] == '%']
		if strings.HasPrefix(s[i:], ">") {
			i++
		}
	case strings.HasPrefix(rest, ":="):
		i += 2
	case strings.HasPrefix(rest, ":"):
		i++
	case strings.HasPrefix(rest, "："):
		i += len("：")
	case strings.HasPrefix(rest, ">") && from > 0 && s[from-1] == '<':
		i, p.assigned, p.tag = i+1, true, true
	case i > end && strings.HasPrefix(s[from:], "--"): // a command's flag
		p.assigned = true
	default:
		return place{}, false
	}
	p.value = spaces(s, i)
	p.assigned = p.assigned && p.value == i
	return p, true
}

func spaces(s string, i int) int {
	const most = 4
	return min(run(s, i, func(b byte) bool { return b == ' ' || b == '\t' }), i+most)
}

// openQuote reads a quote, escaped or not, and is where it ends; the quote is
// empty when there is none.
func openQuote(s string, i int) (string, int) {
	const deepest = 15 // four levels of JSON in JSON
	n := run(s[:min(len(s), i+deepest)], i, func(b byte) bool { return b == '\\' })
	slashes := n - i
	switch {
	case n == len(s) || strings.IndexByte("\"'`", s[n]) < 0 || slashes > 0 && s[n] != '"':
		return "", i
	case slashes&(slashes+1) != 0: // not 2ⁿ-1: the quote itself is not escaped
		return "", i
	}
	return s[i : n+1], n + 1
}

// closeQuote is where the value within a quote ends. A text in a string of JSON
// has its quotes behind 1, 3, 7 … backslashes, one level deeper each time; what
// has fewer ends an outer string, and so does a double quote within single
// ones.
func closeQuote(s string, from int, quote string) int {
	mark, level := quote[len(quote)-1], len(quote)-1
	for i := from; i < len(s); i++ {
		if s[i] != mark && s[i] != '"' {
			continue
		}
		slashes := i - max(from, runBack(s, i, func(b byte) bool { return b == '\\' }))
		switch {
		case s[i] != mark || slashes < level:
			return i - slashes
		case (slashes-level)%(2*(level+1)) == 0: // the others are escapes within the value
			return i - level
		}
	}
	return len(s)
}
