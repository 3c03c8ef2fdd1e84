package page

import (
	"bytes"
	"mime"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
)

// metaWindow is how far into a document a declaration is looked for. The
// standard says 1 024 bytes (HTML §13.2.3.2); many pages put it later, behind
// scripts, and browsers find it there too.
const metaWindow = 16 << 10

// Declarations inside a document: <meta charset=…>, its older http-equiv form
// (HTML §4.2.5.4), and the XML declaration (XML 1.0 §2.8).
var (
	metaCharset = regexp.MustCompile(`(?i)<meta\s[^>]*?charset\s*=\s*["']?\s*([a-z0-9_:.()-]+)`)
	xmlEncoding = regexp.MustCompile(`(?i)^\s*<\?xml\s[^>]*?encoding\s*=\s*["']([a-z0-9_:.-]+)`)
	htmlLang    = regexp.MustCompile(`(?i)<html\s[^>]*?lang\s*=\s*["']?([a-z]{2,3}(?:-[a-z]+)*)`)
)

// Decode turns a body into valid UTF-8 without NUL and says which encoding it
// was in. The order is that of the Encoding standard: byte order mark, the
// Content-Type header, the document's own declaration; after that the content
// is judged. A declaration that the bytes contradict is passed over, because
// servers that send one default header for every file are common.
func Decode(body []byte, contentType string) (text, name string) {
	if rest, n := byteOrderMark(body); n != "" {
		e, _ := charset.Lookup(n)
		return decodeWith(e, rest), n
	}
	head := body[:min(len(body), metaWindow)]
	markup := bytes.IndexByte(head, '<') >= 0
	declared := []string{headerCharset(contentType)}
	if markup {
		declared = append(declared, submatch(metaCharset, head), submatch(xmlEncoding, head))
	}
	for _, label := range declared {
		if e, n := lookup(label); e != nil && !contradicts(body, e, n) {
			return decodeWith(e, body), n
		}
	}
	n := guess(body, submatch(htmlLang, head))
	e, _ := lookup(n)
	return decodeWith(e, body), n
}

func byteOrderMark(body []byte) (rest []byte, name string) {
	for _, bom := range []struct{ mark, name string }{
		{"\xef\xbb\xbf", "utf-8"}, {"\xff\xfe", "utf-16le"}, {"\xfe\xff", "utf-16be"},
	} {
		if rest, ok := bytes.CutPrefix(body, []byte(bom.mark)); ok {
			return rest, bom.name
		}
	}
	return body, ""
}

func headerCharset(contentType string) string {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil { // a broken parameter does not spoil the charset before it
		_, after, _ := strings.Cut(strings.ToLower(contentType), "charset=")
		after, _, _ = strings.Cut(after, ";")
		return strings.Trim(after, ` "'`)
	}
	return params["charset"]
}

func submatch(r *regexp.Regexp, b []byte) string {
	if m := r.FindSubmatch(b); m != nil {
		return string(m[1])
	}
	return ""
}

// lookup finds an encoding by a label. Text declared as GB2312 or GBK is read
// as their superset; a declaration readable as ASCII cannot be UTF-16.
func lookup(label string) (encoding.Encoding, string) {
	e, name := charset.Lookup(label)
	switch {
	case e == nil || name == "replacement":
		return nil, ""
	case name == "utf-8", strings.HasPrefix(name, "utf-16"):
		return unicode.UTF8, "utf-8"
	case name == "gbk":
		return simplifiedchinese.GB18030, name
	}
	return e, name
}

// contradicts reports that the bytes cannot be what was declared: UTF-8
// sequences under a single-byte Latin label, or more than a fifth of what is
// not ASCII undecodable. A few damaged characters contradict nothing.
func contradicts(body []byte, e encoding.Encoding, name string) bool {
	if name == "windows-1252" || strings.HasPrefix(name, "iso-8859-") {
		return multibyte(body) && validUTF8(body)
	}
	if name == "utf-8" && validUTF8(body) {
		return false
	}
	sample := body[:min(len(body), sampleSize)]
	broken, high := 0, 0
	for _, r := range decodeWith(e, sample) {
		if r >= 0x80 {
			high++
		}
		if r == utf8.RuneError {
			broken++
		}
	}
	return broken > 3 && broken*5 > high
}

func multibyte(body []byte) bool {
	return bytes.ContainsFunc(body, func(r rune) bool { return r >= 0x80 && r != utf8.RuneError })
}

// validUTF8 allows for a last character that a size limit cut.
func validUTF8(body []byte) bool {
	for range utf8.UTFMax {
		if utf8.Valid(body) {
			return true
		}
		if len(body) == 0 {
			break
		}
		body = body[:len(body)-1]
	}
	return false
}

// decodeWith decodes and makes the text storable: no broken UTF-8, no NUL, no
// half character at the end.
func decodeWith(e encoding.Encoding, body []byte) string {
	var text string
	if e == nil || e == unicode.UTF8 {
		text = string(body)
	} else if b, err := e.NewDecoder().Bytes(body); err == nil {
		text = string(b)
	} else {
		text = string(body)
	}
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	text = strings.TrimSuffix(text, string(utf8.RuneError))
	return strings.ReplaceAll(text, "\x00", "")
}
