package odoo

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/client/odoo/odootest"
	"pawgate/internal/safehttp"
)

func open(t *testing.T, s *odootest.Server, secret string) (*Client, error) {
	t.Helper()
	http := safehttp.New(Policy(safehttp.Policy{AllowHosts: []string{strings.TrimPrefix(s.URL, "http://")}}))
	return Open(t.Context(), http, Login{URL: s.URL + "/", Database: s.Database, User: "admin", Secret: secret, APIKey: secret != "admin"})
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		major  int
		closed string
		secret string
		door   Door
		fails  error
	}{
		{16, "", "admin", JSONRPC, nil}, {16, "", odootest.Key, JSONRPC, nil}, {16, "/jsonrpc", "admin", XMLRPC, nil},
		{17, "", "admin", JSONRPC, nil}, {17, "/jsonrpc", odootest.Key, XMLRPC, nil},
		{18, "", odootest.Key, JSONRPC, nil}, {18, "/jsonrpc", "admin", XMLRPC, nil},
		{19, "", odootest.Key, JSON2, nil}, {19, "", "admin", JSONRPC, nil}, {19, "/jsonrpc", "admin", XMLRPC, nil},
		{19, "/web/version", odootest.Key, JSON2, nil}, {19, "/jsonrpc /xmlrpc", odootest.Key, JSON2, nil},
		{19, "/jsonrpc /xmlrpc", "admin", "", ErrKeyNeeded}, {20, "/jsonrpc /xmlrpc", odootest.Key, JSON2, nil},
		{18, "/", "admin", "", &Error{Kind: NotAPI}}, {18, "", "wrong", "", &Error{Kind: WrongLogin}}, {19, "", "wrong", "", &Error{Kind: WrongLogin}},
	} {
		t.Run(fmt.Sprintf("%d %s closed %s", c.major, c.closed, c.secret), func(t *testing.T) {
			s := odootest.New(t, c.major)
			s.Closed = strings.Fields(c.closed)
			client, err := open(t, s, c.secret)
			if c.fails != nil {
				if err == nil || !errors.Is(err, c.fails) && KindOf(err) != KindOf(c.fails) {
					t.Errorf("got %v, want %v", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := client.Server()
			if got.Major != c.major || got.Door != c.door || got.UID != 2 || got.Lang != "en_US" || got.TimeZone != "Asia/Taipei" {
				t.Errorf("found %+v", got)
			}
			names, err := client.Call(t.Context(), Call{Model: "res.partner", Method: "search_read", Reads: true,
				Args: []Arg{{"domain", []any{[]any{"id", "=", 10}}}}, Options: map[string]any{"fields": []string{"name", "ref"}}})
			if err != nil || !strings.Contains(string(names), "Deco Addict") {
				t.Errorf("a call gives %s, %v", names, err)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	for version, major := range map[string]int{"18.0+e-20241005": 18, "saas~18.2": 18, "saas-17.4+e": 17, "19.0": 19, "16": 16, "": 0, "x": 0} {
		c := &Client{}
		if ok := c.setVersion(version); ok != (major > 0) || c.server.Major != major {
			t.Errorf("%q is %d, %v", version, c.server.Major, ok)
		}
	}
}

// Only what is safe is sent twice.
func TestRepeat(t *testing.T) {
	s := odootest.New(t, 18)
	client, err := open(t, s, "admin")
	if err != nil {
		t.Fatal(err)
	}
	for reads, want := range map[bool]int{true: 2, false: 1} {
		n := 0
		s.Before = func(w http.ResponseWriter, _ odootest.Call) bool {
			n++
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		_, err := client.Call(t.Context(), Call{Model: "res.partner", Method: "name_search", Reads: reads})
		if KindOf(err) != Away || n != want || !Lost(err) || Unsent(err) {
			t.Errorf("reads %v: sent %d times, %v", reads, n, err)
		}
	}
	s.Server.Close()
	client.http.CloseIdle() // on an idle connection nobody knows how far it came
	if _, err := client.Call(t.Context(), Call{Model: "res.partner", Method: "write"}); !Unsent(err) {
		t.Errorf("a server that is gone: %v", err)
	}
}

func TestXML(t *testing.T) {
	call, err := writeCall("execute_kw", []any{"a<b", 1, 2.5, true, nil, []int{1}, map[string]any{"k": "v"}})
	if err != nil || !strings.Contains(string(call), "<string>a&lt;b</string>") || !strings.Contains(string(call), "<nil/>") {
		t.Errorf("%s %v", call, err)
	}
	for body, want := range map[string]string{
		`<methodResponse><params><param><value>bare</value></param></params></methodResponse>`:                                             `"bare"`,
		`<methodResponse><params><param><value><double>2000.0</double></value></param></params></methodResponse>`:                          `2000.0`,
		`<methodResponse><params><param><value><array><data></data></array></value></param></params></methodResponse>`:                     `[]`,
		`<methodResponse><params><param><value><boolean>0</boolean></value></param></params></methodResponse>`:                             `false`,
		`<html><body><value>1</value></body></html>`:                                                                                       "",
		`<methodResponse><params><param><value><int>x</int></value>`:                                                                       "",
		strings.Repeat("<methodResponse>", 1) + strings.Repeat("<value><array><data>", 100) + strings.Repeat("</data></array></value>", 9): "",
	} {
		value, _, err := readResponse([]byte(body))
		if string(value) != want || (err == nil) != (want != "") {
			t.Errorf("%.60s: %s %v", body, value, err)
		}
		if err == nil && !jsontext.Value(value).IsValid() {
			t.Errorf("%s is no JSON", value)
		}
	}
}
