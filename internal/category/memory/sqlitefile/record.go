package sqlitefile

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode"
)

// varint reads SQLite's variable-length integer and says how many bytes it
// took. Of a slice too short it reads zeros.
func varint(b []byte) (value int64, n int) {
	for n < 9 {
		next := byte(0)
		if n < len(b) {
			next = b[n]
		} else {
			return value, len(b)
		}
		n++
		if n == 9 {
			return value<<8 | int64(next), n
		}
		value = value<<7 | int64(next&0x7F)
		if next < 0x80 {
			break
		}
	}
	return value, n
}

// record takes a row's payload apart.
func record(payload []byte) ([]any, error) {
	size, n := varint(payload)
	if size < int64(n) || size > int64(len(payload)) {
		return nil, fmt.Errorf("%w: a row's header does not fit", ErrFormat)
	}
	header, body := payload[n:size], payload[size:]
	var values []any
	for len(header) > 0 {
		kind, n := varint(header)
		header = header[n:]
		value, length, err := column(kind, body)
		if err != nil {
			return nil, err
		}
		values, body = append(values, value), body[length:]
	}
	return values, nil
}

// column reads a value of a serial type, and says how long it is.
func column(kind int64, body []byte) (value any, length int, err error) {
	sizes := [...]int{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}
	switch {
	case kind < 0 || kind == 10 || kind == 11:
		return nil, 0, fmt.Errorf("%w: a value of type %d", ErrFormat, kind)
	case kind >= 12:
		if (kind-12)/2 > int64(len(body)) {
			return nil, 0, fmt.Errorf("%w: a value reaches beyond its row", ErrFormat)
		}
		length = int(kind-12) / 2
		if kind%2 == 1 {
			return string(body[:length]), length, nil
		}
		return append([]byte{}, body[:length]...), length, nil
	}
	if length = sizes[kind]; length > len(body) {
		return nil, 0, fmt.Errorf("%w: a value reaches beyond its row", ErrFormat)
	}
	switch kind {
	case 0:
		return nil, 0, nil
	case 7:
		return math.Float64frombits(binary.BigEndian.Uint64(body)), length, nil
	case 8, 9:
		return kind - 8, 0, nil
	}
	n := int64(int8(body[0])) // the sign is in the first byte
	for _, b := range body[1:length] {
		n = n<<8 | int64(b)
	}
	return n, length, nil
}

// columnsOf reads the column names of a create table statement, and which of
// them stands for the rowid.
func columnsOf(sql string) (columns []string, rowid int) {
	rowid = -1
	open := strings.IndexByte(sql, '(')
	if open < 0 {
		return nil, rowid
	}
	for _, definition := range split(sql[open+1:]) {
		name, rest := identifier(strings.TrimSpace(definition))
		switch strings.ToUpper(name) {
		case "CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "":
			continue
		}
		if strings.HasPrefix(strings.Join(strings.Fields(strings.ToUpper(rest)), " "), "INTEGER PRIMARY KEY") {
			rowid = len(columns)
		}
		columns = append(columns, name)
	}
	return columns, rowid
}

// split cuts the definitions at the commas outside of parentheses and quotes,
// up to the parenthesis that ends them.
func split(sql string) []string {
	var all []string
	depth, from, quote := 0, 0, byte(0)
	for i := range len(sql) {
		switch c := sql[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '[':
			quote = ']'
		case c == '(':
			depth++
		case c == ')' && depth == 0:
			return append(all, sql[from:i])
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			all = append(all, sql[from:i])
			from = i + 1
		}
	}
	return append(all, sql[from:])
}

// identifier cuts the name off the front of a definition.
func identifier(definition string) (name, rest string) {
	if definition == "" {
		return "", ""
	}
	if end, quoted := map[byte]string{'"': `"`, '`': "`", '[': "]", '\'': "'"}[definition[0]]; quoted {
		name, rest, _ = strings.Cut(definition[1:], end)
		return name, rest
	}
	i := strings.IndexFunc(definition, func(r rune) bool { return unicode.IsSpace(r) || r == '(' })
	if i < 0 {
		return definition, ""
	}
	return definition[:i], definition[i:]
}

func withoutRowid(sql string) bool {
	words := strings.Fields(strings.ToUpper(sql[strings.LastIndexByte(sql, ')')+1:]))
	return strings.Contains(strings.Join(words, " "), "WITHOUT ROWID") || strings.HasPrefix(strings.ToUpper(strings.TrimSpace(sql)), "CREATE VIRTUAL")
}
