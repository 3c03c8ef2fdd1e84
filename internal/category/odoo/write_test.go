package odoo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pawgate/internal/client/odoo/odootest"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// kept is the newest row of the table of changes.
func (b *bench) kept() (state, before, values string) {
	b.t.Helper()
	err := b.db.QueryRow(b.t.Context(), `select state, before::text, values::text from odoo_writes where agent_id = $1 order by started_at desc limit 1`, b.agent).
		Scan(&state, &before, &values)
	if err != nil {
		b.t.Fatal(err)
	}
	return state, before, values
}

// writes counts the calls that change something.
func (b *bench) writes() int {
	n := 0
	for _, c := range b.Calls() {
		switch c.Method {
		case "create", "write", "unlink", "copy", "action_confirm", "action_set_lost", "action_broken", "message_post":
			n++
		}
	}
	return n
}

func TestCRM_writes(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		preview := b.ok("odoo_crm_create_lead", `{"name":"Roof repair","expected_revenue":"1200.5","preview":true}`)
		want(t, preview, "state", "preview")
		if b.writes() != 0 {
			t.Fatal("a preview wrote")
		}
		r := b.ok("odoo_crm_create_lead", `{"name":"Roof repair","contact_name":"Test Person","email":"person@example.com","expected_revenue":"1200.5"}`)
		want(t, r, "state", "done")
		want(t, r, "lead_id", 45)
		want(t, r, "lead.email", "person@example.com")
		if b.Get("crm.lead", 45)["expected_revenue"] != 1200.5 {
			t.Errorf("stored %v", b.Get("crm.lead", 45))
		}
		b.invalid("odoo_crm_create_lead", `{"name":"x","expected_revenue":"much"}`, "expected_revenue")

		b.Set("crm.lead", 45, object{"stage_id": int64(1)})
		show := b.ok("odoo_crm_update_stage", `{"lead_id":45,"stage_name":"qualified","preview":true}`)
		want(t, show, "changes.0.before", object{"id": 1, "name": "New"})
		want(t, show, "changes.0.after", 2)
		moved := b.ok("odoo_crm_update_stage", `{"lead_id":"45","stage_name":"qualified"}`)
		want(t, moved, "stage", object{"id": 2, "name": "Qualified"})
		want(t, moved, "undo.0.values.stage_id", 1)
		if state, before, _ := b.kept(); state != "done" || !strings.Contains(before, "New") {
			t.Errorf("kept %s %s", state, before)
		}
		want(t, b.ok("odoo_crm_update_stage", `{"lead_id":45,"stage_name":"Qualified"}`), "state", "unchanged")
		if m := b.invalid("odoo_crm_update_stage", `{"lead_id":45,"stage_name":"qualif"}`, "stage_name"); !strings.Contains(m, "Won (id 4)") { // W-33: a part is no name
			t.Errorf("says %s", m)
		}
		b.fault("odoo_crm_update_stage", `{"lead_id":999999,"stage_name":"Won"}`, fault.NotFound)
		b.Add("crm.stage", object{"name": "Won", "sequence": int64(80)})
		if m := b.invalid("odoo_crm_update_stage", `{"lead_id":45,"stage_name":"won"}`, "stage_name"); !strings.Contains(m, "several") {
			t.Errorf("two stages of one name: %s", m)
		}
		want(t, b.ok("odoo_crm_update_stage", `{"lead_id":45,"stage_name":"4"}`), "stage.name", "Won")
	})
}

