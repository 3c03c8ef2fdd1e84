package odoo

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/caller"
	api "pawgate/internal/client/odoo"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// The most records that one call changes. A deletion keeps all it can read of
// each.
const (
	maxChanged = 100
	maxDeleted = 20
)

type executeArgs struct {
	Model   string      `json:"model" doc:"sale.order"`
	Method  string      `json:"method" doc:"write …"`
	IDs     []int64     `json:"ids,omitempty" doc:"-"`
	Values  tool.Object `json:"values,omitempty" doc:"-"`
	Args    tool.Object `json:"args,omitempty" doc:"By name"`
	Preview bool        `json:"preview,omitempty" doc:"-"`
}

type executeResult struct {
	outcome
	Result   jsontext.Value `json:"result"`
	NextStep string         `json:"next_step,omitzero"` // a window in which a person goes on
}

// work is one odoo_execute, checked.
type work struct {
	executeArgs
	verb   verb
	values map[string]any
	args   map[string]any
}

func (o odoo) execute(ctx context.Context, who caller.Caller, a executeArgs) (executeResult, error) {
	s, err := o.session(ctx, who)
	if err != nil {
		return executeResult{}, err
	}
	w, err := s.work(a)
	if err != nil {
		return executeResult{}, err
	}
	switch w.verb {
	case read, find:
		return s.readBy(ctx, w)
	case create:
		return s.createBy(ctx, w)
	case write:
		return s.writeBy(ctx, w)
	case unlink:
		return s.unlinkBy(ctx, w)
	}
	return s.act(ctx, w)
}

func (s *session) work(a executeArgs) (work, error) {
	w := work{executeArgs: a}
	if _, old := renamed[a.Model]; old {
		return w, s.unknownModel(a.Model)
	}
	var err error
	if w.verb, err = verbOf(a.Method); err != nil {
		return w, err
	}
	if err := s.conn.may(w.verb, a.Model, a.Method); err != nil {
		return w, err
	}
	if w.values, err = decodeObject("values", a.Values); err != nil {
		return w, err
	}
	if w.args, err = decodeObject("args", a.Args); err != nil {
		return w, err
	}
	for _, name := range []string{"context", "ids", "vals", "vals_list"} {
		if _, given := w.args[name]; given {
			return w, fault.Invalid("args", "args cannot hold %s; use ids and values; the context is the connection's", name)
		}
	}
	for i, id := range a.IDs {
		if id <= 0 || slices.Contains(a.IDs[:i], id) {
			return w, fault.Invalid("ids", "ids must be the positive ids of different records")
		}
	}
	if len(a.IDs) > maxChanged && w.verb != read {
		return w, fault.Invalid("ids", "at most %d records in one call", maxChanged)
	}
	if a.Values != nil && w.verb == execute {
		return w, fault.Invalid("values", "%s takes no values; give its arguments in args", a.Method)
	}
	return w, nil
}

func (w work) needIDs() error {
	if len(w.IDs) == 0 {
		return fault.Invalid("ids", "%s needs the ids of the records", w.Method)
	}
	return nil
}

func (w work) needValues() error {
	if len(w.values) == 0 {
		return fault.Invalid("values", "%s needs values", w.Method)
	}
	return nil
}

func (s *session) createBy(ctx context.Context, w work) (executeResult, error) {
	if w.Method == "create" {
		if err := w.needValues(); err != nil {
			return executeResult{}, err
		}
	} else if len(w.IDs) != 1 {
		return executeResult{}, fault.Invalid("ids", "copy takes one id")
	}
	values, err := s.values(ctx, w.Model, "values", w.values)
	if err != nil {
		return executeResult{}, err
	}
	c := change{model: w.Model, method: w.Method, values: values, call: createCall(w.Model, values)}
	if w.Method == "copy" {
		c.args = map[string]any{"copied_id": w.IDs[0]}
		c.call = api.Call{Model: w.Model, Method: "copy", IDs: w.IDs, Options: map[string]any{"default": values}}
	}
	return s.carryOut(ctx, w, c)
}

func (s *session) writeBy(ctx context.Context, w work) (executeResult, error) {
	if err := w.needIDs(); err != nil {
		return executeResult{}, err
	}
	if err := w.needValues(); err != nil {
		return executeResult{}, err
	}
	values, err := s.values(ctx, w.Model, "values", w.values)
	if err != nil {
		return executeResult{}, err
	}
	before, err := s.readBefore(ctx, w.Model, w.IDs, slices.Sorted(maps.Keys(values)))
	if err != nil {
		return executeResult{}, err
	}
	c := change{model: w.Model, method: "write", ids: w.IDs, values: values, before: before,
		call: writeCall(w.Model, w.IDs, values), happened: s.written(w.Model, w.IDs, values)}
	note, err := s.keepFiles(ctx, &c)
	if err != nil {
		return executeResult{}, err
	}
	r, err := s.carryOut(ctx, w, c)
	r.Note = cmp.Or(r.Note, note)
	return r, err
}

