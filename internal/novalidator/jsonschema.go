// Package jsonschema stands in for the JSON Schema validator that mcp-go links
// for an option pawgate does not use: the router checks arguments itself,
// before mcp-go sees them. The real package compiles its meta-schemas while it
// is initialised, which was half of the router's cold start.
//
// It is a module of its own because a replace directive in go.mod puts it in
// that package's place. Should the option ever be turned on, every schema
// fails to compile with ErrNotLinked; nothing passes unchecked.
package jsonschema

import (
	"encoding/json"
	"errors"
	"io"
)

// ErrNotLinked is the answer to everything that would validate.
var ErrNotLinked = errors.New("the JSON Schema validator is not linked into pawgate")

// Schema is never made.
type Schema struct{}

// Validate refuses.
func (*Schema) Validate(any) error { return ErrNotLinked }

// Compiler compiles nothing.
type Compiler struct{}

// NewCompiler is a compiler that refuses.
func NewCompiler() *Compiler { return &Compiler{} }

// AddResource refuses.
func (*Compiler) AddResource(string, any) error { return ErrNotLinked }

// Compile refuses.
func (*Compiler) Compile(string) (*Schema, error) { return nil, ErrNotLinked }

// ValidationError is never returned; mcp-go names its fields.
type ValidationError struct {
	InstanceLocation []string
	ErrorKind        any
	Causes           []*ValidationError
}

func (*ValidationError) Error() string { return ErrNotLinked.Error() }

// UnmarshalJSON decodes a document, numbers kept as they are written.
func UnmarshalJSON(r io.Reader) (any, error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	var doc any
	err := dec.Decode(&doc)
	return doc, err
}
