package odoo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	api "pawgate/internal/client/odoo"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// defaultLimit and maxLimit are how many records one answer holds.
const (
	defaultLimit = 20
	maxLimit     = 200
)

// paging is what every list takes.
type paging struct {
	Limit  int `json:"limit,omitempty" doc:"Or 20" min:"1" max:"200"`
	Offset int `json:"offset,omitempty" doc:"-" min:"0"`
}

// page is what every list answers.
type page struct {
	Records []tool.Object `json:"records"`
	Count   int           `json:"count"`
	// NextOffset is there when there are more.
	NextOffset int `json:"next_offset,omitzero"`
}

// column is a member of an answer and the field it comes from. A field that
// this version of Odoo does not have is left out.
type column struct {
	as, field string
	// currency is the field with the currency of an amount that Odoo does not
	// mark as one.
	currency string
}

// query is a search that was checked.
type query struct {
	model   string
	domain  []any
	columns []column
	order   string
	limit   int
	offset  int
	context map[string]any
}

// list searches and gives the records in their answer's form. It is one
// request to Odoo, whatever the number of records.
func (s *session) list(ctx context.Context, q query) (page, error) {
	q.limit = min(max(q.limit, 0), maxLimit)
	if q.limit == 0 {
		q.limit = defaultLimit
	}
	rows, err := s.rows(ctx, q, q.limit+1)
	if err != nil {
		return page{}, err
	}
	p := page{Records: []tool.Object{}}
	if len(rows) > q.limit {
		rows, p.NextOffset = rows[:q.limit], q.offset+q.limit
	}
	all, err := s.fields(ctx, q.model)
	if err != nil {
		return page{}, err
	}
	for _, r := range rows {
		record, err := s.record(q.model, all, q.columns, r)
		if err != nil {
			return page{}, err
		}
		p.Records = append(p.Records, record)
	}
	p.Count = len(p.Records)
	return p, nil
}

// rows reads records as Odoo writes them, with the currencies of amounts.
func (s *session) rows(ctx context.Context, q query, limit int) ([]row, error) {
	wanted, err := s.wanted(ctx, q.model, q.columns)
	if err != nil {
		return nil, err
	}
	order := q.order
	if order == "" {
		order = "id desc"
	}
	context := map[string]any{"bin_size": true} // a size instead of a file's content
	for name, value := range q.context {
		context[name] = value
	}
	raw, err := s.call(ctx, api.Call{Model: q.model, Method: "search_read", Reads: true, Args: []api.Arg{{Name: "domain", Value: q.domain}},
		Options: map[string]any{"fields": wanted, "limit": limit, "offset": q.offset, "order": order}, Context: context})
	if err != nil {
		return nil, s.unknownField(ctx, err, q.model)
	}
	var rows []row
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, fault.New(serverError, "Odoo answered a search with something that is no list of records")
	}
	return rows, nil
}

// unknownField drops the kept fields when Odoo contradicts them.
func (s *session) unknownField(ctx context.Context, err error, model string) error {
	if api.KindOf(err) == api.UnknownField {
		if forgetErr := s.forgetFields(ctx, model); forgetErr != nil {
			return fmt.Errorf("forget fields: %w", forgetErr)
		}
	}
	return s.fault(err, model)
}

// wanted are the fields to ask for: those that exist and are not hidden, and
// the currencies that go with amounts.
func (s *session) wanted(ctx context.Context, model string, columns []column) ([]string, error) {
	all, err := s.fields(ctx, model)
	if err != nil {
		return nil, err
	}
	wanted := []string{"id"}
	add := func(name string) {
		if _, ok := all[name]; ok && !slices.Contains(wanted, name) {
			wanted = append(wanted, name)
		}
	}
	for _, c := range columns {
		add(c.field)
		if f, ok := all[c.field]; ok {
			add(currencyField(f, c, all))
		}
	}
	return wanted, nil
}

// currencyField is where an amount's currency is; "" for what is no amount.
func currencyField(f field, c column, all fields) string {
	if c.currency != "" {
		return c.currency
	}
	if f.Type != "monetary" {
		return ""
	}
	for _, name := range []string{f.Currency, "currency_id", "company_currency", "company_currency_id"} {
		if _, ok := all[name]; ok && name != "" {
			return name
		}
	}
	return ""
}

// record is one record in its answer's form: links as objects, amounts with
// their currency, times with their zone, null where Odoo says false, and a
// selection's word in the connection's language beside its key.
func (s *session) record(model string, all fields, columns []column, r row) (tool.Object, error) {
	var b bytes.Buffer
	enc := jsontext.NewEncoder(&b, jsontext.AllowInvalidUTF8(true))
	write := func(name string, v jsontext.Value) error {
		if err := enc.WriteToken(jsontext.String(name)); err != nil {
			return err
		}
		return enc.WriteValue(v)
	}
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	seen := map[string]bool{"id": true}
	err := write("id", encoded(r.id()))
	for _, c := range columns {
		f, ok := all[c.field]
		if !ok || err != nil || seen[c.as] {
			continue
		}
		seen[c.as] = true
		v := f.plain(r[c.field])
		if currency := currencyField(f, c, all); currency != "" && string(v) != "null" {
			v = amount(v, r.ref(currency))
		}
		err = write(c.as, v)
		if label := f.label(v); label != nil && err == nil && f.Type == "selection" && !seen[c.as+"_label"] {
			err = write(c.as+"_label", label)
		}
	}
	if err == nil {
		err = enc.WriteToken(jsontext.EndObject)
	}
	if err != nil {
		return nil, fmt.Errorf("encode record of %s: %w", model, err)
	}
	return tool.Object(bytes.TrimSpace(b.Bytes())), nil
}

// amount is a number with its currency, whose name in Odoo is its ISO code.
func amount(v jsontext.Value, currency *ref) jsontext.Value {
	var code *string
	if currency != nil {
		code = &currency.Name
	}
	return encoded(struct {
		Amount   jsontext.Value `json:"amount"`
		Currency *string        `json:"currency"`
	}{v, code})
}

// one reads one record by its id, or says that there is none. archived
// records are found too: whoever has the id means the record.
func (s *session) one(ctx context.Context, model string, id int64, columns []column) (row, error) {
	rows, err := s.rows(ctx, query{model: model, domain: []any{[]any{"id", "=", id}}, columns: columns,
		context: map[string]any{"active_test": false}}, 1)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fault.New(fault.NotFound, "no %s with id %d that this Odoo user may see", model, id)
	}
	return rows[0], nil
}

// same makes columns of fields that keep their names.
func same(names ...string) []column {
	columns := make([]column, len(names))
	for i, name := range names {
		columns[i] = column{as: name, field: name}
	}
	return columns
}
