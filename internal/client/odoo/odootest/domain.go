package odootest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// find evaluates a domain, with the rules of archived records and companies.
func (w work) find(domain []any) ([]map[string]any, *fault) {
	test, f := w.compile(domain)
	if f != nil {
		return nil, f
	}
	_, archives := w.m.fields["active"]
	hide := archives && w.c.Context["active_test"] != false && !strings.Contains(fmt.Sprint(domain), "active")
	var rows []map[string]any
	for _, r := range w.m.rows {
		if hide && r["active"] == false || !w.visible(r) {
			continue
		}
		ok, f := test(r)
		if f != nil {
			return nil, f
		}
		if ok {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

type condition func(map[string]any) (bool, *fault)

// compile reads the prefix notation from its end.
func (w work) compile(domain []any) (condition, *fault) {
	var stack []condition
	pop := func() condition {
		if len(stack) == 0 {
			return func(map[string]any) (bool, *fault) { return true, nil }
		}
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		return c
	}
	both := func(a, b condition, or bool) condition {
		return func(r map[string]any) (bool, *fault) {
			ok, f := a(r)
			if f != nil || ok == or {
				return ok, f
			}
			return b(r)
		}
	}
	for _, item := range slices.Backward(domain) {
		switch item := item.(type) {
		case string:
			switch item {
			case "&", "|":
				stack = append(stack, both(pop(), pop(), item == "|"))
			case "!":
				a := pop()
				stack = append(stack, func(r map[string]any) (bool, *fault) { ok, f := a(r); return !ok, f })
			default:
				return nil, w.malformed(item)
			}
		case []any:
			if len(item) != 3 {
				return nil, w.malformed(fmt.Sprint(item))
			}
			if _, f := w.values(w.m, nil, item[0].(string), item); f != nil {
				return nil, f
			}
			stack = append(stack, w.leaf(item))
		default:
			return nil, w.malformed(fmt.Sprint(item))
		}
	}
	for len(stack) > 1 {
		stack = append(stack, both(pop(), pop(), false))
	}
	return pop(), nil
}

func (w work) malformed(item string) *fault {
	if w.Major >= 19 {
		return fail("builtins.ValueError", "Domain() invalid item in domain: '%s'", item)
	}
	return fail("builtins.ValueError", "too many values to unpack (expected 3)")
}

func (w work) leaf(item []any) condition {
	return func(r map[string]any) (bool, *fault) {
		have, f := w.values(w.m, r, item[0].(string), item)
		if f != nil {
			return false, f
		}
		return slices.ContainsFunc(have, func(v any) bool { return holds(v, item[1].(string), item[2]) }), nil
	}
}

// values follows a path; without a row it only checks that the path exists.
func (w work) values(m *model, r map[string]any, path string, leaf []any) ([]any, *fault) {
	name, rest, more := strings.Cut(path, ".")
	f, ok := m.fields[name]
	if !ok {
		where := "leaf"
		if w.Major >= 19 {
			where = "condition"
		}
		return nil, fail("builtins.ValueError", "Invalid field %s.%s in %s ('%s', '%s', %s)", m.name, name, where, path, leaf[1], python(leaf[2]))
	}
	if !more {
		v, ok := r[name]
		if !ok {
			v = false
		}
		if list, ok := v.([]any); ok {
			return list, nil
		}
		return []any{v}, nil
	}
	relation, _ := f["relation"].(string)
	related := w.models[relation]
	if related == nil {
		return nil, nil
	}
	return w.values(related, related.find(toInt(r[name])), rest, leaf)
}

func holds(have any, operator string, want any) bool {
	if list, ok := want.([]any); ok {
		in := slices.ContainsFunc(list, func(v any) bool { return same(have, v) })
		return in == (operator == "in" || operator == "=")
	}
	switch operator {
	case "=":
		return same(have, want)
	case "!=", "<>":
		return !same(have, want)
	case "ilike":
		return have != false && strings.Contains(strings.ToLower(fmt.Sprint(have)), strings.ToLower(fmt.Sprint(want)))
	case "like":
		return have != false && strings.Contains(fmt.Sprint(have), fmt.Sprint(want))
	}
	if have == false {
		return false
	}
	n := compare(have, want)
	return operator == ">" && n > 0 || operator == ">=" && n >= 0 || operator == "<" && n < 0 || operator == "<=" && n <= 0
}

func same(a, b any) bool {
	x, xok := number(a)
	y, yok := number(b)
	if xok && yok {
		return x == y
	}
	left, _ := json.Marshal(a)
	right, _ := json.Marshal(b)
	return string(left) == string(right)
}

// python writes a value as Python shows it.
func python(v any) string {
	if text, ok := v.(string); ok {
		return "'" + text + "'"
	}
	return fmt.Sprint(v)
}
