package tool

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// The tags of an argument struct:
//
//	Limit int `json:"limit,omitempty" doc:"Most memories to return; 10 if left out" min:"1" max:"100"`
//
// json gives the name, and omitempty or omitzero makes the argument optional;
// doc is the description, or "-" where the name says all; enum lists the accepted words, separated by commas;
// min and max bound a number; maxlen bounds a text, in code points.

var timeType = reflect.TypeFor[time.Time]()

// SchemaOf derives the schema of an argument struct. It panics, naming the
// field, on anything that the published schema could not say: an interface,
// a missing json name, a missing description, an unknown kind.
func SchemaOf[A any]() *Schema {
	t := reflect.TypeFor[A]()
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("arguments must be a struct, not %s", t))
	}
	return structSchema(t)
}

func structSchema(t reflect.Type) *Schema {
	s := &Schema{Types: []string{"object"}}
	for f := range fields(t) {
		name, optional := jsonName(f)
		property := typeSchema(f.Type, t.Name()+"."+f.Name)
		applyTags(property, f)
		if f.Tag.Get("doc") == "" {
			panic(fmt.Sprintf("%s.%s: the doc tag is missing", t.Name(), f.Name))
		}
		s.Properties = append(s.Properties, Property{Name: name, Schema: property})
		if !optional {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

// fields yields the exported fields, those of embedded structs in their place.
func fields(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			if f.Anonymous || !f.IsExported() {
				continue
			}
			if !yield(f) {
				return
			}
		}
	}
}

func jsonName(f reflect.StructField) (name string, optional bool) {
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		panic(fmt.Sprintf("field %s: the json tag is missing", f.Name))
	}
	return name, strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
}

func typeSchema(t reflect.Type, where string) *Schema {
	if s, ok := reflect.Zero(t).Interface().(Schemaer); ok {
		return s.JSONSchema()
	}
	if t == timeType {
		return &Schema{Types: []string{"string"}}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem(), where)
	case reflect.String:
		return &Schema{Types: []string{"string"}}
	case reflect.Bool:
		return &Schema{Types: []string{"boolean"}}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return &Schema{Types: []string{"integer"}}
	case reflect.Float64:
		return &Schema{Types: []string{"number"}}
	case reflect.Slice:
		return &Schema{Types: []string{"array"}, Items: typeSchema(t.Elem(), where)}
	case reflect.Map:
		return &Schema{Types: []string{"object"}, Values: typeSchema(t.Elem(), where)}
	case reflect.Struct:
		return structSchema(t)
	}
	panic(fmt.Sprintf("%s: an argument cannot be a %s", where, t))
}

// unsaid is the doc stands for no description: what is listed is sent to a model with every
// request, and should not say anything twice.
const unsaid = "-"

func applyTags(s *Schema, f reflect.StructField) {
	if doc := f.Tag.Get("doc"); doc != unsaid {
		s.Description = doc
	}
	if enum := f.Tag.Get("enum"); enum != "" {
		target := s
		if s.Items != nil {
			target = s.Items
		}
		target.Enum = strings.Split(enum, ",")
	}
	s.Minimum = numberTag(f, "min", s.Minimum)
	s.Maximum = numberTag(f, "max", s.Maximum)
	if n := numberTag(f, "maxlen", nil); n != nil {
		s.MaxLength = int(*n)
	}
}

func numberTag(f reflect.StructField, tag string, otherwise *float64) *float64 {
	text := f.Tag.Get(tag)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(fmt.Sprintf("field %s: the %s tag is no number", f.Name, tag))
	}
	return &n
}
