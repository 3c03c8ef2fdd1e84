package operator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pawgate/internal/fault"
	"pawgate/internal/operator"
)

func TestOdooConnect(t *testing.T) {
	o := setup(t)
	run := func(command, args string) (json.RawMessage, error) {
		return o.Run(t.Context(), "", command, []byte(args))
	}
	if _, err := run("agent create", `{"agent_id":"clerk"}`); err != nil {
		t.Fatal(err)
	}
	base := map[string]any{"agent_id": "clerk", "url": "https://odoo.example.com/", "database": "prod", "login": "clerk", "secret": "env://CLERK"}
	with := func(name string, v any) string {
		args := map[string]any{}
		for k, old := range base {
			args[k] = old
		}
		args[name] = v
		b, _ := json.Marshal(args)
		return string(b)
	}
	for name, c := range map[string]struct {
		args, parameter string
	}{
		"the secret itself":     {with("secret", "hunter2hunter2"), "secret"},
		"an ordinary url":       {with("secret", "https://vault.example.com/x"), "secret"},
		"W-36 user in the url":  {with("url", "https://x@169.254.169.254/"), "url"},
		"W-36 odd spelling":     {with("url", "https://0x7f.1/"), "url"},
		"http":                  {with("url", "http://odoo.example.com"), "url"},
		"no scheme":             {with("url", "odoo.example.com"), "url"},
		"database with a quote": {with("database", "a'b"), "database"},
		"language":              {with("lang", "Chinese"), "lang"},
		"zone":                  {with("timezone", "Taipei"), "timezone"},
		"a verb":                {with("action", []string{"delete"}), "action"},
		"a model":               {with("model", []string{"crm lead"}), "model"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run("odoo connect", c.args)
			invalid, ok := fault.InvalidOf(err)
			if !ok || invalid.Parameter != c.parameter || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %s refused", err, c.parameter)
			}
		})
	}
	if _, err := run("odoo connect", with("agent_id", "nobody")); err == nil {
		t.Error("an agent that does not exist got a connection")
	}
	for range 2 { // setting it again replaces it
		if _, err := run("odoo connect", with("url", "https://Odoo.Example.com/")); err != nil {
			t.Fatal(err)
		}
	}
	// closing one model more leaves the others closed
	if answer, err := run("odoo connect", with("deny", []string{"crm.team"})); err != nil || !strings.Contains(string(answer), `"res.users*"`) || !strings.Contains(string(answer), `"crm.team"`) {
		t.Errorf("odoo connect --deny crm.team: %s %v", answer, err)
	}
	listed, err := run("odoo list", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(listed); !strings.Contains(text, `"url":"https://odoo.example.com"`) || strings.Contains(text, "env://") {
		t.Errorf("odoo list: %s", text)
	}
	if removed, err := run("odoo remove", `{"agent_id":"clerk"}`); err != nil || !strings.Contains(string(removed), `"changed":true`) {
		t.Errorf("odoo remove: %s %v", removed, err)
	}
	if writes, err := run("odoo writes", `{}`); err != nil || string(writes) != `{"writes":[]}` {
		t.Errorf("odoo writes: %s %v", writes, err)
	}
}

// Documents are kept for a week, what was changed for more than a year.
func TestMaintain_odoo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"clerk"}`)
	for _, days := range []int{1, 6, 8, 399, 401} {
		if _, err := b.DB.Exec(t.Context(), `
			with file as (insert into odoo_files (id, agent_id, name, media_type, content, created_at) values ('f' || $1::int, 'clerk', 'n', 'm', '', $2::timestamptz - $1::int * interval '1 day'))
			insert into odoo_writes (id, agent_id, request_id, url, database, login, model, method, record_ids, before, values, state, started_at)
			values ('w' || $1::int, 'clerk', 'r', 'u', 'd', 'l', 'crm.lead', 'write', '{}', '[]', '{}', 'started', $2::timestamptz - $1::int * interval '1 day')`, days, noon); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []operator.MaintainedOdoo{{Files: 3, Writes: 1}, {}} {
		if got := ok[operator.Maintained](b, "maintain", `{}`); got.Odoo != want {
			t.Errorf("removed %+v, want %+v", got.Odoo, want)
		}
	}
}
