package tool

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/fault"
)

// Normalize checks arguments against the schema and returns them in one
// canonical form: members in the schema's order, no white space, strings in
// one escaping, optional nulls left out, and a string that holds exactly the
// JSON of the wanted number, boolean, array or object turned into it (the
// predecessor published every parameter as a string). Numbers keep every
// digit. Normalize is idempotent.
//
// The error is always a *fault.InvalidArgument.
func (s *Schema) Normalize(arguments []byte) ([]byte, error) {
	if trimmed := bytes.TrimSpace(arguments); len(trimmed) == 0 || string(trimmed) == "null" {
		arguments = []byte("{}")
	}
	if k := jsontext.Value(arguments).Kind(); k != '{' {
		return nil, fault.Invalid("arguments", "arguments must be an object, not %s", kindName(k))
	}
	return s.appendObject(nil, "", arguments)
}

// appendValue appends the canonical form of one value. path names the value
// in errors: "limit", "filter.since", "ids[2]".
func (s *Schema) appendValue(dst []byte, path string, v jsontext.Value) ([]byte, error) {
	kind := v.Kind()
	if kind == '"' && !s.is("string") && len(s.Types) > 0 {
		inner, err := s.unwrap(path, v)
		if err != nil {
			return nil, err
		}
		v, kind = inner, inner.Kind()
	}
	switch {
	case len(s.Types) == 0:
		return appendAny(dst, path, v)
	case kind == '"' && s.is("string"):
		return s.appendString(dst, path, v)
	case kind == '0' && s.is("integer"):
		return s.appendInteger(dst, path, v)
	case kind == '0' && s.is("number"):
		return s.appendNumber(dst, path, v)
	case (kind == 't' || kind == 'f') && s.is("boolean"):
		return append(dst, v...), nil
	case kind == '[' && s.is("array"):
		return s.appendArray(dst, path, v)
	case kind == '{' && s.is("object"):
		return s.appendObject(dst, path, v)
	}
	return nil, s.mismatch(path, kind)
}

// unwrap reads the JSON inside a string: "90" for 90, "[1,2]" for [1,2].
func (s *Schema) unwrap(path string, v jsontext.Value) (jsontext.Value, error) {
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return nil, fault.Invalid(path, "%s holds an invalid character", path)
	}
	inner := jsontext.Value(text)
	if !inner.IsValid() || inner.Kind() == '"' || inner.Kind() == 'n' {
		return nil, s.mismatch(path, '"')
	}
	return jsontext.Value(bytes.TrimSpace(inner)), nil
}

func (s *Schema) mismatch(path string, got jsontext.Kind) error {
	return fault.Invalid(path, "%s must be %s, not %s", path, s.wanted(), kindName(got))
}

func (s *Schema) wanted() string {
	words := make([]string, len(s.Types))
	for i, t := range s.Types {
		words[i] = cmp.Or(map[string]string{
			"string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false",
			"array": "an array", "object": "an object",
		}[t], t)
	}
	return strings.Join(words, " or ")
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "such a string"
	case '0':
		return "such a number"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "broken JSON"
}

func (s *Schema) appendString(dst []byte, path string, v jsontext.Value) ([]byte, error) {
	text, err := unquote(path, v)
	if err != nil {
		return nil, err
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, text) {
		return nil, fault.Invalid(path, "%s must be one of %s", path, strings.Join(s.Enum, ", "))
	}
	if s.MaxLength > 0 && len(text) > s.MaxLength && utf8.RuneCountInString(text) > s.MaxLength {
		return nil, fault.Invalid(path, "%s must be at most %d characters, not %d", path, s.MaxLength, utf8.RuneCountInString(text))
	}
	return jsontext.AppendQuote(dst, text)
}

// unquote refuses what Postgres cannot hold: NUL and lone surrogates.
func unquote(path string, v jsontext.Value) (string, error) {
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", fault.Invalid(path, "%s holds an invalid character (a lone surrogate or broken UTF-8)", path)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return "", fault.Invalid(path, "%s holds a NUL character, which cannot be stored; remove it", path)
	}
	return string(text), nil
}

func (s *Schema) appendInteger(dst []byte, path string, v jsontext.Value) ([]byte, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return nil, fault.Invalid(path, "%s is too large for a whole number of 64 bits", path)
	case err != nil:
		return nil, s.mismatch(path, '0')
	case s.outside(float64(n)):
		return nil, fault.Invalid(path, "%s must be %s", path, s.bounds())
	}
	if s.is("string") { // an identifier: one form for 12 and "12"
		return fmt.Appendf(dst, "%q", v), nil
	}
	return strconv.AppendInt(dst, n, 10), nil
}

// maxDigits bounds how a number is written. PostgreSQL's numeric takes far more,
// but no number of a tool needs it, and a short text can stand for a long one.
const maxDigits = 40

// storable reports whether a number can be kept: not too long, and with an
// exponent that a float64 has too.
func storable(v jsontext.Value) bool {
	if len(v) > maxDigits {
		return false
	}
	_, exponent, _ := bytes.Cut(bytes.ToLower(v), []byte("e"))
	e, err := strconv.Atoi(string(exponent))
	return len(exponent) == 0 || err == nil && e > -300 && e < 300
}

