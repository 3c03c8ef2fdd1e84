package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Schema is the subset of JSON Schema (2020-12) that this package generates,
// publishes and checks. Nothing outside the subset can be expressed, so what
// is published is exactly what is enforced.
type Schema struct {
	Types       []string // one of the JSON Schema type names, or several
	Description string
	Enum        []string
	Minimum     *float64
	Maximum     *float64
	MaxLength   int // in code points; 0 means unbounded
	Properties  []Property
	Required    []string
	Items       *Schema // nil on an array: elements of any kind
	Values      *Schema // on an object without Properties: schema of every value
	Open        bool    // on an object: members beyond Properties are allowed

	brief bool // written without what a model does not need
}

// Brief is the schema as clients see it: every listed tool is sent to the model
// with every request, so it leaves out that objects are closed and the bounds of
// texts and numbers. They are enforced all the same, with errors that say so.
func (s *Schema) Brief() *Schema {
	if s == nil {
		return nil
	}
	b := *s
	b.brief, b.Minimum, b.Maximum, b.MaxLength = true, nil, nil, 0
	b.Items, b.Values = s.Items.Brief(), s.Values.Brief()
	b.Properties = make([]Property, len(s.Properties))
	for i, p := range s.Properties {
		b.Properties[i] = Property{Name: p.Name, Schema: p.Schema.Brief()}
	}
	return &b
}

// Property is one named member of an object, in the order of the Go struct.
type Property struct {
	Name   string
	Schema *Schema
}

// Schemaer is implemented by an argument type that describes itself, where a
// Go type says too little.
type Schemaer interface{ JSONSchema() *Schema }

// Property finds a member by name; nil when there is none.
func (s *Schema) Property(name string) *Schema {
	for _, p := range s.Properties {
		if p.Name == name {
			return p.Schema
		}
	}
	return nil
}

func (s *Schema) is(kind string) bool { return slices.Contains(s.Types, kind) }

func (s *Schema) names() []string {
	names := make([]string, len(s.Properties))
	for i, p := range s.Properties {
		names[i] = p.Name
	}
	return names
}

// MarshalJSON writes the schema with its members in a fixed order, so that a
// generated file changes only when a tool does.
func (s *Schema) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	member := func(name string, value any) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		encoded, err := Marshal(value)
		if err != nil {
			panic(fmt.Sprintf("schema member %s: %v", name, err)) // only strings, numbers and schemas come here
		}
		fmt.Fprintf(&b, "%q:%s", name, encoded)
	}
	switch len(s.Types) {
	case 0:
	case 1:
		member("type", s.Types[0])
	default:
		member("type", s.Types)
	}
	if s.Description != "" {
		member("description", s.Description)
	}
	if len(s.Enum) > 0 {
		member("enum", s.Enum)
	}
	if s.Minimum != nil {
		member("minimum", *s.Minimum)
	}
	if s.Maximum != nil {
		member("maximum", *s.Maximum)
	}
	if s.MaxLength > 0 {
		member("maxLength", s.MaxLength)
	}
	if s.is("object") {
		s.marshalObject(member)
	}
	if s.Items != nil {
		member("items", s.Items)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (s *Schema) marshalObject(member func(string, any)) {
	switch {
	case s.Values != nil:
		member("additionalProperties", s.Values)
	default:
		member("properties", properties(s.Properties))
		if len(s.Required) > 0 {
			member("required", s.Required)
		}
		if !s.Open && !s.brief {
			member("additionalProperties", false)
		}
	}
}

type properties []Property

func (ps properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range ps {
		if i > 0 {
			b.WriteByte(',')
		}
		encoded, err := Marshal(p.Schema)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%q:%s", p.Name, encoded)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads back what MarshalJSON wrote, members in order.
func (s *Schema) UnmarshalJSON(data []byte) error {
	var wire struct {
		Type        json.RawMessage `json:"type"`
		Description string          `json:"description"`
		Enum        []string        `json:"enum"`
		Minimum     *float64        `json:"minimum"`
		Maximum     *float64        `json:"maximum"`
		MaxLength   int             `json:"maxLength"`
		Properties  json.RawMessage `json:"properties"`
		Required    []string        `json:"required"`
		Additional  json.RawMessage `json:"additionalProperties"`
		Items       *Schema         `json:"items"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return fmt.Errorf("read schema: %w", err)
	}
	*s = Schema{Description: wire.Description, Enum: wire.Enum, Minimum: wire.Minimum, Maximum: wire.Maximum,
		MaxLength: wire.MaxLength, Required: wire.Required, Items: wire.Items}
	if err := s.readTypes(wire.Type); err != nil {
		return err
	}
	switch a := string(wire.Additional); a {
	case "false":
	case "", "true":
		s.Open = s.is("object")
	default:
		s.Values = new(Schema)
		if err := json.Unmarshal(wire.Additional, s.Values); err != nil {
			return err
		}
	}
	return s.readProperties(wire.Properties)
}

func (s *Schema) readTypes(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	if raw[0] == '[' {
		return json.Unmarshal(raw, &s.Types)
	}
	s.Types = make([]string, 1)
	return json.Unmarshal(raw, &s.Types[0])
}

func (s *Schema) readProperties(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.ReadToken(); err != nil {
		return fmt.Errorf("read schema properties: %w", err)
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return fmt.Errorf("read schema property: %w", err)
		}
		p := Property{Name: name.String(), Schema: new(Schema)}
		value, err := dec.ReadValue()
		if err != nil {
			return fmt.Errorf("read schema property %s: %w", p.Name, err)
		}
		if err := json.Unmarshal(value, p.Schema); err != nil {
			return err
		}
		s.Properties = append(s.Properties, p)
	}
	return nil
}

// Marshal is json.Marshal without the escaping of <, > and &, so that raw
// members (arguments whose hash is signed, answers) keep every byte.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
