package pdftext

import (
	"bytes"
	"encoding/hex"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/ledongthuc/pdf"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

const (
	maxCMap    = 4 << 20 // bytes of one ToUnicode map
	maxEntries = 1 << 17 // codes of one map
)

// font maps the codes of a string to characters.
type font struct {
	toUnicode map[string]string // by code, as bytes
	codeBytes int               // bytes of a code, where toUnicode is used
	decoder   encoding.Encoding // of a predefined CMap
	utf16     bool              // codes are UTF-16
	other     pdf.TextEncoding
}

// newFont reads what a font says of its codes: the ToUnicode map first, which
// is made for this; then the name of its encoding.
func newFont(v pdf.Value) *font {
	f := &font{codeBytes: 1}
	name := v.Key("Encoding").Name()
	if v.Key("Subtype").Name() == "Type0" {
		f.codeBytes = 2
	}
	if m := v.Key("ToUnicode"); m.Kind() == pdf.Stream {
		f.toUnicode = readCMap(m)
	}
	if len(f.toUnicode) > 0 {
		return f
	}
	switch label := predefined(name); label {
	case "":
		f.other = (&pdf.Font{V: v}).Encoder()
	case "utf-16":
		f.utf16 = true
	default:
		f.decoder, _ = charset.Lookup(label)
	}
	return f
}

// predefined names the charset of a predefined CMap (§9.7.5.2, table 118);
// those in codes of their own, such as GB-H, are left to the reader.
func predefined(cmap string) string {
	switch {
	case strings.Contains(cmap, "-UCS2-"), strings.Contains(cmap, "-UTF16-"):
		return "utf-16"
	case strings.HasPrefix(cmap, "GBK"), strings.HasPrefix(cmap, "GB-EUC"), strings.HasPrefix(cmap, "GBpc"):
		return "gbk"
	case strings.HasPrefix(cmap, "B5pc"), strings.HasPrefix(cmap, "ETen"), strings.HasPrefix(cmap, "HKscs"):
		return "big5"
	case strings.Contains(cmap, "RKSJ"):
		return "shift_jis"
	case strings.HasPrefix(cmap, "EUC-"):
		return "euc-jp"
	case strings.HasPrefix(cmap, "KSC-EUC"), strings.HasPrefix(cmap, "KSCms"), strings.HasPrefix(cmap, "KSCpc"):
		return "euc-kr"
	}
	return ""
}

func (f *font) decode(raw string) string {
	switch {
	case len(f.toUnicode) > 0:
		return f.mapped(raw)
	case f.utf16:
		return decodeUTF16([]byte(raw))
	case f.decoder != nil:
		text, _ := f.decoder.NewDecoder().String(raw)
		return text
	case f.other != nil:
		return f.other.Decode(raw)
	}
	return raw
}

func (f *font) mapped(raw string) string {
	var b strings.Builder
	for len(raw) > 0 {
		n := min(f.codeBytes, len(raw))
		text, known := f.toUnicode[raw[:n]]
		if !known && n == 2 { // maps with codes of mixed length exist
			if text, known = f.toUnicode[raw[:1]]; known {
				n = 1
			}
		}
		b.WriteString(text)
		raw = raw[n:]
	}
	return b.String()
}

// width estimates the width of a text in units of the font size: the widths
// in the file describe codes, and an estimate is enough to see a gap.
func (f *font) width(text string) float64 {
	width := 0.0
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			width++
		case strings.ContainsRune("iljtfI.,:;'|!() ", r):
			width += 0.28
		case strings.ContainsRune("mwMW", r):
			width += 0.8
		case unicode.IsUpper(r):
			width += 0.65
		default:
			width += 0.5
		}
	}
	return width
}

// The sections of a CMap (Adobe technical note 5411).
var (
	cmapChars  = regexp.MustCompile(`(?s)beginbfchar(.*?)endbfchar`)
	cmapRanges = regexp.MustCompile(`(?s)beginbfrange(.*?)endbfrange`)
	cmapToken  = regexp.MustCompile(`<[0-9A-Fa-f\s]*>|\[|\]`)
)

func readCMap(v pdf.Value) map[string]string {
	text, _ := io.ReadAll(io.LimitReader(v.Reader(), maxCMap))
	m := map[string]string{}
	for _, section := range cmapChars.FindAllSubmatch(text, -1) {
		tokens := cmapToken.FindAll(section[1], -1)
		for i := 0; i+1 < len(tokens) && len(m) < maxEntries; i += 2 {
			m[string(unhex(tokens[i]))] = decodeUTF16(unhex(tokens[i+1]))
		}
	}
	for _, section := range cmapRanges.FindAllSubmatch(text, -1) {
		readRanges(m, cmapToken.FindAll(section[1], -1))
	}
	return m
}

// readRanges reads "<from> <to> <first>" and "<from> <to> [<one> <two> …]".
func readRanges(m map[string]string, tokens [][]byte) {
	for len(tokens) >= 3 {
		from, to := unhex(tokens[0]), unhex(tokens[1])
		tokens = tokens[2:]
		if string(tokens[0]) != "[" {
			first := unhex(tokens[0])
			for code := from; bytes.Compare(code, to) <= 0 && len(code) > 0 && len(m) < maxEntries; code, first = next(code), next(first) {
				m[string(code)] = decodeUTF16(first)
				if code[len(code)-1] == 0xff { // a range stays within its last byte
					break
				}
			}
			tokens = tokens[1:]
			continue
		}
		tokens = tokens[1:]
		for code := from; len(tokens) > 0 && string(tokens[0]) != "]"; code, tokens = next(code), tokens[1:] {
			m[string(code)] = decodeUTF16(unhex(tokens[0]))
		}
		if len(tokens) > 0 {
			tokens = tokens[1:]
		}
	}
}

// next counts a big-endian number up by one.
func next(code []byte) []byte {
	n := bytes.Clone(code)
	for i := len(n) - 1; i >= 0; i-- {
		if n[i]++; n[i] != 0 {
			break
		}
	}
	return n
}

func unhex(token []byte) []byte {
	digits := bytes.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789abcdefABCDEF", r) {
			return r
		}
		return -1
	}, token)
	b := make([]byte, len(digits)/2)
	n, _ := hex.Decode(b, digits[:len(b)*2])
	return b[:n]
}

func decodeUTF16(b []byte) string {
	if len(b) == 1 {
		return string(rune(b[0]))
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i])<<8 | uint16(b[2*i+1])
	}
	return string(utf16.Decode(units))
}
