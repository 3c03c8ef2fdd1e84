package tool

import (
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ID is an identifier of an outside system. Clients send such ids as text or
// as bare numbers; both arrive as the same text, to the last digit.
type ID string

// JSONSchema publishes that both forms are taken.
func (ID) JSONSchema() *Schema { return &Schema{Types: []string{"string", "integer"}} }

// List is a JSON array whose elements may be of any kind, kept as it came,
// such as a search domain of an outside system.
type List jsontext.Value

// JSONSchema publishes an array without saying what is in it.
func (List) JSONSchema() *Schema { return &Schema{Types: []string{"array"}} }

// MarshalJSON gives the text back.
func (l List) MarshalJSON() ([]byte, error) { return jsontext.Value(l).MarshalJSON() }

// UnmarshalJSON keeps the text.
func (l *List) UnmarshalJSON(b []byte) error { return (*jsontext.Value)(l).UnmarshalJSON(b) }

// Object is a JSON object with members of any kind, kept as it came.
type Object jsontext.Value

// JSONSchema publishes an open object.
func (Object) JSONSchema() *Schema { return &Schema{Types: []string{"object"}, Open: true} }

// MarshalJSON gives the text back.
func (o Object) MarshalJSON() ([]byte, error) { return jsontext.Value(o).MarshalJSON() }

// UnmarshalJSON keeps the text.
func (o *Object) UnmarshalJSON(b []byte) error { return (*jsontext.Value)(o).UnmarshalJSON(b) }

// pointerPath turns "/filter/since" into "filter.since".
func pointerPath(p jsontext.Pointer) string {
	return strings.ReplaceAll(strings.TrimPrefix(string(p), "/"), "/", ".")
}

func kindOf(e *jsonv2.SemanticError) string {
	if e.GoType == timeType {
		return "time; write it as " + time.RFC3339 + ", such as 2026-12-01T10:00:00Z"
	}
	return "value"
}
