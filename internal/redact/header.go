package redact

import (
	"encoding/base64"
	"strings"
)

// findBearer takes a hint "bearer ": a token, not the next word of a sentence.
func findBearer(s string, at, end int) (span, bool) {
	to := run(s, end, func(b byte) bool { return isBase64(b) || b == '.' || b == '~' })
	return span{from: end, to: to}, boundary(s, at) && to-end >= 16 && hasDigit(s[end:to])
}

// findBasic takes a hint "basic ": base64 of user:password (RFC 7617).
func findBasic(s string, at, end int) (span, bool) {
	const longest = 1024
	to := run(s[:min(len(s), end+longest)], end, isBase64)
	if !boundary(s, at) || to-end < 8 {
		return span{}, false
	}
	text, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s[end:to], "="))
	ok := err == nil && strings.IndexByte(string(text), ':') > 0 && run(string(text), 0, func(b byte) bool { return b >= ' ' }) == len(text)
	return span{from: end, to: to}, ok
}

// schemes of an Authorization header. Those that are true have parameters, up
// to the end of the line.
var schemes = map[string]bool{"bearer": false, "basic": false, "token": false, "bot": false, "apikey": false,
	"negotiate": false, "key": false, "digest": true, "aws4-hmac-sha256": true, "oauth": true, "hawk": true, "signature": true}

// findAuthorization takes a hint "authorization", the name of a header or
// member, and hides the value behind its scheme.
func findAuthorization(s string, at, end int) (span, bool) {
	const longest = 512 // of a text without any digit, which is no token then
	p, ok := separator(s, at, end)
	if !ok {
		return span{}, false
	}
	from, lineEnd := headerValue(s, p)
	near := s[from:min(len(s), from+longest)]
	word := run(near, 0, isToken)
	parameters, known := schemes[strings.ToLower(near[:word])]
	switch {
	case known && parameters && word < len(near) && near[word] == ' ':
		return span{from: from + word + 1, to: lineEnd()}, strings.Contains(near[:run(near, 0, lineByte)], "=")
	case known && word < len(near) && near[word] == ' ':
		from += word + 1
		to := run(s, from, valueByte)
		return span{from: from, to: to}, to-from >= 6 && !placeholder(s[from:to])
	case !hasDigit(near[:run(near, 0, valueByte)]):
		return span{}, false
	}
	to := run(s, from, valueByte)
	return span{from: from, to: to}, to-from >= 16 && !placeholder(s[from:to])
}

// findCookie takes a hint "cookie": the pairs of a Cookie or Set-Cookie header.
func findCookie(s string, at, end int) (span, bool) {
	p, ok := separator(s, at, end)
	if !ok {
		return span{}, false
	}
	from, lineEnd := headerValue(s, p)
	name := run(s, from, isToken)
	if name == from || name == len(s) || s[name] != '=' || run(s, name+1, valueByte)-name <= 6 {
		return span{}, false
	}
	return span{from: from, to: lineEnd()}, true
}

// headerValue is where a header's value begins, and how to find its end, which
// is worth the search only when the value is a secret.
func headerValue(s string, p place) (from int, end func() int) {
	if quote, inside := openQuote(s, p.value); quote != "" && p.quote == quote {
		return inside, func() int { return closeQuote(s, inside, quote) }
	}
	return p.value, func() int { return run(s, p.value, lineByte) }
}

// lineByte is a byte of a header's line within any quotes or escapes.
func lineByte(b byte) bool { return b >= ' ' && strings.IndexByte("\"'`\\", b) < 0 }

// valueByte is a byte of a single value.
func valueByte(b byte) bool { return b > ' ' && b < 0x7f && strings.IndexByte("\"'`\\,;", b) < 0 }
