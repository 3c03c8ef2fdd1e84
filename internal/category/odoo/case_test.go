package odoo_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"pawgate/internal/client/odoo/odootest"
	"pawgate/internal/fault"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
)

func TestCases(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		t.Run("ODOO-01 false is null", func(t *testing.T) {
			r := b.ok("odoo_search", `{"model":"crm.lead","domain":[["id","=",43]],"fields":["phone","user_id","date_deadline","date_open","active"]}`)
			want(t, r, "records.0", object{"id": 43, "phone": nil, "user_id": nil, "date_deadline": nil, "date_open": nil, "active": true})
		})
		t.Run("ODOO-03 and ODOO-04 times are UTC and say so", func(t *testing.T) {
			b.ok("odoo_execute", `{"model":"crm.lead","method":"write","ids":[43],"values":{"date_open":"2026-03-08T10:00:00+08:00"}}`)
			if got := b.Get("crm.lead", 43)["date_open"]; got != "2026-03-08 02:00:00" {
				t.Errorf("sent %v", got)
			}
			r := b.ok("odoo_search", `{"model":"crm.lead","domain":[["date_open",">=","2026-03-08T10:00:00+08:00"]],"fields":["date_open"]}`)
			want(t, r, "records.0.date_open", "2026-03-08T02:00:00Z")
			b.invalid("odoo_execute", `{"model":"crm.lead","method":"write","ids":[43],"values":{"date_open":"2026-03-08T10:00:00"}}`, "values")
		})
		t.Run("ODOO-05 archived records", func(t *testing.T) {
			b.Set("crm.lead", 43, object{"active": false})
			want(t, b.ok("odoo_search", `{"model":"crm.lead","domain":[["id","=",43]]}`), "count", 0)
			want(t, b.ok("odoo_search", `{"model":"crm.lead","domain":[["id","=",43]],"archived":true}`), "count", 1)
		})
		t.Run("ODOO-07 create is named and its list is read", func(t *testing.T) {
			want(t, b.ok("odoo_crm_create_lead", `{"name":"One"}`), "lead.name", "One")
			calls := b.Calls()
			i := slices.IndexFunc(calls, func(c odootest.Call) bool { return c.Method == "create" })
			if _, list := calls[i].Args["vals_list"].([]any); !list {
				t.Errorf("sent %v", calls[i].Args)
			}
		})
		t.Run("ODOO-10 companies", func(t *testing.T) {
			id := b.Add("res.partner", object{"name": "Branch's", "company_id": int64(2), "active": true})
			one := fmt.Sprintf(`{"model":"res.partner","domain":[["id","=",%d]]`, id)
			b.connect(b.agent, object{"companies": []int64{1}})
			want(t, b.ok("odoo_search", one+`}`), "count", 0)
			b.fault("odoo_search", one+`,"company_id":2}`, fault.Denied)
			b.connect(b.agent, object{"companies": []int64{1, 2}})
			want(t, b.ok("odoo_search", one+`,"company_id":2}`), "count", 1)
			want(t, b.ok("odoo_search", one+`,"company_id":1}`), "count", 0)
			b.connect(b.agent, object{"login": "limited", "secret": "limited-key"})
			f := b.fault("odoo_search", one+`,"company_id":2}`, "odoo_access")
			if f.Fields["exception"] != "odoo.exceptions.AccessError" && f.Fields["exception"] != nil {
				t.Errorf("exception %v", f.Fields)
			}
			if !strings.Contains(f.Message, "invalid companies") || len(f.Message) > 400 {
				t.Errorf("says %q", f.Message)
			}
			b.connect(b.agent, nil)
		})
		t.Run("J85 nothing stale", func(t *testing.T) {
			b.ok("odoo_crm_leads", `{}`)
			b.Set("crm.lead", 44, object{"name": "Changed elsewhere"})
			if r := b.ok("odoo_crm_leads", `{}`); !strings.Contains(fmt.Sprint(r), "Changed elsewhere") {
				t.Errorf("answer %v", r)
			}
		})
		t.Run("J86 labels in the connection's language", func(t *testing.T) {
			b.connect(b.agent, object{"lang": "zh_TW"})
			want(t, b.ok("odoo_sale_orders", `{"status":"sale"}`), "records.0.state_label", "銷售訂單")
			b.connect(b.agent, nil)
			want(t, b.ok("odoo_sale_orders", `{"status":"sale"}`), "records.0.state_label", "Sales Order")
		})
		t.Run("malformed domains are errors, never everything", func(t *testing.T) {
			before := b.writes()
			for _, domain := range []string{`"[('name','=','x')]"`, `["name","ilike"]`, `[["name","ilike"]]`, `["|",["name","=","x"]]`, `[["name","is","x"]]`, `[{"name":"x"}]`, `"name = x"`, `[[["name"],"=","x"]]`, `{"a":1}`} {
				b.invalid("odoo_search", `{"model":"res.partner","domain":`+domain+`}`, "domain")
			}
			want(t, b.ok("odoo_search", `{"model":"res.partner","domain":["|",["name","ilike","deco"],"!",["is_company","!=",true],["id",">",0]]}`), "count", 1)
			b.invalid("odoo_search", `{"model":"res.partner","order":"name; drop"}`, "order")
			b.fault("odoo_search", `{"model":"res.partner","order":"vat"}`, fault.Denied)
			if b.writes() != before {
				t.Error("wrote")
			}
		})
	})
}

