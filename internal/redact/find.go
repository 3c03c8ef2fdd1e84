package redact

import (
	"encoding/base64"
	"strings"
)

// findJWT takes a hint ".eyJ": a signed token has a header before and a
// payload after the dot, both objects and so both beginning like that
// (RFC 7519). The runs between dots are disjoint, so the work is linear.
func findJWT(s string, at, _ int) (span, bool) {
	from := runBack(s, at, isToken)
	i := strings.Index(s[from:at], "eyJ")
	if i < 0 || !boundary(s, from+i) {
		return span{}, false
	}
	to := run(s, at+1, isToken)
	if to == len(s) || s[to] != '.' {
		return span{}, false
	}
	return span{from: from + i, to: run(s, to+1, isToken)}, true
}

// findJWE takes the beginning of the header of an encrypted token: five parts,
// the third 96 or 128 bits of nonce, the last 128 to 256 bits of tag (RFC 7516,
// RFC 7518 §5).
func findJWE(s string, at, _ int) (span, bool) {
	const longest = 1024 // of the first two parts, so that a failure is cheap
	to, lengths := at, [5]int{}
	for part := range lengths {
		from := to
		bound := len(s)
		if part < 2 {
			bound = min(bound, from+longest)
		}
		to = run(s[:bound], from, isToken)
		lengths[part] = to - from
		switch {
		case part == 2 && lengths[part] != 16 && lengths[part] != 22:
			return span{}, false
		case part == 4:
			return span{from: at, to: to}, boundary(s, at) && lengths[3] > 0 && lengths[4] >= 22 && lengths[4] <= 43
		case to == len(s) || s[to] != '.':
			return span{}, false
		}
		to++
	}
	return span{}, false
}

// findTelegram takes a hint ":A" or "%3AA": a bot's number before, 35
// characters from the A on. In a URL "bot" stands before the number.
func findTelegram(s string, at, end int) (span, bool) {
	from := runBack(s, at, isDigit)
	to := run(s, end-1, isToken)
	digits, secret := at-from, to-(end-1)
	if digits < 6 || digits > 12 || secret < 33 || secret > 37 || s[end-1] != 'A' {
		return span{}, false
	}
	if !boundary(s, from) && !strings.HasSuffix(strings.ToLower(s[:from][max(0, from-3):]), "bot") {
		return span{}, false
	}
	return span{from: from, to: to}, true
}

// dotsApart is how far the second dot of a Discord token is from the first: six
// characters of time are between them. The token has no literal but these dots,
// so they are looked for beside the automaton.
const dotsApart = 7

// findDiscord takes the first dot: a bot's number in base64 before, the time
// and a second dot after, then the code.
func findDiscord(s string, at, _ int) (span, bool) {
	second := at + dotsApart
	if second >= len(s) || s[second] != '.' {
		return span{}, false
	}
	from := runBack(s, at, isToken)
	if run(s, at+1, isToken) != second || at-from < 22 || at-from > 30 {
		return span{}, false
	}
	from = wordStart(s, from, at)
	number, err := base64.RawStdEncoding.DecodeString(s[from:at])
	to := run(s, second+1, isToken)
	if err != nil || len(number) < 16 || to-second < 25 || run(string(number), 0, isDigit) != len(number) {
		return span{}, false
	}
	return span{from: from, to: to}, true
}

// findLine takes the end that all long-lived channel tokens share.
func findLine(s string, at, end int) (span, bool) {
	from := at
	for from > 0 && (isWord(s[from-1]) || s[from-1] == '+' || s[from-1] == '/' || s[from-1] == '\\' && s[from] == '/') {
		from--
	}
	from = wordStart(s, from, at)
	if end-from < 100 {
		return span{}, false
	}
	return span{from: from, to: end}, true
}

// findPEM takes a hint "PRIVATE KEY": the body of a PEM block (RFC 7468), also
// one without an end. A quote would be the end of the string that holds it.
func findPEM(s string, at, end int) (span, bool) {
	const begin, finish, longest = "-----BEGIN ", "-----END ", 16 << 10
	before := s[max(0, at-len(begin)-len("ENCRYPTED ")):at]
	start := strings.LastIndex(before, begin)
	if start < 0 || s[at:end] != "PRIVATE KEY" || strings.Contains(before[start+len(begin):], "-") {
		return span{}, false
	}
	rest := strings.TrimPrefix(s[end:min(len(s), end+longest)], " BLOCK")
	from := min(len(s), end+longest) - len(rest)
	rest, ok := strings.CutPrefix(rest, "-----")
	if !ok {
		return span{}, false
	}
	from += len("-----")
	quote := strings.IndexByte(rest, '"')
	if i := strings.Index(rest, finish); i > 0 && (quote < 0 || i < quote) {
		return span{from: from, to: from + i}, true
	}
	for n := from; ; { // lines of base64, the line ends as they are or escaped
		next := run(s, n, func(b byte) bool { return isBase64(b) || b == '\r' || b == '\n' })
		if next+1 < len(s) && s[next] == '\\' && (s[next+1] == 'n' || s[next+1] == 'r') {
			n = next + 2
			continue
		}
		return span{from: from, to: next}, next-from >= 32
	}
}

// findURL takes a hint "://": the password of a URL or connection string.
func findURL(s string, _, end int) (span, bool) {
	const longest = 512
	colon, at := -1, -1
	for i := end; i < min(len(s), end+longest); i++ {
		b := s[i]
		if b <= ' ' || b >= 0x7f || strings.IndexByte("/\\\"'`<>?", b) >= 0 {
			break
		}
		switch {
		case b == ':' && colon < 0:
			colon = i
		case b == '@' && colon >= 0:
			at = i // the last one: a password may have it too
		case (b == '@' || b == '[') && colon < 0: // no password, or an IPv6 address
			return span{}, false
		}
	}
	if at < colon+2 || placeholder(s[colon+1:at]) {
		return span{}, false
	}
	return span{from: colon + 1, to: at}, true
}
