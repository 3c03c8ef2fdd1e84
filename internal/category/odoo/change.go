package odoo

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
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
	//go:embed write_start.sql
	writeStartSQL string
	//go:embed write_end.sql
	writeEndSQL string
)

// change is something to be done to records.
type change struct {
	model, method string
	ids           []int64        // nil for a create
	values        map[string]any // as Odoo takes them
	args          map[string]any // of an action, by name
	before        []row          // the fields concerned, read before
	call          api.Call
	// whole says that before holds the contents of files, not their sizes.
	whole bool
	// happened looks whether the change was made, when Odoo's answer is lost
	// or is an error of its own making. nil: it cannot be told.
	happened func(context.Context) (bool, error)
}

// outcome is what became of a change.
type outcome struct {
	// State is done, unchanged, or preview.
	State   string        `json:"state"`
	WriteID string        `json:"write_id,omitzero"` // where the values before are kept
	Changes []fieldChange `json:"changes"`
	Note    string        `json:"note,omitzero"`
	// Undo are calls of odoo_execute that put the old values back.
	Undo []undo `json:"undo,omitzero"`
}

type undo struct {
	Model  string                    `json:"model"`
	Method string                    `json:"method"`
	IDs    []int64                   `json:"ids"`
	Values map[string]jsontext.Value `json:"values"`
}

// maxUndo is how many records' old values are repeated in an answer; the
// table keeps all of them.
const maxUndo = 20

// maxUndoFile is how many bytes of a file's base64 an undo repeats.
const maxUndoFile = 64 << 10

// undo is how to put a write back. An action has effects beyond its record,
// so nothing here undoes one. A file is put back only if its content was kept
// and is small: what is read of it besides is its size in words, and written
// back that would take the file's place.
func (s *session) undo(ctx context.Context, c change) ([]undo, error) {
	if c.method != "write" || len(c.before) > maxUndo {
		return nil, nil
	}
	all, err := s.fields(ctx, c.model)
	if err != nil {
		return nil, err
	}
	var calls []undo
	for _, r := range c.before {
		u := undo{Model: c.model, Method: "write", IDs: []int64{r.id()}, Values: map[string]jsontext.Value{}}
		for name := range c.values {
			v := r[name]
			switch link := r.ref(name); {
			case all[name].Type == "binary" && (!c.whole || len(v) > maxUndoFile):
				return nil, nil
			case all[name].Type == "one2many":
				return nil, nil // the lines themselves were changed
			case all[name].Type == "many2many":
				v = encoded([]any{[]any{6, 0, v}})
			case all[name].Type == "many2one" && link != nil:
				v = encoded(link.ID)
			}
			u.Values[name] = v
		}
		calls = append(calls, u)
	}
	return calls, nil
}

type fieldChange struct {
	ID     int64          `json:"id,omitzero"`
	Field  string         `json:"field"`
	Before jsontext.Value `json:"before,omitzero"`
	After  jsontext.Value `json:"after"`
}

// compare lists what a change does, field by field.
func (s *session) compare(ctx context.Context, c change) ([]fieldChange, error) {
	all, err := s.fields(ctx, c.model)
	if err != nil {
		return nil, err
	}
	changes := []fieldChange{}
	names := slices.Sorted(maps.Keys(c.values))
	if c.ids == nil {
		for _, name := range names {
			changes = append(changes, fieldChange{Field: name, After: all[name].brief(encoded(c.values[name]))})
		}
		return changes, nil
	}
	for _, r := range c.before {
		for _, name := range names {
			changes = append(changes, fieldChange{ID: r.id(), Field: name, Before: all[name].brief(all[name].plain(r[name])), After: all[name].brief(encoded(c.values[name]))})
		}
	}
	return changes, nil
}

// make writes the old values down, makes the change, and says what became of
// it. The result is Odoo's, null when it is unknown.
func (s *session) make(ctx context.Context, c change) (outcome, jsontext.Value, error) {
	changes, err := s.compare(ctx, c)
	if err != nil {
		return outcome{}, nil, err
	}
	o := outcome{State: "done", Changes: changes, WriteID: "w_" + strings.ToLower(rand.Text()[:16])}
	if o.Undo, err = s.undo(ctx, c); err != nil {
		return outcome{}, nil, err
	}
	if err := s.start(ctx, o.WriteID, c); err != nil {
		return outcome{}, nil, err
	}
	calling, cancel := leaveTime(ctx)
	defer cancel()
	result, err := s.call(calling, c.call)
	switch {
	case err == nil:
	case api.KindOf(err) == api.NoResult:
		result, err, o.Note = jsontext.Value("null"), nil, "the method ran; it gives no result, which this door of Odoo cannot write down"
	case api.Unsent(err), loginFailed(err):
		return outcome{}, nil, s.failed(ctx, o.WriteID, c, s.fault(err, c.model))
	case api.Lost(err) || api.KindOf(err) == api.Broken:
		return s.lost(ctx, o, c, err)
	default:
		return outcome{}, nil, s.failed(ctx, o.WriteID, c, s.fault(err, c.model))
	}
	if c.ids == nil {
		c.ids = createdIDs(result)
	}
	return o, result, s.end(ctx, o.WriteID, c, "done", o.Note)
}

// loginFailed: the call itself was refused and the new login failed, which is
// a fault already; nothing ran.
func loginFailed(err error) bool {
	_, ok := err.(*fault.Fault)
	return ok
}

// lookTime bounds the look whether a change was made.
const lookTime = 3 * time.Second