func (s *Schema) appendNumber(dst []byte, path string, v jsontext.Value) ([]byte, error) {
	n, err := strconv.ParseFloat(string(v), 64)
	switch {
	case !storable(v) && err == nil:
		return nil, fault.Invalid(path, "%s is written with too many digits or too large an exponent", path)
	case err != nil:
		return nil, fault.Invalid(path, "%s is too large", path)
	case s.outside(n):
		return nil, fault.Invalid(path, "%s must be %s", path, s.bounds())
	}
	return append(dst, v...), nil
}

func (s *Schema) outside(n float64) bool {
	return s.Minimum != nil && n < *s.Minimum || s.Maximum != nil && n > *s.Maximum
}

func (s *Schema) bounds() string {
	text := func(n *float64) string { return strconv.FormatFloat(*n, 'f', -1, 64) }
	switch {
	case s.Maximum == nil:
		return "at least " + text(s.Minimum)
	case s.Minimum == nil:
		return "at most " + text(s.Maximum)
	}
	return "between " + text(s.Minimum) + " and " + text(s.Maximum)
}

func (s *Schema) appendArray(dst []byte, path string, v jsontext.Value) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	if _, err := dec.ReadToken(); err != nil {
		return nil, broken(path, err)
	}
	items := cmp.Or(s.Items, &Schema{})
	dst = append(dst, '[')
	for i := 0; dec.PeekKind() != ']'; i++ {
		item, err := dec.ReadValue()
		if err != nil {
			return nil, broken(path, err)
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = items.appendValue(dst, fmt.Sprintf("%s[%d]", path, i), item); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func (s *Schema) appendObject(dst []byte, path string, v jsontext.Value) ([]byte, error) {
	names, members, err := readMembers(path, v)
	if err != nil {
		return nil, err
	}
	if s.Values != nil || s.Open && len(s.Properties) == 0 {
		return s.appendMap(dst, path, names, members)
	}
	if err := s.checkNames(path, names, members); err != nil {
		return nil, err
	}
	dst = append(dst, '{')
	first := true
	for _, p := range s.Properties {
		member, given := members[p.Name]
		if !given || member.Kind() == 'n' {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = fmt.Appendf(dst, "%q:", p.Name)
		if dst, err = p.Schema.appendValue(dst, join(path, p.Name), member); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func (s *Schema) appendMap(dst []byte, path string, names []string, members map[string]jsontext.Value) ([]byte, error) {
	values := cmp.Or(s.Values, &Schema{})
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		var err error
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = jsontext.AppendQuote(dst, name); err != nil {
			return nil, broken(path, err)
		}
		dst = append(dst, ':')
		if dst, err = values.appendValue(dst, join(path, name), members[name]); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func (s *Schema) checkNames(path string, names []string, members map[string]jsontext.Value) error {
	for _, required := range s.Required {
		if v, given := members[required]; !given || v.Kind() == 'n' {
			if unknown := s.unknown(names); unknown != "" { // most often the same argument, misspelt
				return s.unknownArgument(path, unknown)
			}
			return fault.Invalid(join(path, required), "Missing required parameter: %s", join(path, required))
		}
	}
	if unknown := s.unknown(names); unknown != "" {
		return s.unknownArgument(path, unknown)
	}
	return nil
}

func (s *Schema) unknown(names []string) string {
	for _, name := range names {
		if s.Property(name) == nil {
			return name
		}
	}
	return ""
}

// unknownArgument lists the valid names, which lets a model correct itself.
func (s *Schema) unknownArgument(path, name string) error {
	shown := name
	if len(shown) > 64 {
		shown = strings.ToValidUTF8(shown[:64], "") + "…"
	}
	takes := strings.Join(s.names(), ", ")
	if takes == "" {
		takes = "no arguments"
	}
	return fault.Invalid(join(path, shown), "unknown argument %q; this tool takes %s", join(path, shown), takes)
}

func readMembers(path string, v jsontext.Value) ([]string, map[string]jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v))
	if _, err := dec.ReadToken(); err != nil {
		return nil, nil, broken(path, err)
	}
	var names []string
	members := map[string]jsontext.Value{}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, nil, broken(path, err)
		}
		name := token.String()
		if strings.ContainsRune(name, 0) {
			return nil, nil, fault.Invalid(cmp.Or(path, "arguments"), "an argument's name holds a NUL character")
		}
		value, err := dec.ReadValue()
		if err != nil {
			return nil, nil, broken(path, err)
		}
		names = append(names, name)
		members[name] = value.Clone()
	}
	return names, members, nil
}

// appendAny appends a value of any kind, compacted, with the same care for
// the characters of its strings.
func appendAny(dst []byte, path string, v jsontext.Value) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		token, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, broken(path, err)
		}
		switch {
		case token.Kind() == '"' && strings.ContainsRune(token.String(), 0):
			return nil, fault.Invalid(path, "%s holds a NUL character, which cannot be stored; remove it", path)
		case token.Kind() == '0' && !storable(jsontext.Value(token.String())):
			return nil, fault.Invalid(path, "%s holds a number with too many digits or too large an exponent", path)
		}
	}
	compact := v.Clone()
	if err := compact.Compact(); err != nil {
		return nil, broken(path, err)
	}
	return append(dst, compact...), nil
}

func broken(path string, err error) error {
	path = cmp.Or(path, "arguments")
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return fault.Invalid(path, "%s holds the same name twice", path)
	}
	return fault.Invalid(path, "%s is not valid JSON", path)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
