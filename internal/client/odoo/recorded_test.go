package odoo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/client/odoo/odootest"
	"pawgate/internal/safehttp"
)

// exchange is one that was recorded with a real server.
type exchange struct {
	Name        string          `json:"name"`
	Path        string          `json:"path"`
	Status      int             `json:"status"`
	ContentType string          `json:"content_type"`
	Body        string          `json:"body"`
	Request     json.RawMessage `json:"request"`
}

func recorded(t *testing.T, major int) []exchange {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("testdata/recorded%d.jsonl", major))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var list []exchange
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e exchange
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// read is how the client reads an answer of a door.
func (e exchange) read() (jsontext.Value, error) {
	r := &safehttp.Response{Status: e.Status, Header: http.Header{"Content-Type": {e.ContentType}}, Body: []byte(e.Body)}
	switch {
	case strings.HasPrefix(e.Path, "/json/2/"):
		return readJSON2(r)
	case strings.HasPrefix(e.Path, "/xmlrpc/"):
		return readXMLRPC(r)
	}
	return readJSONRPC(r)
}

// kinds are what the recorded faults mean. Everything else succeeds.
var kinds = map[int]map[string]Kind{
	18: {"authenticate_bad_db": WrongDatabase, "execute_wrong_password": WrongLogin, "crm_update_stage_bad_stage": Missing, "crm_update_missing_lead": Missing,
		"products_detailed_type": UnknownField, "quotation_bad_partner": Missing, "sale_confirm_again": Refused, "schema_fields_unknown_model": UnknownModel,
		"search_unknown_field": UnknownField, "search_read_unknown_field": UnknownField, "search_malformed_domain": BadDomain, "execute_unknown_method": UnknownMethod,
		"execute_private_method": Private, "report_render_rpc": UnknownMethod, "unlink_protected": Refused, "access_denied_read": Access, "access_denied_write": Access,
		"limited_leads": Access, "web_version": NotAPI, "json2_on_18": NotAPI, "jsonrpc_malformed": NotAPI, "xmlrpc_fault_none": Missing, "xmlrpc_fault_wrong_pw": WrongLogin},
	19: {"lead_write_bad_stage": Missing, "lead_write_missing": Missing, "sale_confirm_again": Refused, "partners_with_mobile": UnknownField, "fields_get_unknown_model": UnknownModel,
		"unknown_method": UnknownMethod, "private_method": Private, "unknown_argument": UnknownArgument, "unknown_field": UnknownField, "malformed_domain": BadDomain,
		"bad_key": WrongLogin, "no_key": WrongLogin, "bad_db": WrongDatabase, "not_json": Broken, "wrong_content_type": NotAPI, "get_method": Broken, "unlink_in_use": Refused,
		"report_rpc": UnknownMethod, "report_json2": Private},
}

func TestRecorded(t *testing.T) {
	for major, faults := range kinds {
		used := 0
		for _, e := range recorded(t, major) {
			t.Run(fmt.Sprintf("%d/%s", major, e.Name), func(t *testing.T) {
				if strings.HasPrefix(e.Path, "/web/version") && e.Status == 200 || e.Path == "/json/version" {
					return // Open reads these, see TestOpen
				}
				value, err := e.read()
				if KindOf(err) != faults[e.Name] {
					t.Fatalf("%s gives %v, want %q", e.Body, err, faults[e.Name])
				}
				if err == nil && !value.IsValid() {
					t.Errorf("no JSON: %s", value)
				}
				if err != nil {
					used++
					for _, word := range []string{"Traceback", "dist-packages", "127.0.0.1", "act_window"} {
						if strings.Contains(err.Error(), word) {
							t.Errorf("the error shows %q: %v", word, err)
						}
					}
				}
			})
		}
		if used != len(faults) {
			t.Errorf("%d: %d of %d faults were recorded", major, used, len(faults))
		}
	}
}

// A method without a result has no member result at all, or null.
func TestRecorded_none(t *testing.T) {
	for major, names := range map[int][]string{18: {"execute_action_none"}, 19: {"jsonrpc_action_none", "lead_set_lost"}} {
		for _, e := range recorded(t, major) {
			for _, name := range names {
				if e.Name != name {
					continue
				}
				if value, err := e.read(); err != nil || string(value) != "null" {
					t.Errorf("%d/%s: %s %v", major, name, value, err)
				}
			}
		}
	}
}

// The fakes give the faults of the recordings: the same status, class and
// words to the same requests.
func TestFakeIsLikeRecorded(t *testing.T) {
	for major, names := range map[int]string{
		18: "authenticate_bad_password execute_wrong_password crm_update_stage_bad_stage crm_update_missing_lead products_detailed_type quotation_bad_partner schema_fields_unknown_model search_unknown_field search_read_unknown_field search_malformed_domain execute_unknown_method execute_private_method report_render_rpc web_version json2_on_18 jsonrpc_malformed",
		19: "lead_write_missing partners_with_mobile fields_get_unknown_model unknown_method private_method unknown_argument unknown_field malformed_domain bad_key report_json2 report_rpc",
	} {
		fake := odootest.New(t, major)
		fake.Add("crm.lead", map[string]any{"id": 45, "name": "Roof repair", "stage_id": 1, "active": true})
		for _, e := range recorded(t, major) {
			if !strings.Contains(" "+names+" ", " "+e.Name+" ") {
				continue
			}
			t.Run(fmt.Sprintf("%d/%s", major, e.Name), func(t *testing.T) {
				got := replay(t, fake, e)
				_, err := e.read()
				_, gotErr := got.read()
				if got.Status != e.Status || fmt.Sprint(gotErr) != fmt.Sprint(err) {
					t.Errorf("the fake gives %d %v, recorded was %d %v", got.Status, gotErr, e.Status, err)
				}
			})
		}
	}
}

func replay(t *testing.T, fake *odootest.Server, e exchange) exchange {
	t.Helper()
	body := string(e.Request)
	if e.Name == "jsonrpc_malformed" {
		body = "{not json"
	}
	method := http.MethodPost
	if e.Path == "/web/version" {
		method = http.MethodGet
	}
	key := odootest.Key
	if e.Name == "bad_key" {
		key = "wrong"
	}
	response, err := safehttp.New(Policy(safehttp.Policy{AllowHosts: []string{strings.TrimPrefix(fake.URL, "http://")}})).Do(t.Context(),
		safehttp.Request{Method: method, URL: fake.URL + e.Path, Body: []byte(body),
			Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"bearer " + key}, "X-Odoo-Database": {fake.Database}}})
	if err != nil {
		t.Fatal(err)
	}
	return exchange{Name: e.Name, Path: e.Path, Status: response.Status, ContentType: response.Header.Get("Content-Type"), Body: string(response.Body)}
}
