// Package sqlitefile reads the tables of an SQLite database file.
//
// It is for importing what another program left behind: read-only, one pass,
// no SQL, no locking, and no dependency of the size of a database engine. It
// reads the file format of https://www.sqlite.org/fileformat2.html: ordinary
// tables of UTF-8 databases, overflow pages included. It does not read a
// write-ahead log, virtual tables or tables without rowid. A damaged file ends
// in an error, never in a panic or an endless loop.
package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// ErrFormat is in the chain of every error about the file's content.
var ErrFormat = errors.New("not a readable SQLite database")

// File is an opened database.
type File struct {
	r        io.ReaderAt
	pageSize int
	usable   int // bytes of a page that hold content
	pages    uint32
	tables   map[string]table
}

type table struct {
	root    uint32
	columns []string
	rowid   int // the column that stands for the rowid; -1 for none
}

// Row is a row by column name; the values are nil, int64, float64, string or
// []byte. SQLite keeps a real without a fraction as an integer, so it comes as
// one.
type Row map[string]any

const headerSize = 100

// Open reads the header and the schema.
func Open(r io.ReaderAt, size int64) (*File, error) {
	header := make([]byte, headerSize)
	if _, err := r.ReadAt(header, 0); err != nil {
		return nil, fmt.Errorf("%w: it is shorter than a header", ErrFormat)
	}
	if !bytes.HasPrefix(header, []byte("SQLite format 3\x00")) {
		return nil, fmt.Errorf("%w: it does not begin like one", ErrFormat)
	}
	f := &File{r: r, pageSize: int(binary.BigEndian.Uint16(header[16:])), tables: map[string]table{}}
	if f.pageSize == 1 {
		f.pageSize = 1 << 16
	}
	if f.pageSize < 512 || f.pageSize&(f.pageSize-1) != 0 {
		return nil, fmt.Errorf("%w: page size %d", ErrFormat, f.pageSize)
	}
	if encoding := binary.BigEndian.Uint32(header[56:]); encoding > 1 {
		return nil, fmt.Errorf("%w: its text is not UTF-8", ErrFormat)
	}
	f.usable = f.pageSize - int(header[20])
	f.pages = uint32(min(size/int64(f.pageSize), 1<<32-2))
	if f.usable < 480 {
		return nil, fmt.Errorf("%w: %d usable bytes in a page", ErrFormat, f.usable)
	}
	return f, f.readSchema()
}

func (f *File) readSchema() error {
	schema := table{root: 1, columns: []string{"type", "name", "tbl_name", "rootpage", "sql"}, rowid: -1}
	for row, err := range f.rows(schema) {
		if err != nil {
			return fmt.Errorf("read schema: %w", err)
		}
		name, _ := row["name"].(string)
		sql, _ := row["sql"].(string)
		root, _ := row["rootpage"].(int64)
		if row["type"] != "table" || root <= 0 || withoutRowid(sql) {
			continue
		}
		t := table{root: uint32(root)}
		t.columns, t.rowid = columnsOf(sql)
		f.tables[strings.ToLower(name)] = t
	}
	return nil
}

// Columns are the columns of a table; false when there is no such table.
func (f *File) Columns(name string) ([]string, bool) {
	t, ok := f.tables[strings.ToLower(name)]
	return t.columns, ok
}

// Rows yields the rows of a table in the order of their rowids, and ends with
// the first error. A table that does not exist has no rows.
func (f *File) Rows(name string) iter.Seq2[Row, error] {
	t, ok := f.tables[strings.ToLower(name)]
	if !ok {
		return func(func(Row, error) bool) {}
	}
	return f.rows(t)
}

func (f *File) rows(t table) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		w := walk{f: f, t: t, yield: yield, left: int(f.pages) + 1}
		if err := w.page(t.root, 0); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped says that the caller wants no more rows.
var errStopped = errors.New("stopped")

// walk is one pass over a table.
type walk struct {
	f     *File
	t     table
	yield func(Row, error) bool
	left  int // pages that the walk may still visit: a tree has no page twice
}

const maxDepth = 32

// page visits the b-tree under a page.
func (w *walk) page(number uint32, depth int) error {
	if w.left--; w.left < 0 || depth > maxDepth {
		return fmt.Errorf("%w: its pages lead in a circle", ErrFormat)
	}
	p, err := w.f.page(number)
	if err != nil {
		return err
	}
	head := 0
	if number == 1 {
		head = headerSize
	}
	kind, cells := p[head], int(binary.BigEndian.Uint16(p[head+3:]))
	pointers := head + 8
	if kind == interiorTable {
		pointers = head + 12
	}
	if kind != interiorTable && kind != leafTable || pointers+2*cells > len(p) {
		return fmt.Errorf("%w: page %d is no page of a table", ErrFormat, number)
	}
	for i := range cells {
		at := int(binary.BigEndian.Uint16(p[pointers+2*i:]))
		if at+4 > len(p) {
			return fmt.Errorf("%w: a cell of page %d lies outside", ErrFormat, number)
		}
		if kind == interiorTable {
			err = w.page(binary.BigEndian.Uint32(p[at:]), depth+1)
		} else {
			err = w.cell(p[at:])
		}
		if err != nil {
			return err
		}
	}
	if kind == interiorTable {
		return w.page(binary.BigEndian.Uint32(p[head+8:]), depth+1)
	}
	return nil
}

// Kinds of b-tree pages.
const (
	interiorTable = 0x05
	leafTable     = 0x0D
)

func (w *walk) cell(cell []byte) error {
	size, n := varint(cell)
	rowid, m := varint(cell[n:])
	payload, err := w.f.payload(cell[n+m:], size)
	if err != nil {
		return err
	}
	values, err := record(payload)
	if err != nil {
		return err
	}
	row := make(Row, len(w.t.columns))
	for i, column := range w.t.columns {
		if i < len(values) {
			row[column] = values[i]
		} else {
			row[column] = nil // added to the table after the row
		}
		if i == w.t.rowid {
			row[column] = rowid
		}
	}
	if !w.yield(row, nil) {
		return errStopped
	}
	return nil
}

func (f *File) page(number uint32) ([]byte, error) {
	if number == 0 || number > f.pages {
		return nil, fmt.Errorf("%w: page %d does not exist", ErrFormat, number)
	}
	p := make([]byte, f.pageSize)
	if _, err := f.r.ReadAt(p, int64(number-1)*int64(f.pageSize)); err != nil {
		return nil, fmt.Errorf("read page %d: %w", number, err)
	}
	return p[:f.usable], nil
}

// payload is a cell's content, with what lies on overflow pages.
func (f *File) payload(local []byte, size int64) ([]byte, error) {
	if size < 0 || size > int64(f.pages)*int64(f.pageSize) {
		return nil, fmt.Errorf("%w: a row of %d bytes", ErrFormat, size)
	}
	inPage := int(size)
	if most := f.usable - 35; inPage > most {
		least := (f.usable-12)*32/255 - 23
		inPage = least + (int(size)-least)%(f.usable-4)
		if inPage > most {
			inPage = least
		}
	}
	if inPage > len(local) || inPage < int(size) && inPage+4 > len(local) {
		return nil, fmt.Errorf("%w: a row reaches beyond its page", ErrFormat)
	}
	all := append(make([]byte, 0, size), local[:inPage]...)
	if len(all) == int(size) {
		return all, nil
	}
	next := binary.BigEndian.Uint32(local[inPage:])
	for len(all) < int(size) {
		p, err := f.page(next)
		if err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(p)
		all = append(all, p[4:min(len(p), 4+int(size)-len(all))]...)
	}
	return all, nil
}
