package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// view says how a result looks without --json. The zero view prints its
// members one a line.
type view struct {
	list    string // the member that is shown as a table
	columns []column
	empty   string   // what to say of an empty table
	above   bool     // the other members are shown above the table
	hide    []string // members that only --json shows
}

// column is one column of a table.
type column struct {
	head, member string
}

// show prints a result.
func (a *app) show(result json.RawMessage, bare bool, v view) error {
	if bare {
		var indented bytes.Buffer
		if err := json.Indent(&indented, result, "", "  "); err != nil {
			return fmt.Errorf("show result: %w", err)
		}
		_, err := fmt.Fprintln(a.stdout, indented.String())
		return err
	}
	members, err := object(result)
	if err != nil {
		return fmt.Errorf("show result: %w", err)
	}
	shown := slices.DeleteFunc(slices.Clone(members), func(m member) bool { return slices.Contains(v.hide, m.name) || m.name == v.list })
	if v.list == "" || v.above {
		if err := shown.print(a.stdout); err != nil || v.list == "" {
			return err
		}
		fmt.Fprintln(a.stdout)
	}
	return v.table(a.stdout, members)
}

// members are those of a JSON object, in its order.
type members []member

type member struct {
	name  string
	value jsontext.Value
}

func object(raw []byte) (members, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var list members
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		list = append(list, member{text, v.Clone()})
	}
	return list, nil
}

func (m members) get(name string) jsontext.Value {
	for _, member := range m {
		if member.name == name {
			return member.value
		}
	}
	return nil
}

// print writes one member a line; an object and a list of objects or sentences
// get a line for each of theirs.
func (m members) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, member := range m {
		for _, line := range member.lines() {
			fmt.Fprintf(t, "%s\t%s\n", member.name, line)
		}
	}
	return t.Flush()
}

func (m member) lines() []string {
	var lines []string
	if counts, err := object(m.value); m.value.Kind() == '{' && err == nil && len(counts) > 0 {
		for _, c := range counts {
			lines = append(lines, printable(c.name)+"="+cell(c.value))
		}
		return lines
	}
	if elements, nested := objects(m.value); nested {
		for _, element := range elements {
			lines = append(lines, element.line())
		}
		return lines
	}
	var sentences []string
	if json.Unmarshal(m.value, &sentences) == nil && strings.Contains(strings.Join(sentences, ""), " ") {
		for _, sentence := range sentences {
			lines = append(lines, printable(sentence))
		}
		return lines
	}
	if text := string(m.value); text == "[]" || text == "{}" {
		return []string{"none"} // a line that says nothing looks like one that failed
	}
	return []string{cell(m.value)}
}

// line is a nested object on one line.
func (m members) line() string {
	var parts []string
	for _, member := range m {
		if text := cell(member.value); text != "" {
			parts = append(parts, member.name+"="+text)
		}
	}
	return strings.Join(parts, " ")
}

// objects reads a list whose elements are objects.
func objects(v jsontext.Value) ([]members, bool) {
	var raw []json.RawMessage
	if v.Kind() != '[' || json.Unmarshal(v, &raw) != nil {
		return nil, false
	}
	var list []members
	for _, element := range raw {
		m, err := object(element)
		if err != nil {
			return nil, false
		}
		list = append(list, m)
	}
	return list, len(raw) > 0
}

func (v view) table(w io.Writer, result members) error {
	lines, _ := objects(result.get(v.list))
	if len(lines) == 0 {
		_, err := fmt.Fprintln(w, v.empty)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for i, c := range v.columns {
		fmt.Fprint(t, separator(i), c.head)
	}
	fmt.Fprintln(t)
	for _, line := range lines {
		for i, c := range v.columns {
			fmt.Fprint(t, separator(i), cell(line.get(c.member)))
		}
		fmt.Fprintln(t)
	}
	for _, more := range []string{"next_after", "next_cursor"} {
		if next := cell(result.get(more)); next != "" {
			fmt.Fprintf(t, "there are more: --%s %s\n", strings.TrimPrefix(more, "next_"), next)
		}
	}
	return t.Flush()
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return "\t"
}

// cell is a value in words.
func cell(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		var text string
		if json.Unmarshal(v, &text) != nil {
			return "?"
		}
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return t.UTC().Format("2006-01-02 15:04:05Z")
		}
		return printable(text)
	case '[':
		var elements []json.RawMessage
		if json.Unmarshal(v, &elements) != nil {
			return "?"
		}
		words := make([]string, len(elements))
		for i, e := range elements {
			words[i] = cell(jsontext.Value(e))
		}
		return strings.Join(words, " ")
	case 't':
		return "yes"
	case 'f':
		return "no"
	case 'n', 0:
		return ""
	}
	return printable(string(v))
}

// printable shows what is no text as a dot: escape sequences, line ends,
// marks that change the direction of writing.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, text)
}