// unlinkBy deletes, after everything that can be read of the records was kept.
func (s *session) unlinkBy(ctx context.Context, w work) (executeResult, error) {
	if err := w.needIDs(); err != nil {
		return executeResult{}, err
	}
	if len(w.IDs) > maxDeleted {
		return executeResult{}, fault.Invalid("ids", "at most %d records are deleted in one call", maxDeleted)
	}
	all, err := s.fields(ctx, w.Model)
	if err != nil {
		return executeResult{}, err
	}
	var stored []string
	for name, f := range all {
		if f.Store && f.Type != "binary" {
			stored = append(stored, name)
		}
	}
	slices.Sort(stored)
	before, err := s.readBefore(ctx, w.Model, w.IDs, stored)
	if err != nil {
		return executeResult{}, err
	}
	gone := func(ctx context.Context) (bool, error) {
		rows, err := s.rows(ctx, query{model: w.Model, domain: []any{[]any{"id", "in", w.IDs}}, context: map[string]any{"active_test": false}}, 1)
		return len(rows) == 0, err
	}
	r, err := s.carryOut(ctx, w, change{model: w.Model, method: "unlink", ids: w.IDs, before: before,
		call: api.Call{Model: w.Model, Method: "unlink", IDs: w.IDs}, happened: gone})
	if err != nil {
		return r, err
	}
	r.Note = "the deleted values are kept; a deleted record cannot be put back under its old id"
	for _, id := range w.IDs {
		r.Changes = append(r.Changes, fieldChange{ID: id, Field: "id", Before: encoded(id), After: jsontext.Value("null")})
	}
	return r, nil
}

// telling are fields by which one sees what an action did.
var telling = []string{"state", "active", "stage_id", "locked", "payment_state"}

// act runs any other public method.
func (s *session) act(ctx context.Context, w work) (executeResult, error) {
	c := change{model: w.Model, method: w.Method, ids: w.IDs, args: w.args, call: api.Call{Model: w.Model, Method: w.Method, IDs: w.IDs, Options: w.args}}
	if len(w.IDs) > 0 {
		all, err := s.fields(ctx, w.Model)
		if err != nil {
			return executeResult{}, err
		}
		var seen []string
		for _, name := range telling {
			if _, ok := all[name]; ok {
				seen = append(seen, name)
			}
		}
		if c.before, err = s.readBefore(ctx, w.Model, w.IDs, seen); err != nil {
			return executeResult{}, err
		}
	} else {
		c.call.IDs, c.ids = []int64{}, []int64{}
	}
	if w.Preview {
		return executeResult{outcome: outcome{State: "preview", Changes: []fieldChange{},
			Note: "what " + w.Method + " changes is known to Odoo alone"}, Result: jsontext.Value("null")}, nil
	}
	r, err := s.carryOut(ctx, w, c)
	if err != nil || len(w.IDs) == 0 {
		return r, err
	}
	r.Changes, err = s.difference(ctx, c)
	if err != nil {
		r.Changes, r.Note = []fieldChange{}, "the method ran, but the records could not be read back"
	}
	return r, nil
}

// difference shows what an action did to the telling fields.
func (s *session) difference(ctx context.Context, c change) ([]fieldChange, error) {
	changes := []fieldChange{}
	all, err := s.fields(ctx, c.model)
	if err != nil {
		return nil, err
	}
	after, err := s.rows(ctx, query{model: c.model, domain: []any{[]any{"id", "in", c.ids}}, columns: same(telling...), order: "id",
		context: map[string]any{"active_test": false}}, len(c.ids))
	if err != nil {
		return nil, err
	}
	for _, old := range c.before {
		for _, r := range after {
			if r.id() != old.id() {
				continue
			}
			for _, name := range telling {
				if string(r[name]) != string(old[name]) {
					changes = append(changes, fieldChange{ID: r.id(), Field: name, Before: all[name].plain(old[name]), After: all[name].plain(r[name])})
				}
			}
		}
	}
	return changes, nil
}

// carryOut makes a change or shows it.
func (s *session) carryOut(ctx context.Context, w work, c change) (executeResult, error) {
	if w.Preview {
		changes, err := s.compare(ctx, c)
		return executeResult{outcome: outcome{State: "preview", Changes: changes}, Result: jsontext.Value("null")}, err
	}
	made, result, err := s.make(ctx, c)
	if err != nil {
		return executeResult{}, err
	}
	if string(result) == "false" {
		made.Note = "Odoo answered false; look at the record"
	}
	return executeResult{outcome: made, Result: plainResult(result), NextStep: nextStep(result)}, nil
}

// maxResult bounds what a method's own result may take of an answer, in bytes.
const maxResult = 64 << 10

func plainResult(v jsontext.Value) jsontext.Value {
	if len(v) > maxResult {
		return encoded("the result has more than 65536 bytes and is left out")
	}
	var list []int64
	if json.Unmarshal(v, &list) == nil && len(list) == 1 {
		return encoded(list[0]) // JSON-2 answers create with a list
	}
	return v
}