func TestODOO_02_none(t *testing.T) {
	for _, major := range versions {
		b := setup(t, major)
		b.Closed = []string{"/jsonrpc"} // only XML-RPC cannot write None
		b.connect(b.agent, object{"secret": "admin", "secret_kind": "password"})
		r := b.ok("odoo_execute", `{"model":"crm.lead","method":"action_set_lost","ids":[44]}`)
		want(t, r, "state", "done")
		want(t, r, "changes.0.after", false)
		if b.writes() != 1 {
			t.Errorf("%d: called %d times", major, b.writes())
		}
	}
}

func TestODOO_08_database_header(t *testing.T) {
	b := setup(t, 19)
	b.ok("odoo_connect", `{}`)
	b.exec(`update odoo_connections set database = 'other' where agent_id = $1`, b.agent)
	if f := b.fault("odoo_crm_leads", `{}`, fault.NotConfigured); !strings.Contains(f.Message, `no database "other"`) {
		t.Errorf("says %q", f.Message)
	}
}

func TestODOO_09_doors(t *testing.T) {
	b := setup(t, 19)
	b.Closed = []string{"/jsonrpc", "/xmlrpc"}
	want(t, b.ok("odoo_connect", `{}`), "api", "json2")
	b.connect(b.agent, object{"secret": "admin", "secret_kind": "password"})
	if f := b.fault("odoo_connect", `{}`, fault.NotConfigured); !strings.Contains(f.Message, "API keys only") {
		t.Errorf("says %q", f.Message)
	}
	b.Closed = []string{"/"}
	b.fault("odoo_connect", `{}`, fault.NotConfigured)
}

func TestODOO_12_paging(t *testing.T) {
	b := setup(t, 18)
	const rows = 20_000 // a hundred pages
	for i := range rows {
		b.Add("res.country", object{"name": fmt.Sprintf("same %d", i%3)})
	}
	seen := map[float64]bool{}
	for offset := 0.0; ; {
		r := b.ok("odoo_search", fmt.Sprintf(`{"model":"res.country","order":"name","limit":200,"offset":%v,"domain":[["name","like","same"]]}`, offset))
		for _, record := range r["records"].([]any) {
			id := record.(object)["id"].(float64)
			if seen[id] {
				t.Fatalf("record %v came twice", id)
			}
			seen[id] = true
		}
		next, more := r["next_offset"].(float64)
		if !more {
			break
		}
		offset = next
	}
	if len(seen) != rows {
		t.Errorf("%d of %d records came", len(seen), rows)
	}
}

