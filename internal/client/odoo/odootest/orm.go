package odootest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// parameters are the positions of the methods' arguments after the ids.
var parameters = map[string][]string{
	"search_read": {"domain", "fields", "offset", "limit", "order"}, "search": {"domain"}, "search_count": {"domain"}, "read": {"fields"},
	"write": {"vals"}, "create": {"vals_list"}, "name_search": {"name"}, "fields_get": {"allfields", "attributes"},
	"render_qweb_pdf": {"report_ref", "res_ids"}, "message_post": {"body"},
}

// takes are the arguments that a method knows.
var takes = map[string][]string{"search_read": {"domain", "fields", "offset", "limit", "order"}}

func onModel(method string) bool {
	return slices.Contains([]string{"search_read", "search", "search_count", "create", "name_search", "fields_get", "context_get", "render_qweb_pdf", "read_group", "formatted_read_group"}, method)
}

// run is the object service, with the lock held.
func (s *Server) run(user User, c Call) (any, *fault) {
	m, ok := s.models[c.Model]
	switch {
	case !ok && c.Door == "json2":
		return nil, fail("werkzeug.exceptions.NotFound", "the model '%s' does not exist", c.Model)
	case !ok:
		return nil, fail("odoo.exceptions.UserError", "Object %s doesn't exist", c.Model)
	case strings.HasPrefix(c.Method, "_") && s.Major >= 19:
		return nil, fail("odoo.exceptions.AccessError", "Private methods (such as '%s.%s') cannot be called remotely.", c.Model, c.Method)
	case strings.HasPrefix(c.Method, "_"):
		return nil, fail("odoo.exceptions.AccessError", "Private methods (such as %s) cannot be called remotely.", c.Method)
	case slices.Contains(user.Denied, c.Model):
		return nil, fail("odoo.exceptions.AccessError", "You are not allowed to access '%s' (%s) records.\n\nThis operation is allowed for the following groups:\n\t- Sales/Administrator\n\nContact your administrator to request access if necessary.", m.title, c.Model)
	}
	for name := range c.Args {
		if known, ok := takes[c.Method]; ok && !slices.Contains(known, name) {
			return nil, fail("builtins.TypeError", "BaseModel._read_format() got an unexpected keyword argument '%s'", name)
		}
	}
	companies := user.Companies
	if chosen := toInts(c.Context["allowed_company_ids"]); len(chosen) > 0 {
		for _, id := range chosen {
			if !slices.Contains(user.Companies, id) {
				return nil, fail("odoo.exceptions.AccessError", "Access to unauthorized or invalid companies.")
			}
		}
		companies = chosen
	}
	return s.method(work{s, m, user, companies, c})
}

// work is one call under way.
type work struct {
	*Server
	m         *model
	user      User
	companies []int64
	c         Call
}

func (s *Server) method(w work) (any, *fault) {
	switch w.c.Method {
	case "context_get":
		own := map[string]any{"lang": w.user.Lang, "tz": "Asia/Taipei"}
		if s.Major >= 17 {
			own["uid"] = w.user.ID
		}
		return own, nil
	case "fields_get":
		return w.fieldsGet(), nil
	case "search_read", "search", "search_count":
		return w.search()
	case "read":
		return w.read(w.c.IDs)
	case "create":
		return w.create()
	case "name_search":
		var pairs []any
		for _, r := range w.m.rows {
			if strings.Contains(strings.ToLower(fmt.Sprint(r["name"])), strings.ToLower(fmt.Sprint(w.c.Args["name"]))) {
				pairs = append(pairs, []any{r["id"], r["name"]})
			}
		}
		return pairs, nil
	case "read_group", "formatted_read_group":
		return []any{map[string]any{"__count": len(w.m.rows)}}, nil
	}
	return w.onRecords()
}

