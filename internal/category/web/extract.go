package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/html"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/page"
)

const (
	defaultMatches = 50
	// maxElements bounds the elements of one answer in format json.
	maxElements = 5000
)

type extractArgs struct {
	source
	Selector   string   `json:"selector" doc:"CSS, with :has(), :contains(\"x\"), final ::text or ::attr(name); in JSON a pointer: /items/0" maxlen:"1000"`
	Format     string   `json:"format,omitempty" doc:"text if left out" enum:"text,html,markdown,json,table"`
	Attributes []string `json:"attributes,omitempty" doc:"Such as href"`
	Limit      int      `json:"limit,omitempty" doc:"50 if left out" min:"1" max:"500"`
	Offset     int      `json:"offset,omitempty" doc:"-" min:"0"`
	MaxLength  int      `json:"max_length,omitempty" doc:"Characters in all; 20000 if left out" min:"1" max:"200000"`
}

const defaultExtract = 20_000

// Validate reads the selector before anything is fetched. One that begins
// with / may be a JSON Pointer; whether it is, the document decides.
func (a extractArgs) Validate() error {
	if strings.HasPrefix(strings.TrimSpace(a.Selector), "/") {
		return nil
	}
	if _, err := page.ParseSelector(a.Selector); err != nil {
		return fault.Invalid("selector", "selector cannot be used: %s", err)
	}
	return nil
}

type extractResult struct {
	URL      string `json:"url"` // where it came from, after redirects
	Title    string `json:"title,omitzero"`
	Selector string `json:"selector"`
	// Matches is how many elements the selector matches; Results may be fewer.
	Matches    int         `json:"matches"`
	Results    []extracted `json:"results"`
	NextOffset int         `json:"next_offset,omitzero"`
	Cached     bool        `json:"cached"`
	FetchedAt  time.Time   `json:"fetched_at"`
	Notice     string      `json:"notice"`
}

// extracted is one match, in the format asked for.
type extracted struct {
	Text       string            `json:"text,omitzero"`
	HTML       string            `json:"html,omitzero"`
	Markdown   string            `json:"markdown,omitzero"`
	Element    *page.Element     `json:"element,omitzero"`
	Table      *page.Table       `json:"table,omitzero"`
	Value      jsontext.Value    `json:"value,omitzero"`
	Attributes map[string]string `json:"attributes,omitzero"`
	// Cut says that the match was longer than what is left of max_length.
	Cut bool `json:"cut,omitzero"`
}

// extract reads an address and gives what the selector finds in it.
func (w web) extract(ctx context.Context, who caller.Caller, a extractArgs) (extractResult, error) {
	f, err := w.get(ctx, who, a.source)
	if err != nil {
		return extractResult{}, err
	}
	r := extractResult{URL: f.URL, Selector: a.Selector, Cached: f.cached, FetchedAt: f.FetchedAt, Notice: notice}
	k := kindOf(f.ContentType, f.Body)
	if k == kindJSON {
		err = r.pointed(f, a)
		return r, err
	}
	if err := inTime(ctx, func() error {
		d, err := document(f, k)
		if err != nil {
			return err
		}
		r.Title = oneLine(d.Meta.Title, maxTitle)
		return r.selected(ctx, d, a)
	}); err != nil {
		return extractResult{}, err
	}
	return r, nil
}

// document reads a page for its elements.
func document(f fetched, k kind) (*page.Document, error) {
	text, _ := page.Decode(markup(f.Body), f.ContentType)
	var d *page.Document
	var err error
	switch k {
	case kindHTML:
		d, err = page.Parse(text, f.address())
	case kindXML:
		d, err = page.ParseXML(text, f.address())
	default:
		return nil, unsupported(f, "web_extract reads HTML, XML and JSON; web_fetch_cached shows other text")
	}
	if err != nil {
		return nil, unreadable(f, err)
	}
	return d, nil
}

// pointed finds a value in JSON.
func (r *extractResult) pointed(f fetched, a extractArgs) error {
	text, _ := page.Decode(f.Body, f.ContentType)
	value, err := page.Pointer([]byte(text), strings.TrimSpace(a.Selector))
	if err != nil {
		return fault.New("no_match", "the page is JSON, and the selector finds nothing in it: %s", oneLine(err.Error(), maxSnippet))
	}
	if err := value.Format(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return fault.New("unreadable", "the page is declared as JSON and is not")
	}
	value = jsontext.Value(page.Neutralize(page.Visible(string(value))))
	if limit := cmp.Or(a.MaxLength, defaultExtract); len([]rune(string(value))) > limit {
		return fault.New(fault.TooLarge, "the value has %d characters, more than max_length %d; point deeper, such as %s/0 or %s/name", len([]rune(string(value))), limit, a.Selector, a.Selector)
	}
	r.Matches, r.Results = 1, []extracted{{Value: value}}
	return nil
}