func TestODOO_13_statuses(t *testing.T) {
	b := setup(t, 19)
	b.ok("odoo_crm_leads", `{}`)
	for _, c := range []struct {
		status int
		body   string
		want   fault.Reason
	}{
		{403, `{"name":"odoo.exceptions.AccessError","message":"no","arguments":[],"context":{},"debug":"Traceback (most recent call last):"}`, "odoo_access"},
		{404, `{"name":"odoo.exceptions.MissingError","message":"gone","arguments":[],"context":{},"debug":""}`, fault.NotFound},
		{422, `{"name":"odoo.exceptions.UserError","message":"no","arguments":[],"context":{},"debug":""}`, "odoo_refused"},
		{500, `{"name":"builtins.ZeroDivisionError","message":"division by zero","arguments":[],"context":{},"debug":""}`, "odoo_error"},
		{502, `<html>Bad Gateway</html>`, fault.Unavailable},
		{429, `<html>slow down</html>`, fault.Unavailable},
	} {
		b.Before = func(w http.ResponseWriter, _ odootest.Call) bool {
			if w.Header().Set("Content-Type", "application/json"); c.body[0] == '<' {
				w.Header().Set("Content-Type", "text/html")
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
			return true
		}
		b.fault("odoo_crm_leads", `{}`, c.want)
	}
	b.Before = func(w http.ResponseWriter, _ odootest.Call) bool {
		http.Redirect(w, &http.Request{Method: "POST"}, "http://169.254.169.254/", http.StatusFound)
		return true
	}
	t.Run("B-12 a redirect is not followed", func(t *testing.T) { b.fault("odoo_crm_leads", `{}`, fault.NotConfigured) })
}

func TestJ89_unknown_argument(t *testing.T) {
	b := setup(t, 19)
	b.Before = func(w http.ResponseWriter, c odootest.Call) bool {
		if c.Method != "message_post" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(422)
		_, _ = w.Write([]byte(`{"name":"werkzeug.exceptions.UnprocessableEntity","message":"message_post() got an unexpected keyword argument 'nosuch'","arguments":[],"context":{},"debug":""}`))
		return true
	}
	if m := b.invalid("odoo_execute", `{"model":"crm.lead","method":"message_post","ids":[44],"args":{"nosuch":1}}`, "args"); !strings.Contains(m, "nosuch") {
		t.Errorf("says %q", m)
	}
}

// A secret that was changed is taken up by the next call.
func TestRotation(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.ok("odoo_crm_leads", `{}`)
		b.SetUser("admin", func(u *odootest.User) { u.Key = "rotated" })
		b.fault("odoo_crm_leads", `{}`, fault.NotConfigured)
		b.connect(b.agent, object{"secret": "rotated"})
		b.ok("odoo_crm_leads", `{}`)
	})
}

// B-10: two agents, a thousand calls side by side, each as its own user.
func TestIsolation(t *testing.T) {
	for _, major := range []int{18, 19} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			b := setupOn(t, major, postgrestest.Clone(t))
			b.AddUser(odootest.User{ID: 9, Login: "bob", Password: "bob-pass", Key: "bob-key", Lang: "en_US", Companies: []int64{1}})
			b.Add("res.users", object{"id": 9, "name": "Bob", "login": "bob"})
			b.connect("bob", object{"login": "bob", "secret": "bob-key"})
			var wait sync.WaitGroup
			for worker := range 4 {
				wait.Go(func() {
					for i := range 250 {
						agent := []string{b.agent, "bob"}[(worker+i)%2]
						query := fmt.Sprintf(`{"query":"asked by %s"}`, agent)
						if out := tooltest.Call(t, b.cat, tooltest.Who(agent), "odoo_partner_search", query); out.OK == nil {
							t.Errorf("%s: %+v", agent, out)
						}
					}
				})
			}
			wait.Wait()
			seen := 0
			for _, c := range b.Calls() {
				if c.Method != "search_read" || c.Model != "res.partner" {
					continue
				}
				seen++
				asked, _ := json.Marshal(c.Args["domain"])
				if bob := strings.Contains(string(asked), "asked by bob"); bob != (c.UID == 9) {
					t.Fatalf("user %d was asked %s", c.UID, asked)
				}
			}
			if seen != 1000 {
				t.Errorf("%d searches", seen)
			}
		})
	}
}