func TestSale_writes(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r := b.ok("odoo_sale_create_quotation", `{"partner_id":"10","product_id":"45","quantity":"3"}`)
		want(t, r, "order.total", object{"amount": 2250, "currency": "USD"})
		id, _ := json.Marshal(r["order_id"])
		b.fault("odoo_sale_create_quotation", `{"partner_id":999999,"product_id":45}`, fault.NotFound)
		b.invalid("odoo_sale_create_quotation", `{"partner_id":10,"product_id":45,"quantity":0}`, "quantity")
		want(t, b.ok("odoo_sale_confirm", `{"order_id":`+string(id)+`,"preview":true}`), "state", "preview")
		first := b.ok("odoo_sale_confirm", `{"order_id":`+string(id)+`}`)
		want(t, first, "state", "done")
		want(t, first, "order.state", "sale")
		writes := b.writes()
		again := b.ok("odoo_sale_confirm", `{"order_id":`+string(id)+`}`)
		want(t, again, "state", "unchanged")
		if b.writes() != writes {
			t.Error("confirmed twice")
		}
		b.Set("sale.order", 25, object{"state": "cancel"})
		b.fault("odoo_sale_confirm", `{"order_id":25}`, fault.Conflict)
		b.fault("odoo_sale_confirm", `{"order_id":999999}`, fault.NotFound)
		want(t, b.ok("odoo_sale_orders", `{"status":"done"}`), "count", 0) // state to 16, a lock since
		b.connect(b.agent, object{"allowed_actions": []string{"read", "execute:action_cancel"}})
		b.fault("odoo_sale_confirm", `{"order_id":24}`, fault.Denied)
		b.fault("odoo_crm_create_lead", `{"name":"x"}`, fault.Denied)
		b.fault("odoo_sale_create_quotation", `{"partner_id":10,"product_id":45}`, fault.Denied)
	})
}

// Another client confirms between our look and our call.
func TestSale_confirm_race(t *testing.T) {
	b := setup(t, 18)
	b.Before = func(_ http.ResponseWriter, c odootest.Call) bool {
		if c.Method == "action_confirm" {
			b.Set("sale.order", 25, object{"state": "sale"})
		}
		return false
	}
	want(t, b.ok("odoo_sale_confirm", `{"order_id":25}`), "state", "unchanged")
}