// leaveTime ends a call early enough that the look still fits into the time
// of the whole call: a function is stopped at its end, whatever it is doing.
func leaveTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok && time.Until(end) > 2*lookTime {
		return context.WithDeadline(ctx, end.Add(-lookTime))
	}
	return ctx, func() {}
}

// lost finds out what became of a change whose answer is lost.
func (s *session) lost(ctx context.Context, o outcome, c change, cause error) (outcome, jsontext.Value, error) {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	if c.happened != nil {
		happened, err := c.happened(look)
		if err == nil && happened {
			o.Note = "Odoo's answer was an error or was lost, but the change is there"
			return o, jsontext.Value("null"), s.end(look, o.WriteID, c, "done", o.Note)
		}
		if err == nil && api.KindOf(cause) == api.Broken {
			return outcome{}, nil, s.failed(look, o.WriteID, c, s.fault(cause, c.model))
		}
	}
	if err := s.end(look, o.WriteID, c, "unknown", "the answer was lost"); err != nil {
		return outcome{}, nil, err
	}
	return outcome{}, nil, fault.New(fault.OutcomeUnknown,
		"Odoo's answer to %s on %s was lost, so it may have been done or not; look first (odoo_search), do not simply repeat it", c.method, c.model).With("write_id", o.WriteID)
}

func (s *session) start(ctx context.Context, id string, c change) error {
	before := c.before
	if before == nil {
		before = []row{}
	}
	ids := c.ids
	if ids == nil {
		ids = []int64{}
	}
	values, args := c.values, c.args
	if values == nil {
		values = map[string]any{}
	}
	if args == nil {
		args = map[string]any{}
	}
	_, err := postgres.Exec(ctx, s.db, writeStartSQL, pgx.StrictNamedArgs{"id": id, "agent": s.who.Agent, "request": s.who.RequestID,
		"url": s.conn.URL, "database": s.conn.Database, "login": s.conn.Login, "model": c.model, "method": c.method, "ids": ids,
		"before": []byte(encoded(before)), "values": []byte(encoded(values)), "args": []byte(encoded(args)), "now": s.now()})
	if err != nil {
		return fmt.Errorf("keep values before: %w", err)
	}
	return nil
}

func (s *session) end(ctx context.Context, id string, c change, state, note string) error {
	ids := c.ids
	if ids == nil {
		ids = []int64{}
	}
	_, err := postgres.Exec(ctx, s.db, writeEndSQL, pgx.StrictNamedArgs{"id": id, "agent": s.who.Agent, "state": state, "note": note, "ids": ids, "now": s.now()})
	if err != nil {
		// The change was made, whatever happened to its record.
		return fault.New(fault.OutcomeUnknown, "%s on %s was sent to Odoo, but its outcome could not be kept; look first, do not simply repeat it", c.method, c.model)
	}
	return nil
}

// failed keeps that nothing was changed and gives the reason.
func (s *session) failed(ctx context.Context, id string, c change, cause error) error {
	note := cause.Error()
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	if err := s.end(ctx, id, c, "failed", note); err != nil {
		return fmt.Errorf("%w; and its record could not be kept: %w", cause, err)
	}
	return cause
}

const maxNote = 500

// createdIDs reads what create answers: an id at the old doors, a list at the
// new one.
func createdIDs(result jsontext.Value) []int64 {
	var ids []int64
	if json.Unmarshal(result, &ids) == nil {
		return ids
	}
	var id int64
	if json.Unmarshal(result, &id) == nil && id > 0 {
		return []int64{id}
	}
	return nil
}

// createCall is a create of one record. The old doors take it as a position,
// as a list since Odoo 12.
func createCall(model string, values map[string]any) api.Call {
	return api.Call{Model: model, Method: "create", Args: []api.Arg{{Name: "vals_list", Value: []any{values}}}}
}

func writeCall(model string, ids []int64, values map[string]any) api.Call {
	return api.Call{Model: model, Method: "write", IDs: ids, Args: []api.Arg{{Name: "vals", Value: values}}}
}

// readBefore reads the fields that a change concerns.
func (s *session) readBefore(ctx context.Context, model string, ids []int64, names []string) ([]row, error) {
	rows, err := s.rows(ctx, query{model: model, domain: []any{[]any{"id", "in", ids}}, columns: same(names...), order: "id",
		context: map[string]any{"active_test": false}}, len(ids))
	if err != nil {
		return nil, err
	}
	if len(rows) < len(ids) {
		for _, id := range ids {
			if !slices.ContainsFunc(rows, func(r row) bool { return r.id() == id }) {
				return nil, fault.New(fault.NotFound, "no %s with id %d that this Odoo user may see; nothing was changed", model, id)
			}
		}
	}
	return rows, nil
}

// written looks whether records hold values, as far as values compare: lists
// of commands do not.
func (s *session) written(model string, ids []int64, values map[string]any) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		all, err := s.fields(ctx, model)
		if err != nil {
			return false, err
		}
		var names []string
		for name, v := range values {
			if _, list := v.([]any); !list && all[name].Type != "binary" {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			return false, fmt.Errorf("compare %s: no value to compare", model)
		}
		rows, err := s.readBefore(ctx, model, ids, names)
		if err != nil {
			return false, err
		}
		for _, r := range rows {
			for _, name := range names {
				have := r[name]
				if link := r.ref(name); link != nil {
					have = encoded(link.ID)
				}
				if !equal(have, encoded(values[name])) {
					return false, nil
				}
			}
		}
		return true, nil
	}
}

func equal(a, b jsontext.Value) bool {
	var x, y float64
	if json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil {
		return x == y
	}
	return string(a) == string(b)
}
