package page

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// Table is a table as data. Cells that span columns or rows are repeated in
// each place they cover.
type Table struct {
	Caption string     `json:"caption,omitzero"`
	Headers []string   `json:"headers"`
	Rows    [][]string `json:"rows"`
	// Cut says that rows or columns were left out for their number.
	Cut bool `json:"cut,omitzero"`
}

// Bounds on one table.
const (
	maxRows    = 2000
	maxColumns = 200
)

// Tables are the tables that n is or has, outermost only.
func Tables(n *html.Node) []*html.Node {
	if n.Data == "table" {
		return []*html.Node{n}
	}
	return elements(n, func(c *html.Node) bool {
		return c.Data == "table" && !within(c.Parent, func(p *html.Node) bool { return p.Data == "table" && attached(p, n) })
	})
}

// TableOf reads a table. The headers are the cells of the first row, if it is
// in a thead or all its cells are th.
func TableOf(n *html.Node) Table {
	t := Table{Caption: squash(textOf(ownCaption(n))), Headers: []string{}, Rows: [][]string{}}
	var open []span // cells of earlier rows that reach into this one, by column
	for i, tr := range ownRows(n) {
		if i >= maxRows {
			t.Cut = true
			break
		}
		row, header, cut := readRow(tr, &open)
		t.Cut = t.Cut || cut
		switch {
		case len(row) == 0:
		case header && len(t.Headers) == 0 && len(t.Rows) == 0:
			t.Headers = row
		default:
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

type span struct {
	text string
	rows int // still to cover
}

func readRow(tr *html.Node, open *[]span) (row []string, header, cut bool) {
	header = true
	reached := func() { // places taken from above
		for len(row) < len(*open) && (*open)[len(row)].rows > 0 {
			s := &(*open)[len(row)]
			s.rows--
			row = append(row, s.text)
		}
	}
	for cell := range tr.ChildNodes() {
		if cell.Type != html.ElementNode || cell.Data != "td" && cell.Data != "th" {
			continue
		}
		header = header && (cell.Data == "th" || tr.Parent.Data == "thead")
		reached()
		text, rows := squash(Text(cell)), spanOf(cell, "rowspan")
		for range spanOf(cell, "colspan") {
			if len(row) >= maxColumns {
				return row, header, true
			}
			for len(*open) <= len(row) {
				*open = append(*open, span{})
			}
			(*open)[len(row)] = span{text, rows - 1}
			row = append(row, text)
		}
	}
	reached()
	return row, header && len(row) > 0, false
}

func spanOf(cell *html.Node, name string) int {
	n, err := strconv.Atoi(strings.TrimSpace(attr(cell, name)))
	if err != nil {
		return 1
	}
	return min(max(n, 1), maxRows)
}

// ownRows are the rows of a table, not those of tables inside it.
func ownRows(table *html.Node) []*html.Node {
	return elements(table, func(n *html.Node) bool { return n.Data == "tr" && ownerTable(n) == table })
}

func ownCaption(table *html.Node) *html.Node {
	return find(table, func(n *html.Node) bool { return n.Data == "caption" && ownerTable(n) == table })
}

func ownerTable(n *html.Node) *html.Node {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Data == "table" {
			return p
		}
	}
	return nil
}
