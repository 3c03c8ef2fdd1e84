package odoo_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/category/odoo"
	"pawgate/internal/client/odoo/odootest"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

// noon is the clock of every test.
var noon = time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)

// versions are those that the tools are for.
var versions = []int{16, 17, 18, 19}

// bench is one fake Odoo and an agent, clerk, who is its administrator and
// may do everything.
type bench struct {
	*odootest.Server
	t     testing.TB
	db    postgres.DB
	cat   tool.Category
	now   time.Time
	ticks atomic.Int64 // microseconds: no two things happen at once
	// agent is the agent's id, another in every test: tests run in
	// transactions, and two that insert the same id wait for each other.
	agent string
}

func setup(t *testing.T, major int) *bench {
	t.Helper()
	return setupOn(t, major, postgrestest.New(t))
}

func setupOn(t testing.TB, major int, db postgres.DB) *bench {
	t.Helper()
	b := &bench{Server: odootest.New(t, major), t: t, db: db, now: noon, agent: "clerk-" + strings.ToLower(rand.Text())}
	u, _ := url.Parse(b.URL)
	b.cat = odoo.New(db, odoo.Settings{AllowHosts: []string{u.Host}}, func() time.Time { return b.now.Add(time.Duration(b.ticks.Add(1)) * time.Microsecond) })
	b.connect(b.agent, nil)
	return b
}

// everything is a connection that allows all there is.
var everything = map[string]any{"login": "admin", "secret": odootest.Key, "secret_kind": "api_key", "companies": []int64{}, "lang": "", "timezone": "",
	"allowed_models": []string{"*"}, "denied_models": []string{"hr.*"}, "denied_fields": []string{"*token*", "*password*", "res.partner/vat"},
	"allowed_actions": []string{"read", "create", "write", "unlink", "execute"}}

// connect gives an agent a connection; changes replace parts of everything.
func (b *bench) connect(agent string, changes map[string]any) {
	b.t.Helper()
	c := maps.Clone(everything)
	c["url"], c["database"] = b.URL, b.Database
	maps.Copy(c, changes)
	file := filepath.Join(b.t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(c["secret"].(string)), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.exec(`insert into agents (id, display_name, allowed_tools) values ($1, $1, '{*}') on conflict do nothing`, agent)
	b.exec(`delete from odoo_connections where agent_id = $1`, agent)
	b.exec(`insert into odoo_connections (agent_id, url, database, login, secret, secret_kind, companies, lang, timezone,
		allowed_models, denied_models, denied_fields, allowed_actions, set_by, set_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'test', $14)`,
		agent, c["url"], c["database"], c["login"], "file://"+file, c["secret_kind"], c["companies"], c["lang"], c["timezone"],
		c["allowed_models"], c["denied_models"], c["denied_fields"], c["allowed_actions"], b.now)
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.db.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// object is any JSON object.
type object = map[string]any

func (b *bench) clerk() caller.Caller { return tooltest.Who(b.agent) }

func (b *bench) ok(name, args string) object {
	b.t.Helper()
	return tooltest.OK[object](b.t, b.cat, b.clerk(), name, args)
}

func (b *bench) fault(name, args string, want fault.Reason) *fault.Fault {
	b.t.Helper()
	f := tooltest.Fault(b.t, b.cat, b.clerk(), name, args, want)
	clean(b.t, f.Message)
	return f
}

func (b *bench) invalid(name, args, parameter string) string {
	b.t.Helper()
	message := tooltest.Invalid(b.t, b.cat, b.clerk(), name, args, parameter).Message
	clean(b.t, message)
	return message
}

// clean: no answer shows a traceback, a secret or an address of Odoo's network.
func clean(t testing.TB, text string) {
	t.Helper()
	for _, word := range []string{"Traceback", "File \"", "dist-packages", odootest.Key, "limited-pass-123", "10.0.0.5", "hunter2"} {
		if strings.Contains(text, word) {
			t.Errorf("the answer shows %q: %s", word, text)
		}
	}
}

// at reads a path of an answer: "records.0.stage.name".
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case object:
			v = x[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func want(t *testing.T, answer object, path string, value any) {
	t.Helper()
	got, _ := json.Marshal(at(answer, path))
	expected, _ := json.Marshal(value)
	if string(got) != string(expected) {
		all, _ := json.Marshal(answer)
		t.Errorf("%s: got %s, want %s in %s", path, got, expected, all)
	}
}

// each runs a test on every version.
func each(t *testing.T, run func(t *testing.T, b *bench)) {
	for _, major := range versions {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			t.Parallel()
			run(t, setup(t, major))
		})
	}
}

func TestConnect(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r := b.ok("odoo_connect", `{}`)
		door := "jsonrpc"
		if b.Major >= 19 {
			door = "json2"
		}
		for path, value := range map[string]any{"agent_id": b.agent, "uid": 2, "api": door, "edition": "community", "version": fmt.Sprintf("%d.0", b.Major),
			"timezone": "Asia/Taipei", "companies_of_user.1.name": "Branch", "installed.1": "crm"} {
			want(t, r, path, value)
		}
		before := b.Requests()
		status := b.ok("odoo_status", `{}`)
		want(t, status, "version", fmt.Sprintf("%d.0", b.Major))
		want(t, status, "secret_kind", "api_key")
		if b.Requests() != before {
			t.Error("odoo_status asked Odoo")
		}
		text, _ := json.Marshal(status)
		if clean(t, string(text)); strings.Contains(string(text), "file://") {
			t.Errorf("odoo_status shows where the secret lies: %s", text)
		}
	})
}

