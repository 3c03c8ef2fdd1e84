package odoo

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/fault"
)

// Odoo's own forms of time: UTC, no T, no zone.
const (
	odooDatetime = "2006-01-02 15:04:05"
	odooDate     = "2006-01-02"
)

// row is a record as Odoo sent it.
type row map[string]jsontext.Value

// ref is a link to another record.
type ref struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

func (r row) id() int64 {
	var id int64
	_ = json.Unmarshal(r["id"], &id) // Odoo gives every record one
	return id
}

func (r row) text(name string) string {
	var text string
	_ = json.Unmarshal(r[name], &text) // false is no text
	return text
}

func (r row) number(name string) float64 {
	var n float64
	_ = json.Unmarshal(r[name], &n)
	return n
}

func (r row) ref(name string) *ref {
	var pair []jsontext.Value
	if json.Unmarshal(r[name], &pair) != nil || len(pair) < 2 {
		return nil
	}
	var made ref
	if json.Unmarshal(pair[0], &made.ID) != nil || json.Unmarshal(pair[1], &made.Name) != nil {
		return nil
	}
	return &made
}

// plain turns a field's value as Odoo writes it into what it means: null for
// Odoo's false, an object for a link, a time with its zone.
func (f field) plain(v jsontext.Value) jsontext.Value {
	if len(v) == 0 {
		return jsontext.Value("null")
	}
	if string(v) == "false" && f.Type != "boolean" {
		return jsontext.Value("null")
	}
	switch f.Type {
	case "many2one":
		if link := (row{"v": v}).ref("v"); link != nil {
			return encoded(link)
		}
	case "datetime":
		if t, err := time.Parse(odooDatetime, row{"v": v}.text("v")); err == nil {
			return encoded(t.UTC().Format(time.RFC3339))
		}
	}
	return v
}

func encoded(v any) jsontext.Value {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // only values that were decoded from JSON come here
		return jsontext.Value("null")
	}
	return jsontext.Value(bytes.TrimRight(b.Bytes(), "\n"))
}

// sent turns a value as a caller writes it into Odoo's form; null becomes
// false. parameter names the argument in a refusal.
func (s *session) sent(f field, name, parameter string, v any) (any, error) {
	if v == nil {
		return false, nil
	}
	text, isText := v.(string)
	switch {
	case f.Type == "datetime" && isText && text != "":
		return sentDatetime(name, parameter, text)
	case f.Type == "date" && isText && text != "":
		if _, err := time.Parse(odooDate, text); err != nil {
			return nil, fault.Invalid(parameter, "%s is a date; write it as 2026-12-31", name)
		}
	case f.Type == "many2one" && isObject(v):
		return nil, fault.Invalid(parameter, "%s is a link to %s; give the record's id alone", name, f.Relation)
	}
	return v, nil
}

func isObject(v any) bool { _, ok := v.(map[string]any); return ok }

// sentDatetime converts to UTC. A time without a zone is taken in Odoo's own
// form only, because with a T people mean their own clock.
func sentDatetime(name, parameter, text string) (string, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UTC().Format(odooDatetime), nil
	}
	for _, form := range []string{odooDatetime, odooDate} {
		if _, err := time.Parse(form, text); err == nil {
			return text, nil
		}
	}
	return "", fault.Invalid(parameter, "%s is a time; write it with its zone, such as 2026-03-08T10:00:00+08:00", name)
}

// values checks and converts what is to be written to a record of a model.
func (s *session) values(ctx context.Context, model, parameter string, given map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(given))
	for name, v := range given {
		f, err := s.field(ctx, model, name, parameter)
		if err != nil {
			return nil, err
		}
		if f.Type == "one2many" || f.Type == "many2many" {
			if out[name], err = s.commands(ctx, f, name, parameter, v); err != nil {
				return nil, err
			}
			continue
		}
		if out[name], err = s.sent(f, name, parameter, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// commands checks Odoo's commands for lists of records: each changes another
// model, so that model's rights count too.
func (s *session) commands(ctx context.Context, f field, name, parameter string, v any) (any, error) {
	malformed := fault.Invalid(parameter, "%s takes a list of commands: [[0,0,{values}]] adds, [[1,id,{values}]] changes, [[6,0,[ids]]] sets", name)
	list, ok := v.([]any)
	if !ok {
		return nil, malformed
	}
	out := make([]any, 0, len(list))
	for _, item := range list {
		command, ok := item.([]any)
		if !ok || len(command) == 0 {
			return nil, malformed
		}
		number, ok := command[0].(json.Number)
		if !ok {
			return nil, malformed
		}
		verbs := map[string]verb{"0": create, "1": write, "2": unlink, "3": read, "4": read, "5": read, "6": read}
		v, ok := verbs[number.String()]
		if !ok {
			return nil, malformed
		}
		if err := s.conn.mayRelated(v, f.Relation); err != nil {
			return nil, err
		}
		for _, needed := range linkRights(f, number.String()) {
			if err := s.conn.may(needed, f.Relation, ""); err != nil {
				return nil, err
			}
		}
		if v == create || v == write {
			nested, ok := command[len(command)-1].(map[string]any)
			if !ok || len(command) != 3 {
				return nil, malformed
			}
			checked, err := s.values(ctx, f.Relation, parameter, nested)
			if err != nil {
				return nil, err
			}
			command = []any{command[0], command[1], checked}
		}
		out = append(out, command)
	}
	return out, nil
}

// linkRights are what a linking command needs on a field whose other side holds
// the key (one2many): there, linking rewrites the other record, and unlinking
// may delete it. On a many2many both only touch the table between.
func linkRights(f field, command string) []verb {
	if f.Type != "one2many" {
		return nil
	}
	switch command {
	case "3", "5", "6":
		return []verb{write, unlink}
	case "4":
		return []verb{write}
	}
	return nil
}

// mayRelated is may for the lines of a record. Linking only needs the model to
// be open.
func (c connection) mayRelated(v verb, model string) error {
	if v == read {
		return c.mayModel(model)
	}
	return c.may(v, model, "")
}

// decodeObject reads an argument of any members, numbers to the last digit.
func decodeObject(parameter string, raw []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return nil, fault.Invalid(parameter, "%s must be an object", parameter)
	}
	return object, nil
}

// names is a list of names; the predecessor took them separated by commas.
func names(list []string) []string {
	var out []string
	for _, item := range list {
		for name := range strings.SplitSeq(item, ",") {
			if name = strings.TrimSpace(name); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}
