// Package pdftext reads the text of a PDF file.
//
// The objects of the file are read by github.com/ledongthuc/pdf, a pure-Go
// reader that is kept up and bounds its recursion. Its own text functions lose
// words of fonts that only a ToUnicode map explains and panic on Chinese,
// Japanese and Korean fonts without one, so the walk over a page's operators
// (ISO 32000-1 §9.4) and the mapping of codes to characters (§9.10) are here.
//
// The package never opens an encrypted file, draws nothing, and reads no text
// out of pictures: a scanned page has no text.
package pdftext

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/ledongthuc/pdf"
)

// Bounds on one file.
const (
	maxPages  = 2000
	maxText   = 4 << 20  // bytes of text
	maxStream = 16 << 20 // decompressed bytes of one content stream
	maxSize   = 64 << 20 // largest length or count that a dictionary may claim
	maxNumber = 4 << 20  // largest object number; the reader allocates by it
)

// The ways in which a file has no text to give.
var (
	ErrEncrypted = errors.New("the PDF is encrypted")
	ErrDamaged   = errors.New("the PDF is damaged")
)

// Text is what a file says.
type Text struct {
	Pages []string // text of each page; empty for a page of pictures
	Total int      // pages of the file
	// Unread counts pages that could not be read.
	Unread int
	Title  string
}

// Read takes the text out of a file. It stops at the context's deadline with
// the pages read so far.
func Read(ctx context.Context, body []byte) (Text, error) {
	done := make(chan struct{})
	var text Text
	var err error
	go func() { // a hostile file may keep the reader busy; the caller need not wait
		defer close(done)
		text, err = read(ctx, body)
	}()
	select {
	case <-done:
		return text, err
	case <-ctx.Done():
		return Text{}, ctx.Err()
	}
}

func read(ctx context.Context, body []byte) (text Text, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	body, err = normalize(body)
	if err != nil {
		return Text{}, err
	}
	file, err := pdf.NewReader(bytes.NewReader(body), int64(len(body)))
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword):
		return Text{}, ErrEncrypted
	case err != nil:
		return Text{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	text.Total = file.NumPage()
	text.Title = strings.Join(strings.Fields(file.Trailer().Key("Info").Key("Title").Text()), " ")
	fonts := map[string]*font{}
	size := 0
	for number := 1; number <= min(text.Total, maxPages) && size < maxText && ctx.Err() == nil; number++ {
		page, err := readPage(ctx, file, number, fonts)
		if err != nil {
			text.Unread++
		}
		size += len(page)
		text.Pages = append(text.Pages, page)
	}
	return text, nil
}

// readPage is the text of one page. A page that breaks the reader does not
// spoil the others.
func readPage(ctx context.Context, file *pdf.Reader, number int, fonts map[string]*font) (text string, err error) {
	w := walker{ctx: ctx, fonts: fonts, state: state{ctm: identity}}
	defer func() {
		if p := recover(); p != nil {
			text, err = w.text(), fmt.Errorf("%w: page %d: %v", ErrDamaged, number, p)
		}
	}()
	page := file.Page(number)
	if page.V.IsNull() {
		return "", fmt.Errorf("%w: page %d is missing", ErrDamaged, number)
	}
	w.content(page.V.Key("Contents"), page.Resources(), 0)
	return w.text(), nil
}

var (
	sizes     = regexp.MustCompile(`/(?:Size|N|First|Length|Count)\s+(\d{7,})\b`)
	intervals = regexp.MustCompile(`/(?:Index|W)\s*\[([\d\s]*)\]`)
	encrypted = regexp.MustCompile(`/Encrypt[\s<]`)
)

// normalize forgives what real files get wrong around the edges, and refuses
// numbers by which the reader would allocate without measure. The dictionaries
// that hold them are never compressed (§7.5.8).
func normalize(body []byte) ([]byte, error) {
	start := bytes.Index(body[:min(len(body), 1024)], []byte("%PDF-"))
	end := bytes.LastIndex(body, []byte("%%EOF"))
	if start < 0 || end < start+20 {
		return nil, fmt.Errorf("%w: it has no beginning or no end", ErrDamaged)
	}
	body = bytes.Clone(body[start : end+len("%%EOF")])
	copy(body[5:8], "1.7")
	if body[8] != '\n' && body[8] != '\r' {
		body[8] = '\n'
	}
	if encrypted.Match(body) {
		return nil, ErrEncrypted
	}
	for _, m := range sizes.FindAllSubmatch(body, -1) {
		if n, err := strconv.Atoi(string(m[1])); err != nil || n > maxSize {
			return nil, fmt.Errorf("%w: it claims sizes beyond reason", ErrDamaged)
		}
	}
	for _, m := range intervals.FindAllSubmatch(body, -1) {
		for _, field := range bytes.Fields(m[1]) {
			if n, err := strconv.Atoi(string(field)); err != nil || n > maxNumber {
				return nil, fmt.Errorf("%w: it claims sizes beyond reason", ErrDamaged)
			}
		}
	}
	return body, nil
}

// measured reads a stream to its end once, without keeping it, to know that it
// is not a bomb.
func measured(v pdf.Value) bool {
	n, _ := io.Copy(io.Discard, io.LimitReader(v.Reader(), maxStream+1))
	return n <= maxStream
}