func TestReport(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.connect(b.agent, object{"secret": "admin", "secret_kind": "password"})
		r := b.ok("odoo_report", `{"report_name":"sale.report_saleorder","record_id":"24","include_pdf":true}`)
		want(t, r, "source", "rendered")
		want(t, r, "name", "S00024.pdf")
		if pdf, _ := r["pdf_base64"].(string); !strings.HasPrefix(pdf, "JVBERi0") {
			t.Errorf("pdf %q", pdf)
		}
		var size int
		if err := b.db.QueryRow(t.Context(), `select octet_length(content) from odoo_files where id = $1 and agent_id = $2`, r["file_id"], b.agent).Scan(&size); err != nil || size == 0 {
			t.Errorf("kept %d bytes: %v", size, err)
		}
		b.SetUser("admin", func(u *odootest.User) { u.SecondFactor = true })
		b.fault("odoo_report", `{"report_name":"sale.report_saleorder","record_id":24}`, "odoo_no_report")
		b.connect(b.agent, nil)
		kept := b.ok("odoo_report", `{"report_name":"account.report_invoice","record_id":1}`)
		want(t, kept, "source", "attachment")
		want(t, kept, "parts", 1)
		part := b.ok("odoo_report", `{"report_name":"account.report_invoice","record_id":1,"part":1}`)
		want(t, part, "source", "kept")
		want(t, part, "pdf_base64", base64.StdEncoding.EncodeToString([]byte("%PDF-1.4\nkept\n%%EOF\n")))
		b.fault("odoo_report", `{"report_name":"account.report_invoice","record_id":1,"part":2}`, fault.NotFound)
		b.fault("odoo_report", `{"report_name":"account.report_invoice","record_id":6,"part":1}`, fault.NotFound)
		want(t, kept, "name", "INV_2026_00001.pdf")
		if f := b.fault("odoo_report", `{"report_name":"sale.report_saleorder","record_id":24}`, "odoo_no_report"); !strings.Contains(f.Message, "/report/pdf/sale.report_saleorder/24") {
			t.Errorf("says %q", f.Message)
		}
		f := b.fault("odoo_report", `{"report_name":"sale.report_saleorder","record_id":24}`, "odoo_no_report")
		if !strings.Contains(f.Message, "Drawing.pdf") {
			t.Errorf("does not name what is attached: %q", f.Message)
		}
		b.fault("odoo_report", `{"report_name":"sale.report_saleorder","record_id":999999}`, fault.NotFound)
		b.invalid("odoo_report", `{"report_name":"../../web","record_id":1}`, "report_name")
		b.invalid("odoo_report", `{"report_name":"no.such_report","record_id":1}`, "report_name")
	})
}

// J83, point 5: one request a call, whatever the number of records; what a
// call costs beyond Odoo's own time is a benchmark.
func TestJ83_requests(t *testing.T) {
	b := setup(t, 18)
	for i := range 200 {
		b.Add("res.partner", object{"name": fmt.Sprintf("Partner %d", i), "active": true, "country_id": int64(233)})
	}
	b.ok("odoo_search", `{"model":"res.partner","fields":["name","country_id"],"limit":200}`)
	const calls = 5
	requests := b.Requests()
	for range calls {
		b.ok("odoo_search", `{"model":"res.partner","fields":["name"],"limit":5}`)
	}
	if n := b.Requests() - requests; n != calls {
		t.Errorf("%d requests for %d calls", n, calls)
	}
	requests = b.Requests()
	b.ok("odoo_search", `{"model":"res.partner","fields":["name","country_id"],"limit":200}`)
	if n := b.Requests() - requests; n != 1 {
		t.Errorf("%d requests for 200 records", n)
	}
}

// A document larger than an answer comes in parts, of what was fetched once.
func TestReport_parts(t *testing.T) {
	b := setup(t, 18)
	whole := append([]byte("%PDF-1.4\n"), bytes.Repeat([]byte("x"), 5<<20)...)
	b.Set("ir.attachment", 7, object{"datas": base64.StdEncoding.EncodeToString(whole)})
	r := b.ok("odoo_report", `{"report_name":"account.report_invoice","record_id":1,"include_pdf":true}`)
	want(t, r, "parts", 3)
	requests := b.Requests()
	var got []byte
	for n := 1; n <= 3; n++ {
		part := b.ok("odoo_report", fmt.Sprintf(`{"report_name":"account.report_invoice","record_id":1,"part":%d}`, n))
		if n == 1 {
			want(t, part, "pdf_base64", r["pdf_base64"])
		}
		content, err := base64.StdEncoding.DecodeString(part["pdf_base64"].(string))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, content...)
	}
	if !bytes.Equal(got, whole) {
		t.Errorf("the parts make %d bytes, want %d", len(got), len(whole))
	}
	if n := b.Requests() - requests; n != 3 { // whether the record may still be seen
		t.Errorf("%d requests for three parts", n)
	}
	b.connect("other-"+b.agent, nil)
	tooltest.Fault(t, b.cat, tooltest.Who("other-"+b.agent), "odoo_report", `{"report_name":"account.report_invoice","record_id":1,"part":1}`, fault.NotFound)
}
