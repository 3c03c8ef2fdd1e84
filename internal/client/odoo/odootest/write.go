package odootest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

func (w work) create() (any, *fault) {
	var list []any
	single := false
	switch v := w.c.Args["vals_list"].(type) {
	case []any:
		list = v
	case map[string]any:
		list, single = []any{v}, true
	default:
		return nil, fail("builtins.TypeError", "BaseModel.create() missing 1 required positional argument: 'vals_list'")
	}
	ids := []int64{}
	for _, item := range list {
		values, f := w.checked(item.(map[string]any))
		if f != nil {
			return nil, f
		}
		id := w.m.add(values)
		if w.c.Model == "sale.order" {
			w.completeOrder(id, item.(map[string]any))
		}
		ids = append(ids, id)
	}
	if single {
		return ids[0], nil
	}
	return ids, nil
}

// completeOrder gives an order its name, state, lines and total.
func (w work) completeOrder(id int64, values map[string]any) {
	order := w.m.find(id)
	order["name"], order["state"], order["currency_id"], order["date_order"] = fmt.Sprintf("S%05d", id), "draft", int64(1), "2026-11-30 18:16:55"
	total, lines := 0.0, []any{}
	commands, _ := values["order_line"].([]any)
	for _, command := range commands {
		line, _ := command.([]any)[2].(map[string]any)
		product := w.models["product.product"].find(toInt(line["product_id"]))
		quantity, _ := number(line["product_uom_qty"])
		price, _ := number(product["list_price"])
		total += quantity * price
		lines = append(lines, w.models["sale.order.line"].add(map[string]any{"order_id": id, "product_id": toInt(line["product_id"]), "product_uom_qty": quantity}))
	}
	order["order_line"], order["amount_total"] = lines, total
}

func (w work) write() (any, *fault) {
	values, ok := w.c.Args["vals"].(map[string]any)
	if !ok {
		return nil, fail("builtins.TypeError", "BaseModel.write() missing 1 required positional argument: 'vals'")
	}
	checked, f := w.checked(values)
	if f != nil {
		return nil, f
	}
	for _, id := range w.c.IDs {
		maps.Copy(w.m.find(id), checked)
	}
	return true, nil
}

// checked refuses unknown fields and links to nothing.
func (w work) checked(values map[string]any) (map[string]any, *fault) {
	out := map[string]any{}
	for name, v := range values {
		f, ok := w.m.fields[name]
		if !ok {
			return nil, fail("builtins.ValueError", "Invalid field '%s' on model '%s'", name, w.c.Model)
		}
		if f["type"] == "datetime" {
			if text, ok := v.(string); ok && strings.ContainsAny(text, "T+Z") {
				return nil, fail("builtins.ValueError", "time data '%s' does not match format '%%Y-%%m-%%d %%H:%%M:%%S'", text)
			}
		}
		if f["type"] == "many2one" && v != false {
			relation := f["relation"].(string)
			if related := w.models[relation]; related == nil || related.find(toInt(v)) == nil {
				return nil, w.missing(relation, toInt(v))
			}
			v = toInt(v)
		}
		if f["type"] == "one2many" {
			continue
		}
		out[name] = v
	}
	return out, nil
}

func toInt(v any) int64 {
	n, _ := number(v)
	return int64(n)
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	return 0, false
}

func toInts(v any) []int64 {
	list, _ := v.([]any)
	var out []int64
	for _, item := range list {
		out = append(out, toInt(item))
	}
	return out
}
