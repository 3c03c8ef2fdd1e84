package odoo

import (
	"path"
	"slices"
	"strings"

	"pawgate/internal/fault"
)

// verb is what a call does, as an operator allows it.
type verb string

// The verbs. read covers search, for a search shows nothing that reading does
// not; search alone finds and lists.
const (
	read    verb = "read"
	find    verb = "search"
	create  verb = "create"
	write   verb = "write"
	unlink  verb = "unlink"
	execute verb = "execute"
)

// system are models that decide what others may do. They can be opened for
// reading, never for anything else.
var system = []string{"ir.*", "base.*", "res.groups*", "res.users*", "res.config*", "auth.*", "fetchmail.*"}

// may refuses what the connection does not allow. For execute, what is the
// method's name: an action is written execute:action_confirm.
func (c connection) may(v verb, model, method string) error {
	if err := c.mayModel(model); err != nil {
		return err
	}
	if v != read && v != find && matches(system, model) {
		return fault.New(fault.Denied, "%s belongs to Odoo's own system and is never changed from here", model)
	}
	if !slices.ContainsFunc(c.AllowedActions, func(entry string) bool { return covers(entry, v, model, method) }) {
		what := string(v)
		if v == execute {
			what = "execute:" + method
		}
		return fault.New(fault.Denied, "this agent's Odoo connection does not allow %s on %s; an operator allows it with pawgate odoo connect --action %s:%s",
			what, model, v, map[bool]string{true: model + "/" + method, false: model}[v == execute])
	}
	return nil
}

// mayModel refuses a model, whatever is to be done with it.
func (c connection) mayModel(model string) error {
	if matches(c.DeniedModels, model) || !matches(c.AllowedModels, model) {
		return fault.New(fault.Denied, "this agent's Odoo connection does not open the model %s; odoo_status shows which it does", model)
	}
	return nil
}

// covers reads one entry of allowed_actions: "verb", "verb:MODEL", and for
// execute "execute:METHOD" or "execute:MODEL/METHOD". Without a method's whole
// name, execute is only for what Odoo puts behind a button.
func covers(entry string, v verb, model, method string) bool {
	word, pattern, limited := strings.Cut(entry, ":")
	if word != string(v) && (word != string(read) || v != find) {
		return false
	}
	switch {
	case !limited:
		return v != execute || matches(buttons, method)
	case v != execute:
		return match(pattern, model)
	}
	models, methods, both := strings.Cut(pattern, "/")
	if !both {
		models, methods = "*", pattern
	}
	return match(models, model) && (methods == method || match(methods, method) && matches(buttons, method))
}

// buttons are the methods that Odoo's own forms call for a user. Any other may
// read or write past the lists of fields, so that a pattern is not enough.
var buttons = []string{"action_*", "button_*", "toggle_active", "message_post"}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, name) })
}

func match(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// hides reports whether a field is on the deny-list, written "field" or
// "model/field", with patterns.
func (c connection) hides(model, field string) bool {
	return slices.ContainsFunc(c.DeniedFields, func(p string) bool {
		models, fields, both := strings.Cut(p, "/")
		if !both {
			models, fields = "*", p
		}
		return match(models, model) && match(fields, field)
	})
}

// reading are the methods that change nothing and whose arguments are checked.
var reading = map[string]verb{
	"read": read, "search": find, "search_read": find, "search_count": find, "name_search": find,
	"read_group": find, "formatted_read_group": find,
}

// aside are methods that read or write any field by ways that the lists do
// not see, or that install and remove code.
var aside = []string{"fields_get", "default_get", "export_data", "load", "onchange*", "web_*", "copy_data", "copy_multi", "read_progress_bar", "search_panel_*", "search_fetch",
	"get_view*", "fields_view_get", "name_create", "name_get", "execute_import", "uninstall*", "module_uninstall*", "button_uninstall*", "init",
	"signal_workflow", "sudo", "with_*", "browse", "filtered*", "mapped", "sorted", "update", "modified", "flush*", "invalidate*", "get_metadata", "run", "method_direct_trigger"}

// verbOf classifies a method; the error is for those that are never called.
func verbOf(method string) (verb, error) {
	if v, ok := reading[method]; ok {
		return v, nil
	}
	switch {
	case strings.HasPrefix(method, "_"):
		return "", fault.New(fault.Denied, "%s is private: Odoo runs methods that begin with _ only from inside", method)
	case method == "create", method == "copy":
		return create, nil
	case method == "write":
		return write, nil
	case method == "unlink":
		return unlink, nil
	case matches(aside, method):
		return "", fault.New(fault.Denied, "%s is not called from here; use odoo_search, odoo_schema_fields, create, write or an action", method)
	}
	return execute, nil
}
