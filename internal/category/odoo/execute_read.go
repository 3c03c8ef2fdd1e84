package odoo

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	api "pawgate/internal/client/odoo"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// readBy runs a reading method with the same checks and limits as odoo_search:
// the predecessor let search_read through with every field and no limit.
func (s *session) readBy(ctx context.Context, w work) (executeResult, error) {
	if _, old := w.args["args"]; old {
		return executeResult{}, fault.Invalid("args", "give the arguments by name, such as domain, fields, limit")
	}
	switch w.Method {
	case "read":
		if err := w.needIDs(); err != nil {
			return executeResult{}, err
		}
		return s.recordsBy(ctx, w)
	case "search_read", "search":
		return s.recordsBy(ctx, w)
	case "search_count":
		return s.countBy(ctx, w)
	case "name_search":
		return s.namesBy(ctx, w)
	}
	return s.groupsBy(ctx, w)
}

// argument decodes one named argument; what is missing stays as it is.
func (w work) argument(name string, into any) error {
	v, ok := w.args[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(encoded(v), into); err != nil {
		return fault.Invalid("args", "the argument %s has the wrong form", name)
	}
	return nil
}

// only refuses arguments that the method does not have, as Odoo does.
func (w work) only(known ...string) error {
	for name := range w.args {
		if !slices.Contains(known, name) {
			return fault.Invalid("args", "%s takes no argument %s; it takes %s", w.Method, short(name), strings.Join(known, ", "))
		}
	}
	return nil
}

func (s *session) recordsBy(ctx context.Context, w work) (executeResult, error) {
	if err := w.only("domain", "fields", "limit", "offset", "order"); err != nil {
		return executeResult{}, err
	}
	a := searchArgs{Model: w.Model}
	var domain jsontext.Value
	for name, into := range map[string]any{"domain": &domain, "fields": &a.Fields, "limit": &a.Limit, "offset": &a.Offset, "order": &a.Order} {
		if err := w.argument(name, into); err != nil {
			return executeResult{}, err
		}
	}
	a.Domain = tool.List(domain)
	if w.Method == "read" {
		a.Domain, a.Order, a.Archived = tool.List(encoded([]any{[]any{"id", "in", w.IDs}})), "id", true
		if a.Limit == 0 {
			a.Limit = maxLimit
		}
	}
	if a.Limit < 0 || a.Limit > maxLimit || a.Offset < 0 {
		return executeResult{}, fault.Invalid("args", "limit must be between 1 and %d and offset at least 0", maxLimit)
	}
	q, err := s.query(ctx, a)
	if err != nil {
		return executeResult{}, err
	}
	p, err := s.list(ctx, q)
	if err != nil {
		return executeResult{}, err
	}
	return found(encoded(p)), nil
}

func found(v jsontext.Value) executeResult {
	return executeResult{outcome: outcome{State: "done", Changes: []fieldChange{}}, Result: v}
}

func (s *session) countBy(ctx context.Context, w work) (executeResult, error) {
	if err := w.only("domain"); err != nil {
		return executeResult{}, err
	}
	domain, err := s.domainArgument(ctx, w)
	if err != nil {
		return executeResult{}, err
	}
	return s.answer(ctx, w, api.Call{Args: []api.Arg{{Name: "domain", Value: domain}}})
}

func (s *session) domainArgument(ctx context.Context, w work) ([]any, error) {
	v, ok := w.args["domain"]
	if !ok {
		return []any{}, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, malformedDomain("it is not an array")
	}
	return s.checkDomain(ctx, w.Model, list)
}

func (s *session) namesBy(ctx context.Context, w work) (executeResult, error) {
	if err := w.only("name", "limit"); err != nil {
		return executeResult{}, err
	}
	if err := s.conn.mayByName(w.Model); err != nil {
		return executeResult{}, err
	}
	name, limit := "", defaultLimit
	if err := w.argument("name", &name); err != nil {
		return executeResult{}, err
	}
	if err := w.argument("limit", &limit); err != nil {
		return executeResult{}, err
	}
	return s.answer(ctx, w, api.Call{Options: map[string]any{"name": name, "limit": min(max(limit, 1), maxLimit)}})
}

// groupsBy runs read_group (to 18) or formatted_read_group (from 19). Fields
// stand in it as "amount_total:sum" and "date_order:month".
func (s *session) groupsBy(ctx context.Context, w work) (executeResult, error) {
	known := []string{"domain", "fields", "groupby", "limit", "offset", "orderby", "lazy"}
	if w.Method == "formatted_read_group" {
		known = []string{"domain", "groupby", "aggregates", "limit", "offset", "order"}
	}
	if err := w.only(known...); err != nil {
		return executeResult{}, err
	}
	options := map[string]any{"limit": maxLimit}
	for name, v := range w.args {
		options[name] = v
		switch name {
		case "fields", "groupby", "aggregates", "order", "orderby":
			if err := s.checkNames(ctx, w.Model, v); err != nil {
				return executeResult{}, err
			}
		case "limit":
			n := maxLimit
			if err := w.argument("limit", &n); err != nil {
				return executeResult{}, err
			}
			options[name] = min(max(n, 1), maxLimit)
		}
	}
	domain, err := s.domainArgument(ctx, w)
	if err != nil {
		return executeResult{}, err
	}
	options["domain"] = domain
	return s.answer(ctx, w, api.Call{Options: options})
}

// groupingTerm is a field, with a function or a granularity, and perhaps the
// field that the function is of; an order may follow.
var groupingTerm = regexp.MustCompile(`^([a-z_][\w.]*)(?::(\w+)(?:\(([\w.]+)\))?)?(?: (?:asc|desc|ASC|DESC))?$`)

// checkNames checks the fields in a list or text of a grouping.
func (s *session) checkNames(ctx context.Context, model string, v any) error {
	var list []string
	switch v := v.(type) {
	case string:
		list = names([]string{v})
	case []any:
		for _, item := range v {
			text, ok := item.(string)
			if !ok {
				return fault.Invalid("args", "a grouping's fields are texts such as amount_total:sum")
			}
			list = append(list, text)
		}
	default:
		return fault.Invalid("args", "a grouping's fields are a list of texts such as amount_total:sum")
	}
	for _, text := range list {
		if text == "__count" {
			continue
		}
		term := groupingTerm.FindStringSubmatch(text)
		if term == nil {
			return fault.Invalid("args", "%q is no field of a grouping; write it as amount_total:sum or date_order:month", short(text))
		}
		// "alias:sum(field)" reads field, whatever stands before it.
		if _, err := s.walk(ctx, model, cmp.Or(term[3], term[1])); err != nil {
			return err
		}
	}
	return nil
}

// answer calls a reading method and gives what Odoo says.
func (s *session) answer(ctx context.Context, w work, c api.Call) (executeResult, error) {
	c.Model, c.Method, c.Reads = w.Model, w.Method, true
	raw, err := s.call(ctx, c)
	if err != nil {
		return executeResult{}, s.unknownField(ctx, err, w.Model)
	}
	if len(raw) > maxResult {
		return executeResult{}, fault.New(fault.TooLarge, "%s gives more than %d bytes; ask for less", w.Method, maxResult)
	}
	return found(raw), nil
}
