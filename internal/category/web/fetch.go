package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/page"
	"pawgate/internal/page/pdftext"
	"pawgate/internal/plural"
)

// defaultLength is how many characters one answer holds unless told otherwise.
const defaultLength = 10_000

type fetchArgs struct {
	source
	Format     string `json:"format,omitempty" doc:"markdown if left out; raw: the source" enum:"markdown,text,raw"`
	WholePage  bool   `json:"whole_page,omitempty" doc:"Menus and margins too"`
	StartIndex int    `json:"start_index,omitempty" doc:"next_start_index" min:"0"`
	MaxLength  int    `json:"max_length,omitempty" doc:"Characters; 10000 if left out" min:"1" max:"200000"`
}

type fetchResult struct {
	URL         string    `json:"url"` // where it came from, after redirects
	ContentType string    `json:"content_type"`
	Charset     string    `json:"charset,omitzero"`
	Title       string    `json:"title,omitzero"`
	Description string    `json:"description,omitzero"`
	Author      string    `json:"author,omitzero"`
	SiteName    string    `json:"site_name,omitzero"`
	Language    string    `json:"language,omitzero"`
	Published   time.Time `json:"published,omitzero"`
	// Content is text from the web, fenced. Lengths count its characters
	// without the fence.
	Content        string `json:"content"`
	StartIndex     int    `json:"start_index"`
	Length         int    `json:"length"`
	TotalLength    int    `json:"total_length"`
	NextStartIndex int    `json:"next_start_index,omitzero"`
	// HiddenCharacters were left out: a reader of the page would not see them.
	HiddenCharacters int       `json:"hidden_characters,omitzero"`
	Cached           bool      `json:"cached"`
	FetchedAt        time.Time `json:"fetched_at"`
	CheckedAt        time.Time `json:"checked_at"`
	Notes            []string  `json:"notes,omitzero"`
}

// fetch reads an address and gives a part of its text.
func (w web) fetch(ctx context.Context, who caller.Caller, a fetchArgs) (fetchResult, error) {
	f, err := w.get(ctx, who, a.source)
	if err != nil {
		return fetchResult{}, err
	}
	r := fetchResult{URL: f.URL, ContentType: oneLine(f.ContentType, 200), Cached: f.cached, FetchedAt: f.FetchedAt, CheckedAt: f.CheckedAt}
	var text string
	if err := inTime(ctx, func() (err error) {
		text, err = r.read(ctx, f, a)
		return err
	}); err != nil {
		return fetchResult{}, err
	}
	if f.Truncated {
		r.Notes = append(r.Notes, fmt.Sprintf("the page is longer than the %d bytes that are taken; its end is missing", len(f.Body)))
	}
	err = r.cut(text, a)
	return r, err
}

// read gives the text of a page in the format asked for.
func (r *fetchResult) read(ctx context.Context, f fetched, a fetchArgs) (string, error) {
	k := kindOf(f.ContentType, f.Body)
	switch {
	case k == kindBinary, k == kindPDF && a.Format == "raw":
		return "", unsupported(f, "web_fetch_cached shows text, HTML, JSON, XML and PDF")
	case k == kindPDF:
		return r.readPDF(ctx, f)
	}
	body := f.Body
	if k == kindHTML && a.Format != "raw" {
		if body = markup(f.Body); len(body) < len(f.Body) {
			r.Notes = append(r.Notes, fmt.Sprintf("only the first %d bytes of the page were taken apart; format raw shows the rest", len(body)))
		}
	}
	text, charset := page.Decode(body, f.ContentType)
	r.Charset = charset
	if k != kindHTML || a.Format == "raw" {
		return page.Visible(text), nil
	}
	return r.readHTML(f, text, a)
}

// unreadable is a document that the parser gives up.
func unreadable(f fetched, err error) error {
	return fault.New("unreadable", "%s sent a page that cannot be taken apart: %s; web_fetch_cached with format raw shows its source", f.address().Host, err)
}