// W-33: an action may open a window for a person.
func TestSale_confirm_window(t *testing.T) {
	b := setup(t, 18)
	b.Before = func(w http.ResponseWriter, c odootest.Call) bool {
		if c.Method != "action_confirm" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"type":"ir.actions.act_window","name":"Confirm?","res_model":"sale.wizard"}}`))
		return true
	}
	r := b.ok("odoo_sale_confirm", `{"order_id":25}`)
	want(t, r, "state", "unchanged")
	want(t, r, "next_step", "Confirm?")
}

func TestExecute(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		r := b.ok("odoo_execute", `{"model":"crm.lead","method":"write","ids":"[44]","values":{"name":"New name","date_open":"2026-03-08T10:00:00+08:00"}}`)
		want(t, r, "changes.1.before", "Quote for 35 windows")
		want(t, r, "undo.0.values.name", "Quote for 35 windows")
		undo, _ := json.Marshal(at(r, "undo.0"))
		b.ok("odoo_execute", string(undo))
		if b.Get("crm.lead", 44)["name"] != "Quote for 35 windows" {
			t.Error("undo put nothing back")
		}
		made := b.ok("odoo_execute", `{"model":"res.partner","method":"create","values":{"name":"New"}}`)
		want(t, made, "result", 11)
		want(t, b.ok("odoo_execute", `{"model":"res.partner","method":"search_count","args":{"domain":[["is_company","=",true]]}}`), "result", 1)
		want(t, b.ok("odoo_execute", `{"model":"crm.stage","method":"name_search","args":{"name":"qual"}}`), "result.0.1", "Qualified")
		want(t, b.ok("odoo_execute", `{"model":"crm.lead","method":"read","ids":[44],"args":{"fields":["stage_id"]}}`), "result.records.0.stage_id.id", 3)
		b.ok("odoo_execute", `{"model":"sale.order","method":"read_group","args":{"groupby":["state"],"fields":["amount_total:sum"]}}`)
		acted := b.ok("odoo_execute", `{"model":"crm.lead","method":"action_set_lost","ids":[44]}`)
		want(t, acted, "changes.0", object{"id": 44, "field": "active", "before": true, "after": false})
		gone := b.ok("odoo_execute", `{"model":"res.partner","method":"unlink","ids":[11]}`)
		want(t, gone, "changes.0.id", 11)
		if _, before, _ := b.kept(); !strings.Contains(before, `"New"`) {
			t.Errorf("a deleted record was not kept: %s", before)
		}
		f := b.fault("odoo_execute", `{"model":"res.partner","method":"unlink","ids":[3]}`, "odoo_refused")
		if strings.Contains(f.Message, "act_window") || !strings.Contains(f.Message, "linked to an active user") {
			t.Errorf("says %q", f.Message)
		}
	})
}

func TestExecute_refusals(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		denied := []string{
			`{"model":"res.partner","method":"_compute_display_name","ids":[10]}`,
			`{"model":"res.partner","method":"export_data","ids":[10]}`,
			`{"model":"res.partner","method":"web_read","ids":[10]}`,
			`{"model":"ir.module.module","method":"write","ids":[1],"values":{"state":"x"}}`, // B-16
			`{"model":"res.users","method":"create","values":{"name":"x"}}`,
			`{"model":"res.partner","method":"write","ids":[10],"values":{"vat":"x"}}`,
			`{"model":"res.partner","method":"read","ids":[10],"args":{"fields":["vat"]}}`,
			`{"model":"sale.order","method":"search_count","args":{"domain":[["partner_id.vat","ilike","US"]]}}`, // W-35: an oracle
			`{"model":"hr.employee","method":"read","ids":[1]}`,
		}
		for _, args := range denied {
			b.fault("odoo_execute", args, fault.Denied)
		}
		for args, parameter := range map[string]string{
			`{"model":"crm.lead","method":"write","ids":[["id",">",0]],"values":{"name":"x"}}`:   "ids[0]", // W-34
			`{"model":"crm.lead","method":"write","values":{"name":"x"}}`:                        "ids",
			`{"model":"crm.lead","method":"write","ids":[44]}`:                                   "values",
			`{"model":"crm.lead","method":"search_read","args":{"limit":100000}}`:                "args",
			`{"model":"crm.lead","method":"search_read","args":{"nosuch":1}}`:                    "args", // J89
			`{"model":"crm.lead","method":"search_read","args":{"context":{"lang":"xx"}}}`:       "args",
			`{"model":"crm.lead","method":"write","ids":[44],"values":{"nosuch":1}}`:             "values",
			`{"model":"crm.lead","method":"write","ids":[44],"values":{"date_deadline":"soon"}}`: "values",
			`{"model":"res.partner","method":"action_no_such","ids":[10]}`:                       "method",
		} {
			b.invalid("odoo_execute", args, parameter)
		}
		b.connect(b.agent, object{"allowed_actions": []string{"read", "write:crm.*", "execute:sale.order/action_confirm"}})
		for _, args := range []string{
			`{"model":"crm.lead","method":"unlink","ids":[44]}`,
			`{"model":"sale.order","method":"write","ids":[24],"values":{"note":"x"}}`,
			`{"model":"sale.order","method":"action_cancel","ids":[24]}`,
			`{"model":"crm.lead","method":"action_confirm","ids":[44]}`, // B-11
		} {
			b.fault("odoo_execute", args, fault.Denied)
		}
		b.ok("odoo_execute", `{"model":"crm.lead","method":"write","ids":[44],"values":{"name":"x"}}`)
	})
}

// spoil breaks the connection after a call was carried out.
func spoil(method string) func(http.ResponseWriter, odootest.Call) bool {
	return func(w http.ResponseWriter, c odootest.Call) bool {
		if c.Method != method {
			return false
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
		return true
	}
}

// Odoo did it but does not answer in time.
func TestLostAnswers_timeout(t *testing.T) {
	b := setup(t, 18)
	b.ok("odoo_crm_leads", `{}`)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	b.After = func(_ http.ResponseWriter, c odootest.Call) bool {
		if c.Method == "write" {
			<-release
		}
		return false
	}
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	out := tool.Assemble(b.cat).Call(ctx, b.clerk(), "odoo_execute", []byte(`{"model":"crm.lead","method":"write","ids":[44],"values":{"name":"Late"}}`))
	if out.OK == nil || !strings.Contains(string(out.OK), "the change is there") {
		t.Errorf("answer %s %+v", out.OK, out.Fault)
	}
}

// The answer to a change is lost: look, never repeat.
func TestLostAnswers(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.ok("odoo_crm_leads", `{}`)
		b.After = spoil("write")
		r := b.ok("odoo_execute", `{"model":"crm.lead","method":"write","ids":[44],"values":{"name":"Changed"}}`)
		if note := at(r, "note"); r["state"] != "done" || !strings.Contains(note.(string), "the change is there") {
			t.Errorf("answer %v", r)
		}
		b.After = spoil("action_confirm")
		want(t, b.ok("odoo_sale_confirm", `{"order_id":25}`), "order.state", "sale")
		b.After = spoil("create")
		writes := b.writes()
		f := b.fault("odoo_crm_create_lead", `{"name":"Once"}`, fault.OutcomeUnknown)
		if f.Fields["write_id"] == nil || b.writes() != writes+1 {
			t.Errorf("repeated, or without a trace: %v", f.Fields)
		}
		if state, _, _ := b.kept(); state != "unknown" {
			t.Errorf("kept as %s", state)
		}
		b.After = nil
		b.fault("odoo_execute", `{"model":"crm.lead","method":"action_broken","ids":[44]}`, fault.OutcomeUnknown)
		b.Before = spoil("search_read") // a read is repeated once, then given up
		b.fault("odoo_crm_leads", `{}`, fault.Unavailable)
	})
}

// Each of these once reached a record or a field that the connection closes.
func TestExecute_ways_round(t *testing.T) {
	b := setup(t, 18)
	b.fault("odoo_execute", `{"model":"res.partner","method":"read_group","args":{"groupby":["name"],"fields":["x:max(vat)"]}}`, fault.Denied)
	b.invalid("odoo_execute", `{"model":"res.partner","method":"read_group","args":{"groupby":["name"],"fields":["x:max(vat"]}}`, "args")
	b.invalid("odoo_search", `{"model":"res.partner","domain":[["name","ANY!","x"]]}`, "domain")
	b.invalid("odoo_search", `{"model":"res.partner","limit":-1}`, "limit")
	b.invalid("odoo_search", `{"model":"res.partner","offset":-1}`, "offset")

	for _, allowed := range []string{"execute", "execute:*", "execute:res.partner/*"} {
		b.connect(b.agent, object{"allowed_actions": []string{allowed}})
		b.fault("odoo_execute", `{"model":"res.partner","method":"address_get","ids":[10]}`, fault.Denied)
	}
	b.connect(b.agent, object{"allowed_actions": []string{"execute:res.partner/address_get"}})
	b.invalid("odoo_execute", `{"model":"res.partner","method":"address_get","ids":[10]}`, "method") // allowed, and Odoo's answer: the fake has none

	b.connect(b.agent, object{"allowed_actions": []string{"read", "write"}}) // no unlink
	for _, command := range []string{`[3,1]`, `[5]`, `[6,0,[]]`} {
		b.fault("odoo_execute", `{"model":"sale.order","method":"write","ids":[24],"values":{"order_line":[`+command+`]}}`, fault.Denied)
	}
}

// What an action was called with is kept, and so is a file before it is
// replaced: its size in words is no content to put back.
func TestExecute_kept(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		args := func() string {
			var text string
			if err := b.db.QueryRow(t.Context(), `select args::text from odoo_writes where agent_id = $1 order by started_at desc limit 1`, b.agent).Scan(&text); err != nil {
				t.Fatal(err)
			}
			return text
		}
		b.ok("odoo_execute", `{"model":"crm.lead","method":"message_post","ids":[44],"args":{"body":"called the customer"}}`)
		if got := args(); got != `{"body": "called the customer"}` {
			t.Errorf("kept the arguments %s", got)
		}
		b.ok("odoo_execute", `{"model":"crm.stage","method":"copy","ids":[2]}`)
		if got := args(); got != `{"copied_id": 2}` {
			t.Errorf("kept of a copy %s", got)
		}

		b.Set("res.partner", 10, object{"image_1920": "b2xk"})
		small := b.ok("odoo_execute", `{"model":"res.partner","method":"write","ids":[10],"values":{"image_1920":"bmV3"}}`)
		want(t, small, "changes.0.before", "a file of about 3 bytes")
		want(t, small, "undo.0.values.image_1920", "b2xk")
		large := strings.Repeat("QUJD", 20_000)
		b.Set("res.partner", 10, object{"image_1920": large})
		r := b.ok("odoo_execute", `{"model":"res.partner","method":"write","ids":[10],"values":{"image_1920":"bmV3"}}`)
		if r["undo"] != nil || !strings.Contains(fmt.Sprint(r["note"]), "kept") {
			t.Errorf("undo %v, note %v", r["undo"], r["note"])
		}
		if _, before, _ := b.kept(); !strings.Contains(before, large) {
			t.Error("the large file is not kept")
		}
	})
}

// Hidden fields are told by no tool, not even by what it finds.
func TestHidden(t *testing.T) {
	b := setup(t, 18)
	hide := func(fields ...string) { b.connect(b.agent, object{"denied_fields": fields}) }
	hide("res.partner/email", "product.product/default_code")
	for call, found := range map[string]int{`odoo_partner_search {"query":"info@example"}`: 0, `odoo_partner_search {"query":"Deco"}`: 1,
		`odoo_inventory_products {"query":"DESK0005"}`: 0, `odoo_inventory_products {"query":"Customizable"}`: 1} {
		tool, args, _ := strings.Cut(call, " ")
		want(t, b.ok(tool, args), "count", found)
	}
	for _, domain := range []string{`[["display_name","ilike","info@"]]`, `[["parent_id","ilike","info@"]]`, `[["parent_id.display_name","=","x"]]`, `[["parent_id","in",["info@"]]]`} {
		b.fault("odoo_search", `{"model":"res.partner","domain":`+domain+`}`, fault.Denied)
	}
	b.ok("odoo_search", `{"model":"res.partner","domain":[["parent_id","=",3]]}`)
	b.fault("odoo_search", `{"model":"sale.order","domain":[["partner_id","ilike","info@"]]}`, fault.Denied)
	b.fault("odoo_execute", `{"model":"res.partner","method":"name_search","args":{"name":"info@"}}`, fault.Denied)
	hide("res.partner/name", "res.partner/email", "res.partner/ref")
	b.fault("odoo_partner_search", `{"query":"x"}`, fault.Denied)
	for fields, call := range map[string]string{
		"crm.lead/stage_id": `odoo_crm_leads {"stage":"New"}`, "stage_id": `odoo_crm_update_stage {"lead_id":44,"stage_name":"New"}`,
		"sale.order/state": `odoo_sale_orders {"status":"sale"}`, "state": `odoo_sale_confirm {"order_id":25}`,
		"payment_state": `odoo_payment_status {"invoice_id":1}`, "account.move/payment_state": `odoo_invoice_list {"status":"paid"}`,
		"quantity": `odoo_inventory_check {"product_id":45}`, "sale.order/partner_id": `odoo_sale_create_quotation {"partner_id":10,"product_id":45}`,
	} {
		hide(fields)
		tool, args, _ := strings.Cut(call, " ")
		b.fault(tool, args, fault.Denied)
	}
}

// A field that repeats a hidden one is hidden too.
func TestHidden_repeated(t *testing.T) {
	b := setup(t, 18)
	for field, path := range map[string]any{"partner_vat": "partner_id.vat", "partner_city": []any{"partner_id", "city"}, "partner_tax": "partner_id.parent_id.vat", "user_mail": "user_id.email"} {
		b.AddField("crm.lead", field, object{"type": "char", "string": field, "related": path})
	}
	b.connect(b.agent, object{"denied_fields": []string{"res.partner/vat"}, "denied_models": []string{"res.users"}})
	for _, field := range []string{"partner_vat", "partner_tax", "user_mail"} {
		b.invalid("odoo_search", `{"model":"crm.lead","fields":["`+field+`"]}`, "fields")
		b.invalid("odoo_search", `{"model":"crm.lead","domain":[["`+field+`","=","x"]]}`, "domain")
	}
	b.ok("odoo_search", `{"model":"crm.lead","fields":["partner_city"]}`)
	shown := fmt.Sprint(b.ok("odoo_schema_fields", `{"model":"crm.lead"}`)["fields"])
	if strings.Contains(shown, "partner_vat") || !strings.Contains(shown, "partner_city") {
		t.Errorf("listed: %s", shown)
	}
}
