package odoo

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// operators are those of a search condition in Odoo 16 to 19.
var operators = []string{"=", "!=", "<>", ">", ">=", "<", "<=", "like", "ilike", "not like", "not ilike", "=like", "=ilike", "not =like", "not =ilike",
	"in", "not in", "child_of", "parent_of", "=?", "any", "not any"}

// domain reads a search condition that a caller wrote. Whatever is not exactly
// a domain is refused: the predecessor took it for [], which is everything.
func (s *session) domain(ctx context.Context, model string, raw tool.List) ([]any, error) {
	if len(raw) == 0 {
		return []any{}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var list []any
	if err := dec.Decode(&list); err != nil || list == nil { // null is not "everything"
		return nil, malformedDomain("it is not a JSON array")
	}
	return s.checkDomain(ctx, model, list)
}

func malformedDomain(why string) error {
	return fault.Invalid("domain", `the domain is malformed: %s; write it as [["state","=","sale"],["amount_total",">",100]]`, why)
}

// checkDomain counts operands as Odoo does (prefix notation, conditions side
// by side are joined by and) and checks every condition.
func (s *session) checkDomain(ctx context.Context, model string, list []any) ([]any, error) {
	out := make([]any, 0, len(list))
	open := 0 // operands that are still to come
	for _, item := range list {
		open = max(open, 1)
		switch item := item.(type) {
		case string:
			switch item {
			case "&", "|":
				open++
			case "!":
			default:
				return nil, malformedDomain(`"` + short(item) + `" stands where a condition or &, |, ! must be`)
			}
			out = append(out, item)
		case []any:
			checked, err := s.checkCondition(ctx, model, item)
			if err != nil {
				return nil, err
			}
			out = append(out, checked)
			open--
		default:
			return nil, malformedDomain("a condition is an array of three: field, operator, value")
		}
	}
	if open != 0 {
		return nil, malformedDomain("an operator &, | or ! has too few conditions after it")
	}
	return out, nil
}

func (s *session) checkCondition(ctx context.Context, model string, leaf []any) (any, error) {
	if len(leaf) != 3 {
		return nil, malformedDomain("a condition has three parts: field, operator, value")
	}
	operator, ok := leaf[1].(string)
	operator = strings.ToLower(operator) // one spelling for the check and for Odoo, which knows several
	if !ok || !slices.Contains(operators, operator) {
		return nil, malformedDomain("an operator is one of " + strings.Join(operators, ", "))
	}
	if n, ok := leaf[0].(json.Number); ok && operator == "=" && (n == "0" || n == "1") { // Odoo's own false and true
		return []any{n, operator, leaf[2]}, nil
	}
	path, ok := leaf[0].(string)
	if !ok || path == "" {
		return nil, malformedDomain("a condition begins with a field's name")
	}
	f, err := s.walk(ctx, model, path)
	if err != nil {
		return nil, err
	}
	if operator == "any" || operator == "not any" {
		inner, ok := leaf[2].([]any)
		if !ok || f.Relation == "" {
			return nil, malformedDomain(operator + " takes a domain, on a field that links to records")
		}
		if err := s.conn.mayModel(f.Relation); err != nil {
			return nil, err
		}
		checked, err := s.checkDomain(ctx, f.Relation, inner)
		return []any{path, operator, checked}, err
	}
	if err := s.mayByText(ctx, model, path, f, leaf[2]); err != nil {
		return nil, err
	}
	value, err := s.conditionValue(f, path, leaf[2])
	return []any{path, operator, value}, err
}

// mayByText checks a condition that compares a link, or a record's name, with a
// text: Odoo then searches the linked model by name.
func (s *session) mayByText(ctx context.Context, model, path string, f field, value any) error {
	if !hasText(value) {
		return nil
	}
	if f.Relation != "" {
		return s.conn.mayByName(f.Relation)
	}
	before, last, dotted := cutLast(path)
	if last != "display_name" {
		return nil
	}
	if dotted {
		link, err := s.walk(ctx, model, before)
		if err != nil {
			return err
		}
		model = link.Relation
	}
	return s.conn.mayByName(model)
}

func hasText(v any) bool {
	switch v := v.(type) {
	case string:
		return true
	case []any:
		return slices.ContainsFunc(v, hasText)
	}
	return false
}

func cutLast(path string) (before, last string, dotted bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

func (s *session) conditionValue(f field, path string, v any) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return s.sent(f, path, "domain", v)
	}
	out := make([]any, len(list))
	for i, item := range list {
		var err error
		if out[i], err = s.sent(f, path, "domain", item); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// walk follows a dotted path and checks every model and field on the way: a
// condition on a hidden field would tell its value by what is found.
func (s *session) walk(ctx context.Context, model, path string) (field, error) {
	var f field
	var err error
	parts := strings.Split(path, ".")
	for i, name := range parts {
		if f, err = s.field(ctx, model, name, "domain"); err != nil {
			return f, err
		}
		if i == len(parts)-1 {
			break
		}
		switch {
		case f.Type == "date" || f.Type == "datetime" || f.Type == "properties": // .month_number, a property's name
			return field{Type: "integer"}, nil
		case f.Relation == "":
			return f, fault.Invalid("domain", "%s of %s links to nothing, so %s cannot go through it", name, model, path)
		}
		if err := s.conn.mayModel(f.Relation); err != nil {
			return f, err
		}
		model = f.Relation
	}
	return f, nil
}

var orderTerm = regexp.MustCompile(`(?i)^([a-z_][a-z0-9_]*)(?:\s+(asc|desc))?$`)

// order checks an order and makes it total: with id as the last key no page
// shows a record twice or skips one.
func (s *session) order(ctx context.Context, model, order string) (string, error) {
	if strings.TrimSpace(order) == "" {
		return "id desc", nil
	}
	var terms []string
	total := false
	for term := range strings.SplitSeq(order, ",") {
		parts := orderTerm.FindStringSubmatch(strings.TrimSpace(term))
		if parts == nil {
			return "", fault.Invalid("order", "order is a list of fields, each with asc or desc, such as: date_order desc, name")
		}
		if _, err := s.field(ctx, model, parts[1], "order"); err != nil {
			return "", err
		}
		total = total || parts[1] == "id"
		terms = append(terms, strings.TrimSpace(parts[1]+" "+strings.ToLower(parts[2])))
	}
	if !total {
		terms = append(terms, "id")
	}
	return strings.Join(terms, ", "), nil
}

// short keeps a quoted word readable.
func short(text string) string {
	const most = 40
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