// onRecords are the methods that need their records to be there.
func (w work) onRecords() (any, *fault) {
	known := slices.Contains([]string{"write", "unlink", "copy", "action_confirm", "action_set_lost", "action_broken", "message_post"}, w.c.Method)
	switch {
	case !known && w.Major >= 19 && w.c.Door == "json2":
		return nil, fail("werkzeug.exceptions.NotFound", "The method '%s.%s' does not exist", w.c.Model, w.c.Method)
	case !known && w.Major >= 19:
		return nil, fail("builtins.AttributeError", "The method '%s.%s' does not exist", w.c.Model, w.c.Method)
	case !known && w.Major == 18:
		return nil, fail("builtins.AttributeError", "The method '%s' does not exist on the model '%s'", w.c.Method, w.c.Model)
	case !known:
		return nil, fail("builtins.AttributeError", "type object '%s' has no attribute '%s'", w.c.Model, w.c.Method)
	}
	for _, id := range w.c.IDs {
		if w.m.find(id) == nil {
			return nil, w.missing(w.c.Model, id)
		}
		if !w.visible(w.m.find(id)) {
			return nil, fail("odoo.exceptions.AccessError", "Due to security restrictions, you are not allowed to access '%s' (%s) records.", w.m.title, w.c.Model)
		}
	}
	switch w.c.Method {
	case "write":
		return w.write()
	case "unlink":
		if w.c.Model == "res.partner" && slices.Contains(w.c.IDs, 3) {
			return nil, fail("odoo.exceptions.RedirectWarning", "You cannot delete contacts linked to an active user.\nYou should rather archive them after archiving their associated user.\n\nLinked active users : Mitchell Admin\n{'type': 'ir.actions.act_window', 'res_model': 'res.users'}\nGo to users\nNone")
		}
		for _, id := range w.c.IDs {
			delete(w.m.index, id)
		}
		w.m.rows = slices.DeleteFunc(w.m.rows, func(r map[string]any) bool { return slices.Contains(w.c.IDs, r["id"].(int64)) })
		return true, nil
	case "copy":
		made := maps.Clone(w.m.find(w.c.IDs[0]))
		delete(made, "id")
		return w.m.add(made), nil
	case "action_confirm":
		return w.confirm()
	case "action_set_lost":
		for _, id := range w.c.IDs {
			w.m.find(id)["active"] = false
		}
		return nil, nil
	case "action_broken":
		return nil, fail("builtins.ZeroDivisionError", "division by zero")
	}
	return int64(396), nil // message_post
}

func (w work) confirm() (any, *fault) {
	for _, id := range w.c.IDs {
		if state := w.m.find(id)["state"]; state != "draft" && state != "sent" {
			if w.Major < 17 && state == "sale" {
				continue // 16 confirms again without a word
			}
			return nil, fail("odoo.exceptions.UserError", "Some orders are not in a state requiring confirmation.")
		}
		w.m.find(id)["state"] = "sale"
	}
	return true, nil
}

func (w work) missing(model string, id int64) *fault {
	return fail("odoo.exceptions.MissingError", "Record does not exist or has been deleted.\n(Record: %s(%d,), User: %d)", model, id, w.user.ID)
}

func (w work) visible(r map[string]any) bool {
	company, ok := r["company_id"].(int64)
	return !ok || slices.Contains(w.companies, company)
}

func (w work) fieldsGet() map[string]any {
	wanted, _ := w.c.Args["attributes"].([]any)
	out := map[string]any{}
	for name, f := range w.m.fields {
		one := map[string]any{}
		for attribute, v := range f {
			if len(wanted) == 0 || slices.Contains(wanted, any(attribute)) {
				one[attribute] = v
			}
		}
		if w.c.Context["lang"] == "zh_TW" && name == "state" && one["selection"] != nil {
			one["selection"] = []any{[]any{"draft", "報價單"}, []any{"sent", "已發送報價單"}, []any{"sale", "銷售訂單"}, []any{"cancel", "已取消"}}
		}
		out[name] = one
	}
	return out
}

