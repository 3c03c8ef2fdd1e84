package odoo

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	api "pawgate/internal/client/odoo"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed fields.sql
	fieldsSQL string
	//go:embed fields_keep.sql
	fieldsKeepSQL string
	//go:embed fields_forget.sql
	fieldsForgetSQL string
)

// Times of the cache and of retries.
const (
	maxFieldsAge = time.Hour
	retrySoon    = time.Second
	retryLater   = 30 * time.Second
)

// field is what Odoo says of a field.
type field struct {
	Type      string             `json:"type"`
	Label     string             `json:"string"`
	Required  bool               `json:"required"`
	Readonly  bool               `json:"readonly"`
	Relation  string             `json:"relation"`
	Currency  string             `json:"currency_field"`
	Store     bool               `json:"store"`
	Related   jsontext.Value     `json:"related"` // the path of the field that it repeats
	Selection [][]jsontext.Value `json:"selection"`
}

type fields map[string]field

// attributes are what is asked of fields_get.
var attributes = []string{"string", "type", "required", "readonly", "relation", "currency_field", "store", "related", "selection"}

// label is a selection's word for a key, in the connection's language.
func (f field) label(key jsontext.Value) jsontext.Value {
	for _, pair := range f.Selection {
		if len(pair) == 2 && string(pair[0]) == string(key) {
			return pair[1]
		}
	}
	return nil
}

// keys are a selection's keys.
func (f field) keys() []string {
	var keys []string
	for _, pair := range f.Selection {
		var key string
		if len(pair) == 2 && json.Unmarshal(pair[0], &key) == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// fields are those of a model that this user may see and the connection does
// not hide.
func (s *session) fields(ctx context.Context, model string) (fields, error) {
	if f, ok := s.known[model]; ok {
		return f, nil
	}
	raw, err := s.keptFields(ctx, model)
	if err != nil {
		return nil, err
	}
	if raw == nil {
		if raw, err = s.askFields(ctx, model); err != nil {
			return nil, err
		}
	}
	var f fields
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("read fields of %s: %w", model, err)
	}
	open := make(fields, len(f))
	for name, one := range f {
		if !s.conn.hides(model, name) && !s.conn.hidesBehind(f, one) {
			open[name] = one
		}
	}
	s.known[model] = open
	return open, nil
}

// key says whose fields, and in which language.
func (s *session) key(model string) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"url": s.conn.URL, "database": s.conn.Database, "version": s.client.Server().Version,
		"uid": s.client.Server().UID, "model": model}
}

func (s *session) keptFields(ctx context.Context, model string) (jsontext.Value, error) {
	args := s.key(model)
	args["lang"], args["since"] = s.lang(), s.now().Add(-maxFieldsAge)
	kept, err := postgres.One[struct {
		Fields    []byte
		FetchedAt time.Time
	}](ctx, s.db, fieldsSQL, args)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read kept fields: %w", err)
	}
	return kept.Fields, nil
}

func (s *session) askFields(ctx context.Context, model string) (jsontext.Value, error) {
	raw, err := s.call(ctx, api.Call{Model: model, Method: "fields_get", Reads: true, Options: map[string]any{"attributes": attributes}})
	if err != nil {
		return nil, s.fault(err, model)
	}
	args := s.key(model)
	args["lang"], args["fields"], args["now"] = s.lang(), []byte(raw), s.now()
	if _, err := postgres.Exec(ctx, s.db, fieldsKeepSQL, args); err != nil {
		return nil, fmt.Errorf("keep fields: %w", err)
	}
	return raw, nil
}

// forgetFields makes the next call ask again: Odoo just said that it does not
// know a field of the kept list.
func (s *session) forgetFields(ctx context.Context, model string) error {
	delete(s.known, model)
	_, err := postgres.Exec(ctx, s.db, fieldsForgetSQL, s.key(model))
	return err
}

