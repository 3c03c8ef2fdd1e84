package web

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"
)

// kind is what a body is, as far as the tools treat it differently.
type kind string

const (
	kindHTML   kind = "html"
	kindXML    kind = "xml"
	kindJSON   kind = "json"
	kindText   kind = "text"
	kindPDF    kind = "pdf"
	kindBinary kind = "binary"
)

// kindOf judges a body by its declared type, and by its first bytes where the
// declaration is missing, says nothing or cannot be true: servers call
// everything that they do not know text/plain or octet-stream.
func kindOf(contentType string, body []byte) kind {
	media, _, _ := mime.ParseMediaType(contentType)
	sniffed := http.DetectContentType(body)
	switch {
	case sniffed == "application/pdf", media == "application/pdf" && bytes.Contains(body[:min(len(body), 1024)], []byte("%PDF-")):
		return kindPDF
	case len(body) > 0 && looksBinary(sniffed, body):
		return kindBinary
	case media == "text/html", media == "application/xhtml+xml", media == "application/vnd.wap.xhtml+xml":
		return kindHTML
	case media == "application/json", strings.HasSuffix(media, "+json"), media == "text/json":
		return kindJSON
	case media == "application/xml", media == "text/xml", strings.HasSuffix(media, "+xml"):
		return kindXML
	case strings.HasPrefix(media, "text/"):
		return kindText
	}
	return sniffText(sniffed, body)
}

// sniffText tells texts apart whose declared type says nothing of use.
func sniffText(sniffed string, body []byte) kind {
	trimmed := bytes.TrimSpace(body)
	switch {
	case strings.HasPrefix(sniffed, "text/html"):
		return kindHTML
	case strings.HasPrefix(sniffed, "text/xml"):
		return kindXML
	case len(trimmed) > 1 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed):
		return kindJSON
	}
	return kindText
}

// looksBinary: a known signature, or bytes that no text encoding uses.
func looksBinary(sniffed string, body []byte) bool {
	if strings.HasPrefix(sniffed, "text/") {
		return false
	}
	if sniffed != "application/octet-stream" {
		return true
	}
	// Texts in Shift_JIS, Big5 or UTF-16 without a mark pass here as well, for
	// they hold no control characters other than white space.
	head := body[:min(len(body), 4096)] // one stray control character makes no text binary
	controls := 0
	for _, c := range head {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b {
			controls++
		}
	}
	return controls > 2 && !utf8.Valid(head) || controls > 8 && controls*20 > len(head)
}
