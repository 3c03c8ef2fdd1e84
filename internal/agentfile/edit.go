package agentfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// errUneditable is a text whose form leaves no place for a change.
var errUneditable = errors.New("the key lies in an inline table, which is not edited")

// edit is one change of a TOML text: the value of a key, in TOML.
type edit struct {
	path  []string
	value string
}

// apply makes the changes and leaves every other byte as it is: comments, order,
// white space, line ends.
func apply(text string, edits []edit) (string, error) {
	for _, e := range edits { // each changes the places of the others
		doc, err := outline(text)
		if err != nil {
			return "", err
		}
		if text, err = doc.set(e); err != nil {
			return "", err
		}
	}
	return text, nil
}

// document is where things stand in a text, in bytes.
type document struct {
	text   string
	values []place
	tables []table
}

// place is the value of a key.
type place struct {
	path       []string
	start, end int
	inline     bool // an inline table
}

// table is a [table], or one element of an [[array]].
type table struct {
	path       []string
	array      bool
	start, end int // end is that of its last own line
}

// outline reads where things stand. The text is good TOML.
func outline(text string) (document, error) {
	doc := document{text: text}
	mark := len(text) - len(strings.TrimPrefix(text, "\ufeff"))
	doc.tables = []table{{start: mark, end: mark}} // the root
	var p unstable.Parser
	p.Reset([]byte(text[mark:]))
	for p.NextExpression() {
		e := p.Expression()
		keys, last := keysOf(e)
		open := &doc.tables[len(doc.tables)-1]
		switch e.Kind {
		case unstable.KeyValue:
			end := mark + int(e.Raw.Offset+e.Raw.Length)
			value := mark + last
			value += strings.IndexByte(text[value:end], '=') + 1
			value += len(text[value:end]) - len(strings.TrimLeft(text[value:end], " \t"))
			doc.values = append(doc.values, place{path: slices.Concat(open.path, keys), start: value, end: end, inline: e.Value().Kind == unstable.InlineTable})
			open.end = lineEnd(text, end)
		case unstable.Table, unstable.ArrayTable:
			at := mark + last
			doc.tables = append(doc.tables, table{path: keys, array: e.Kind == unstable.ArrayTable, start: lineStart(text, at), end: lineEnd(text, at)})
		}
	}
	return doc, p.Error()
}

// keysOf are the parts of an expression's key, and where the last one ends.
func keysOf(e *unstable.Node) (keys []string, end int) {
	if e.Kind == unstable.Comment {
		return nil, 0
	}
	for it := e.Key(); it.Next(); {
		n := it.Node()
		keys, end = append(keys, string(n.Data)), int(n.Raw.Offset+n.Raw.Length)
	}
	return keys, end
}

func lineStart(text string, at int) int { return strings.LastIndexByte(text[:at], '\n') + 1 }

// lineEnd is behind the line's end.
func lineEnd(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// newline is how lines end in the text.
func (d document) newline() string {
	if strings.Contains(d.text, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// set replaces the value of a key, or adds the key to its table, or both to the
// text.
func (d document) set(e edit) (string, error) {
	for _, v := range d.values {
		switch {
		case slices.Equal(v.path, e.path):
			return d.text[:v.start] + e.value + d.text[v.end:], nil
		case v.inline && len(v.path) < len(e.path) && slices.Equal(v.path, e.path[:len(v.path)]):
			return "", errUneditable
		}
	}
	parent, key := e.path[:len(e.path)-1], e.path[len(e.path)-1]
	for _, t := range d.tables[1:] {
		if !t.array && slices.Equal(t.path, parent) {
			return d.insert(t.end, key+" = "+e.value), nil
		}
	}
	for _, v := range d.values { // the table is only there by dotted keys at the root
		if len(v.path) > len(parent) && slices.Equal(v.path[:len(parent)], parent) && v.start < d.rootEnd() {
			return d.insert(lineEnd(d.text, v.end), strings.Join(e.path, ".")+" = "+e.value), nil
		}
	}
	return d.insert(len(d.text), d.newline()+"["+strings.Join(parent, ".")+"]"+d.newline()+key+" = "+e.value), nil
}

func (d document) rootEnd() int {
	if len(d.tables) > 1 {
		return d.tables[1].start
	}
	return len(d.text)
}

// insert adds a line.
func (d document) insert(at int, line string) string {
	before := d.text[:at]
	if before != "" && !strings.HasSuffix(before, "\n") {
		before += d.newline()
	}
	return before + line + d.newline() + d.text[at:]
}

// without takes an array of tables out, with the tables in it.
func without(text string, path ...string) (string, error) {
	doc, err := outline(text)
	if err != nil {
		return "", fmt.Errorf("read agent.toml: %w", err)
	}
	for i := len(doc.tables) - 1; i > 0; i-- {
		if t := doc.tables[i]; len(t.path) >= len(path) && slices.Equal(t.path[:len(path)], path) {
			text = text[:t.start] + text[t.end:]
		}
	}
	return text, nil
}