// field finds a field or says what there is instead.
func (s *session) field(ctx context.Context, model, name, parameter string) (field, error) {
	if s.conn.hides(model, name) {
		return field{}, fault.New(fault.Denied, "the field %s of %s is closed to this agent", name, model)
	}
	all, err := s.fields(ctx, model)
	if err != nil {
		return field{}, err
	}
	f, ok := all[name]
	if !ok {
		return field{}, fault.Invalid(parameter, "%s has no field %s in Odoo %s%s; odoo_schema_fields lists its fields",
			model, name, s.client.Server().Version, similar(name, all))
	}
	return f, nil
}

// similar suggests fields whose name shares a part with the wanted one.
func similar(name string, all fields) string {
	var close []string
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' }) {
		for candidate := range all {
			if len(part) > 2 && strings.Contains(candidate, part) && !slices.Contains(close, candidate) {
				close = append(close, candidate)
			}
		}
	}
	if len(close) == 0 {
		return ""
	}
	slices.Sort(close)
	return " (there are " + strings.Join(close[:min(len(close), 5)], ", ") + ")"
}

// source is the path of the field that a field repeats, in parts: Odoo writes
// it with dots, before 15 as a list.
func (f field) source() []string {
	var text string
	if json.Unmarshal(f.Related, &text) == nil {
		return strings.Split(text, ".")
	}
	var list []string
	if json.Unmarshal(f.Related, &list) != nil {
		return nil
	}
	return list
}

// hidesBehind reports whether a field repeats one that is closed: a lead has
// its customer's e-mail address, a product's variant all that the product has.
// Past the first link the models are not known, so there the field's name alone
// decides.
func (c connection) hidesBehind(all fields, f field) bool {
	path := f.source()
	if len(path) < 2 {
		return false
	}
	model, last := all[path[0]].Relation, path[len(path)-1]
	switch {
	case model == "":
		return false
	case matches(c.DeniedModels, model):
		return true
	case len(path) == 2:
		return c.hides(model, last)
	}
	return slices.ContainsFunc(c.DeniedFields, func(p string) bool {
		_, name, both := strings.Cut(p, "/")
		return both && match(name, last) || !both && match(p, last)
	})
}

// need refuses where a tool cannot do without fields that the connection hides
// or this Odoo lacks: taken for empty, they would make its answer wrong.
func (s *session) need(ctx context.Context, model, parameter string, names ...string) error {
	for _, name := range names {
		if _, err := s.field(ctx, model, name, parameter); err != nil {
			return err
		}
	}
	return nil
}

// containing is the condition that one of some fields holds a text, those left
// out that the connection hides: what is found would tell their values.
func (s *session) containing(ctx context.Context, model, text string, names ...string) ([]any, error) {
	all, err := s.fields(ctx, model)
	if err != nil {
		return nil, err
	}
	var either, conditions []any
	for _, name := range names {
		if _, ok := all[name]; !ok {
			continue
		}
		if len(conditions) > 0 {
			either = append(either, "|")
		}
		conditions = append(conditions, []any{name, "ilike", text})
	}
	if len(conditions) == 0 {
		return nil, fault.New(fault.Denied, "every field of %s that a text is looked for in is closed to this agent (%s)", model, strings.Join(names, ", "))
	}
	return append(either, conditions...), nil
}

// named are the fields that Odoo looks into besides the name where a record is
// searched by its name (_rec_names_search, 16 to 19).
var named = map[string][]string{
	"res.partner": {"complete_name", "email", "ref", "vat", "company_registry"}, "res.users": {"login", "email"},
	"product.product": {"default_code", "barcode"}, "product.template": {"default_code", "barcode"},
	"account.move": {"ref", "payment_reference", "partner_id"}, "sale.order": {"client_order_ref", "partner_id"},
	"account.account": {"code"}, "stock.lot": {"ref"}, "hr.employee": {"barcode", "work_email"}, "purchase.order": {"partner_ref"},
}

// mayByName refuses a search by name in a model one of whose hidden fields
// Odoo would look into.
func (c connection) mayByName(model string) error {
	for _, name := range append([]string{"name"}, named[model]...) {
		if c.hides(model, name) {
			return fault.New(fault.Denied, "a search of %s by name also looks into %s, which is closed to this agent; search by other fields or ids", model, name)
		}
	}
	return nil
}