func (w work) search() (any, *fault) {
	domain, _ := w.c.Args["domain"].([]any)
	rows, f := w.find(domain)
	if f != nil {
		return nil, f
	}
	if w.c.Method == "search_count" {
		return len(rows), nil
	}
	if f := w.sort(rows, fmt.Sprint(cmp.Or(w.c.Args["order"], any("id")))); f != nil {
		return nil, f
	}
	offset, limit := int(toInt(w.c.Args["offset"])), int(toInt(w.c.Args["limit"]))
	rows = rows[min(offset, len(rows)):]
	if limit > 0 {
		rows = rows[:min(limit, len(rows))]
	}
	ids := []int64{}
	for _, r := range rows {
		ids = append(ids, r["id"].(int64))
	}
	if w.c.Method == "search" {
		return ids, nil
	}
	return w.read(ids)
}

// sort orders rows; what the order leaves open comes differently each time,
// as it may from a database.
func (w work) sort(rows []map[string]any, order string) *fault {
	w.turn++
	if turn := w.turn % 7; len(rows) > turn {
		slices.Reverse(rows[turn:])
		if turn%2 == 1 {
			slices.Reverse(rows)
		}
	}
	terms := strings.Split(order, ",")
	slices.Reverse(terms)
	for _, term := range terms {
		words := strings.Fields(term)
		if _, ok := w.m.fields[words[0]]; !ok {
			return fail("builtins.ValueError", "Invalid field '%s' on model '%s'", words[0], w.c.Model)
		}
		slices.SortStableFunc(rows, func(a, b map[string]any) int {
			n := compare(a[words[0]], b[words[0]])
			if len(words) > 1 && words[1] == "desc" {
				n = -n
			}
			return n
		})
	}
	return nil
}

func compare(a, b any) int {
	x, xok := number(a)
	y, yok := number(b)
	if xok && yok {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

func (w work) read(ids []int64) (any, *fault) {
	wanted, _ := w.c.Args["fields"].([]any)
	if len(wanted) == 0 {
		for name := range w.m.fields {
			wanted = append(wanted, name)
		}
	}
	out := []any{}
	for _, id := range ids {
		r := w.m.find(id)
		if r == nil {
			return nil, w.missing(w.c.Model, id)
		}
		one := map[string]any{"id": id}
		for _, name := range wanted {
			f, ok := w.m.fields[name.(string)]
			if !ok && w.Major >= 19 {
				return nil, fail("builtins.ValueError", "Invalid field '%s' on '%s'", name, w.c.Model)
			}
			if !ok {
				return nil, fail("builtins.ValueError", "Invalid field '%s' on model '%s'", name, w.c.Model)
			}
			one[name.(string)] = w.shown(f, r, name.(string))
		}
		out = append(out, one)
	}
	return out, nil
}

// shown is a value as read gives it: links with their names, false for none.
func (w work) shown(f field, r map[string]any, name string) any {
	v, ok := r[name]
	if name == "display_name" && !ok {
		v, ok = r["name"]
	}
	switch {
	case ok && f["type"] == "binary" && w.c.Context["bin_size"] == true:
		return fmt.Sprintf("%d.00 bytes", len(fmt.Sprint(v)))
	case !ok && (f["type"] == "one2many" || f["type"] == "many2many"):
		return []any{}
	case !ok && (f["type"] == "float" || f["type"] == "monetary" || f["type"] == "integer"):
		return 0
	case !ok || v == nil:
		return false
	case f["type"] == "many2one" && v != false:
		related := w.models[f["relation"].(string)]
		if related == nil || related.find(toInt(v)) == nil {
			return []any{v, fmt.Sprintf("%s,%v", f["relation"], v)}
		}
		target := related.find(toInt(v))
		return []any{v, cmp.Or(target["display_name"], target["name"])}
	}
	return v
}