// selected finds elements in HTML or XML.
func (r *extractResult) selected(ctx context.Context, d *page.Document, a extractArgs) error {
	s, err := page.ParseSelector(a.Selector)
	if err != nil {
		return fault.Invalid("selector", "selector cannot be used: %s", err)
	}
	nodes := d.Find(ctx, s)
	if a.Format == "table" {
		if nodes, err = tablesOf(nodes, a.Selector); err != nil {
			return err
		}
	}
	if len(nodes) == 0 {
		return fault.New("no_match", "no element matches %s; %s", oneLine(a.Selector, 200), page.Neutralize(d.Suggest(ctx, a.Selector)))
	}
	if a.Offset >= len(nodes) {
		return fault.Invalid("offset", "offset must be below %d, the number of matches", len(nodes))
	}
	r.Matches = len(nodes)
	wanted := nodes[a.Offset:min(len(nodes), a.Offset+cmp.Or(a.Limit, defaultMatches))]
	e := extractor{selector: s, args: a, left: cmp.Or(a.MaxLength, defaultExtract), elements: maxElements}
	for _, n := range wanted {
		if e.left <= 0 {
			break
		}
		one, err := e.take(n)
		if err != nil {
			return err
		}
		r.Results = append(r.Results, one)
	}
	if next := a.Offset + len(r.Results); next < len(nodes) {
		r.NextOffset = next
	}
	return nil
}

// tablesOf are the tables that the matches are or have.
func tablesOf(nodes []*html.Node, selector string) ([]*html.Node, error) {
	var tables []*html.Node
	for _, n := range nodes {
		for _, t := range page.Tables(n) {
			if !slices.Contains(tables, t) {
				tables = append(tables, t)
			}
		}
	}
	if len(nodes) > 0 && len(tables) == 0 {
		return nil, fault.New("no_match", "%s matches %d elements, but none is or has a table; use another format", oneLine(selector, 200), len(nodes))
	}
	return tables, nil
}

// extractor writes matches until the length asked for is used up. Matches are
// cut one by one, so the answer stays whole.
type extractor struct {
	selector page.Selector
	args     extractArgs
	left     int // characters
	elements int
}

func (e *extractor) take(n *html.Node) (extracted, error) {
	var one extracted
	for _, name := range e.args.Attributes {
		if value, ok := page.Attribute(n, strings.ToLower(name)); ok {
			if one.Attributes == nil {
				one.Attributes = map[string]string{}
			}
			one.Attributes[name] = e.text(value, &one)
		}
	}
	switch {
	case e.selector.Attribute != "":
		value, _ := page.Attribute(n, e.selector.Attribute)
		one.Text = e.text(value, &one)
	case e.selector.OwnText:
		one.Text = e.text(page.OwnText(n), &one)
	case e.args.Format == "html":
		one.HTML = e.text(page.InnerHTML(n), &one)
	case e.args.Format == "markdown":
		markdown, err := page.Markdown(n)
		if err != nil {
			return one, fmt.Errorf("extract element: %w", err)
		}
		one.Markdown = e.text(markdown, &one)
	case e.args.Format == "json":
		element := page.ElementOf(n, &e.elements)
		e.element(&element, &one)
		one.Element = &element
	case e.args.Format == "table":
		table := page.TableOf(n)
		e.table(&table, &one)
		one.Table = &table
	default:
		one.Text = e.text(page.Text(n), &one)
	}
	return one, nil
}

// text takes a page's text against what is left, and makes the fence's word
// in it harmless.
func (e *extractor) text(s string, one *extracted) string {
	if r := []rune(s); len(r) > e.left {
		s, one.Cut = string(r[:max(e.left, 0)]), true
	}
	s = page.Neutralize(page.Visible(s))
	e.left -= len([]rune(s))
	return s
}

func (e *extractor) element(el *page.Element, one *extracted) {
	el.Text = e.text(el.Text, one)
	for _, name := range slices.Sorted(maps.Keys(el.Attributes)) {
		el.Attributes[name] = e.text(el.Attributes[name], one)
	}
	for i := range el.Children {
		if e.left <= 0 {
			el.Children, el.Cut = el.Children[:i], true
			return
		}
		e.element(&el.Children[i], one)
	}
}

func (e *extractor) table(t *page.Table, one *extracted) {
	t.Caption = e.text(t.Caption, one)
	e.row(t.Headers, one)
	for i, row := range t.Rows {
		if e.left <= 0 {
			t.Rows, t.Cut = t.Rows[:i], true
			return
		}
		e.row(row, one)
	}
}

func (e *extractor) row(cells []string, one *extracted) {
	for i, cell := range cells {
		cells[i] = e.text(cell, one)
	}
}