// markup is the part of a document that is taken apart: a tree needs many times
// the memory of its text.
func markup(body []byte) []byte { return body[:min(len(body), maxMarkup)] }

const maxMarkup = 4 << 20

// unsupported says what a body is that the tools cannot show.
func unsupported(f fetched, can string) error {
	size := fmt.Sprintf("%d bytes", len(f.Body))
	if f.Truncated {
		size = "more than " + size
	}
	media, _, _ := strings.Cut(oneLine(cmp.Or(f.ContentType, "data of no declared type"), 100), ";")
	return fault.New("unsupported_type", "%s is %s, %s; %s", f.address().Host, media, size, can).
		With("content_type", media).With("size", len(f.Body))
}

func (r *fetchResult) readHTML(f fetched, text string, a fetchArgs) (string, error) {
	d, err := page.Parse(text, f.address())
	if err != nil {
		return "", unreadable(f, err)
	}
	r.describe(d.Meta)
	r.HiddenCharacters = d.HiddenChars
	node := d.Body()
	if !a.WholePage {
		node = d.Main()
	}
	content := page.Text(node)
	if a.Format != "text" {
		if content, err = page.Markdown(node); err != nil {
			return "", fmt.Errorf("read page: %w", err)
		}
	}
	if len([]rune(content)) < 40 {
		r.Notes = append(r.Notes, "the page has almost no text of its own; it may be built by scripts, which are not run")
	}
	return content, nil
}

// describe takes over what the page says of itself.
func (r *fetchResult) describe(m page.Meta) {
	r.Title, r.Description = oneLine(m.Title, maxTitle), oneLine(m.Description, maxTitle)
	r.Author, r.SiteName, r.Language = oneLine(m.Author, 100), oneLine(m.SiteName, 100), oneLine(m.Language, 20)
	r.Published = m.Published
}

func (r *fetchResult) readPDF(ctx context.Context, f fetched) (string, error) {
	if f.Truncated {
		return "", fault.New(fault.TooLarge, "the PDF is larger than the %d bytes that are taken, and one without its end cannot be read", len(f.Body))
	}
	text, err := pdftext.Read(ctx, f.Body)
	switch {
	case errors.Is(err, pdftext.ErrEncrypted):
		return "", unsupported(f, "it is encrypted, so its text cannot be read")
	case errors.Is(err, pdftext.ErrDamaged):
		return "", unsupported(f, "it is damaged, so its text cannot be read")
	case err != nil:
		return "", fmt.Errorf("read pdf: %w", err)
	}
	r.Title = oneLine(text.Title, maxTitle)
	var b strings.Builder
	empty := 0
	for i, content := range text.Pages {
		if content == "" {
			empty++
			continue
		}
		fmt.Fprintf(&b, "[page %d]\n%s\n\n", i+1, page.Visible(content))
	}
	r.Notes = append(r.Notes, "PDF of "+plural.Of(text.Total, "page"))
	if left := text.Total - len(text.Pages) + text.Unread; left > 0 {
		r.Notes = append(r.Notes, plural.Of(left, "page")+" could not be read")
	}
	if empty > text.Unread {
		r.Notes = append(r.Notes, plural.Of(empty-text.Unread, "page has no text and may be a picture", "pages have no text and may be pictures"))
	}
	return strings.TrimSpace(b.String()), nil
}

// cut takes the part asked for out of the text and fences it.
func (r *fetchResult) cut(text string, a fetchArgs) error {
	runes := []rune(text)
	r.TotalLength = len(runes)
	if a.StartIndex > 0 && a.StartIndex >= len(runes) {
		return fault.Invalid("start_index", "start_index must be below %d, the length of the text", len(runes))
	}
	end := min(a.StartIndex+cmp.Or(a.MaxLength, defaultLength), len(runes))
	part := runes[a.StartIndex:end]
	r.StartIndex, r.Length = a.StartIndex, len(part)
	if end < len(runes) {
		r.NextStartIndex = end
	}
	r.Content = page.Fence(string(part))
	return nil
}