func TestConnect_refusals(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for name, c := range map[string]struct {
			changes object
			reason  fault.Reason
			says    string
		}{
			"ODOO-11 no such database": {object{"database": "nosuchdb"}, fault.NotConfigured, `no database "nosuchdb"`},
			"wrong secret":             {object{"secret": "wrong"}, fault.NotConfigured, "login or secret"},
			"another user's key":       {object{"login": "limited"}, fault.NotConfigured, "login or secret"},
			"a company not one's own":  {object{"login": "limited", "secret": "limited-key", "companies": []int64{2}}, fault.NotConfigured, ""},
			"W-36 a metadata address":  {object{"url": "http://169.254.169.254"}, fault.NotConfigured, "ODOO_ALLOW_HOSTS"},
			"a host not opened":        {object{"url": "http://127.0.0.2:8069"}, fault.NotConfigured, "ODOO_ALLOW_HOSTS"},
		} {
			t.Run(name, func(t *testing.T) {
				if name == "another user's key" && b.Major < 19 {
					c.changes["secret"] = odootest.Key // an RPC login with a key of somebody else fails at once
				}
				b.t = t
				b.connect(b.agent, c.changes)
				f := b.fault("odoo_connect", `{}`, c.reason)
				if !strings.Contains(f.Message, c.says) {
					t.Errorf("says %q", f.Message)
				}
			})
		}
	})
}

func TestConnect_without_connection(t *testing.T) {
	b := setup(t, 18)
	b.exec(`delete from odoo_connections`)
	if f := b.fault("odoo_connect", `{}`, fault.NotConfigured); !strings.Contains(f.Message, "pawgate odoo connect clerk") {
		t.Errorf("without a connection: %s", f.Message)
	}
	b.fault("odoo_status", `{}`, fault.NotConfigured)
	b.fault("odoo_crm_leads", `{}`, fault.NotConfigured)
}

// Every tool that reads, on every version, in one go.
func TestReading(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		leads := b.ok("odoo_crm_leads", `{"limit":"1"}`)
		for path, value := range map[string]any{"count": 1, "next_offset": 1, "records.0.id": 44, "records.0.stage": object{"id": 3, "name": "Proposition"},
			"records.0.expected_revenue": object{"amount": 41421, "currency": "USD"}, "records.0.phone": nil, "records.0.salesperson": nil,
			"records.0.created_at": "2026-10-09T18:16:34Z", "records.0.lead_type_label": "Lead"} {
			want(t, leads, path, value)
		}
		want(t, b.ok("odoo_crm_leads", `{"stage":"propos"}`), "count", 1)
		orders := b.ok("odoo_sale_orders", `{"status":"sale"}`)
		want(t, orders, "records.0.total", object{"amount": 1990, "currency": "USD"})
		want(t, orders, "records.0.customer.name", "Deco Addict")
		want(t, orders, "records.0.state_label", "Sales Order")
		products := b.ok("odoo_inventory_products", `{"query":"desk"}`)
		want(t, products, "count", 1)
		want(t, products, "records.0.list_price", object{"amount": 750, "currency": "USD"})
		stock := b.ok("odoo_inventory_check", `{"product_id":"45"}`)
		for path, value := range map[string]any{"on_hand": 65, "reserved": 3, "available": 62, "counted": "internal locations", "locations.0.location.name": "WH/Stock", "unit.name": "Units"} {
			want(t, stock, path, value)
		}
		invoices := b.ok("odoo_invoice_list", `{"status":"not_paid"}`)
		want(t, invoices, "count", 1)
		want(t, invoices, "records.0.balance_due", object{"amount": 31750, "currency": "USD"})
		payment := b.ok("odoo_payment_status", `{"invoice_id":1}`)
		want(t, payment, "paid", false)
		want(t, payment, "overdue", true)
		partners := b.ok("odoo_partner_search", `{"query":"deco"}`)
		want(t, partners, "records.0.country_id.name", "United States")
		if _, has := at(partners, "records.0").(object)["mobile"]; has != (b.Major <= 18) {
			t.Errorf("mobile shown: %v", has)
		}
		schema := b.ok("odoo_schema_fields", `{"model":"crm.lead"}`)
		if text := fmt.Sprint(schema); strings.Contains(text, "access_token") || !strings.Contains(text, "expected_revenue") {
			t.Errorf("schema: %s", text)
		}
		search := b.ok("odoo_search", `{"model":"sale.order","domain":"[[\"state\",\"=\",\"sale\"]]","fields":"name,amount_total,partner_id"}`)
		want(t, search, "records.0", object{"id": 24, "name": "S00024", "amount_total": object{"amount": 1990, "currency": "USD"}, "partner_id": object{"id": 10, "name": "Deco Addict"}})
	})
}

