package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"pawgate/internal/tool"
)

// scalar is an argument that may be a text, a number or a boolean.
type scalar json.RawMessage

// JSONSchema publishes the three types.
func (scalar) JSONSchema() *tool.Schema {
	return &tool.Schema{Types: []string{"string", "number", "boolean"}}
}

// UnmarshalJSON keeps the text.
func (s *scalar) UnmarshalJSON(b []byte) error {
	*s = slices.Clone(b)
	return nil
}

// word is the value as text, without quotes.
func (s scalar) word() string {
	var text string
	if json.Unmarshal(s, &text) == nil {
		return strings.TrimSpace(text)
	}
	return string(s)
}