// Each refusal has one next step.
func TestRefusals(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		if m := b.invalid("odoo_crm_leads", `{"stage":"Paused"}`, "stage"); !strings.Contains(m, "New (id 1), Qualified (id 2)") {
			t.Errorf("the stages are not listed: %s", m)
		}
		b.invalid("odoo_sale_orders", `{"status":"open"}`, "status")
		b.invalid("odoo_invoice_list", `{"status":"open"}`, "status")
		b.fault("odoo_payment_status", `{"invoice_id":999999}`, fault.NotFound)
		b.fault("odoo_inventory_check", `{"product_id":999999}`, fault.NotFound)
		b.Drop("product.product")
		if f := b.fault("odoo_inventory_products", `{}`, "odoo_not_installed"); !strings.Contains(f.Message, "Products") {
			t.Errorf("not installed: %s", f.Message)
		}
		b.connect(b.agent, object{"allowed_models": []string{"crm.*"}})
		b.fault("odoo_partner_search", `{}`, fault.Denied)
		b.fault("odoo_schema_fields", `{"model":"res.users"}`, fault.Denied)
		b.fault("odoo_report", `{"report_name":"sale.report_saleorder","record_id":24}`, fault.Denied)
	})
}

func TestFields(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		t.Run("J88 a model's old name", func(t *testing.T) {
			for _, tool := range []string{"odoo_search", "odoo_schema_fields"} {
				if f := b.fault(tool, `{"model":"account.invoice"}`, fault.NotFound); !strings.Contains(f.Message, "renamed account.move") {
					t.Errorf("%s says %q", tool, f.Message)
				}
			}
			b.fault("odoo_execute", `{"model":"account.invoice","method":"write","ids":[1],"values":{"ref":"x"}}`, fault.NotFound)
		})
		t.Run("ODOO-06 a field of another version", func(t *testing.T) {
			name := map[bool]string{true: "is_storable", false: "detailed_type"}[b.Major <= 17]
			m := b.invalid("odoo_search", `{"model":"product.product","fields":["name","`+name+`"]}`, "fields")
			if !strings.Contains(m, name) || !strings.Contains(m, "odoo_schema_fields") {
				t.Errorf("says %q", m)
			}
			b.invalid("odoo_search", `{"model":"product.product","domain":[["`+name+`","=","product"]]}`, "domain")
		})
		t.Run("kept per database, version and user", func(t *testing.T) {
			asked := func() int {
				return len(slices.DeleteFunc(b.Calls(), func(c odootest.Call) bool { return c.Method != "fields_get" || c.Model != "crm.lead" }))
			}
			b.ok("odoo_crm_leads", `{}`)
			before := asked()
			b.ok("odoo_crm_leads", `{}`)
			if asked() != before {
				t.Error("fields_get was asked again")
			}
			b.now = b.now.Add(2 * time.Hour)
			b.ok("odoo_crm_leads", `{}`)
			if asked() != before+1 {
				t.Errorf("fields_get was asked %d times after an hour", asked()-before)
			}
		})
	})
}

// A model that is missing is said to be, whether the call had to log in first
// or not, at every door; and so is one that a login itself needs.
func TestMissingModel(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.Drop("crm.lead")
		for _, closed := range [][]string{nil, {"/jsonrpc"}} {
			b.Closed = closed
			for _, kind := range []string{"api_key", "password"} {
				for _, call := range []string{`odoo_crm_leads {}`, `odoo_crm_create_lead {"name":"x"}`, `odoo_crm_update_stage {"lead_id":1,"stage_name":"New"}`} {
					b.connect(b.agent, object{"secret_kind": kind, "secret": map[string]string{"api_key": odootest.Key, "password": "admin"}[kind]})
					tool, args, _ := strings.Cut(call, " ")
					for range 2 {
						b.fault(tool, args, "odoo_not_installed")
					}
				}
			}
		}
		b.Closed = nil
		b.Drop("res.users")
		b.connect(b.agent, nil)
		b.fault("odoo_connect", `{}`, fault.NotConfigured)
		b.fault("odoo_partner_search", `{}`, fault.NotConfigured)
	})
}
