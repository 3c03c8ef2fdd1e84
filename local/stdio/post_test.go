package stdio

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	modern := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	const version = "Mcp-Protocol-Version: 2026-07-28"
	tests := []struct {
		name, line string
		want       []string // the Mcp- headers
	}{
		{"older revision, no handshake", call1("1", "tools/list"), nil},
		{"initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, nil},
		{"discover", modern("server/discover", ""), []string{"Mcp-Method: server/discover", version}},
		{"list has no name", modern("tools/list", `"name":"x",`), []string{"Mcp-Method: tools/list", version}},
		{"tool", modern("tools/call", `"name":"memory_store",`), []string{"Mcp-Method: tools/call", "Mcp-Name: memory_store", version}},
		{"prompt", modern("prompts/get", `"name":"p",`), []string{"Mcp-Method: prompts/get", "Mcp-Name: p", version}},
		{"resource", modern("resources/read", `"name":"n","uri":"test://a,b",`), []string{"Mcp-Method: resources/read", "Mcp-Name: test://a,b", version}},
		{"not ASCII", modern("tools/call", `"name":"備份",`), []string{"Mcp-Method: tools/call", "Mcp-Name: =?base64?5YKZ5Lu9?=", version}},
		{"escaped in JSON", modern("tools/call", `"name":"\u5099\u4efd",`), []string{"Mcp-Method: tools/call", "Mcp-Name: =?base64?5YKZ5Lu9?=", version}},
		{"space at the end", modern("tools/call", `"name":"a ",`), []string{"Mcp-Method: tools/call", "Mcp-Name: =?base64?YSA=?=", version}},
		{"space within", modern("tools/call", `"name":"a b",`), []string{"Mcp-Method: tools/call", "Mcp-Name: a b", version}},
		{"line break", modern("tools/call", `"name":"a\r\nX: y",`), []string{"Mcp-Method: tools/call", "Mcp-Name: =?base64?YQ0KWDogeQ==?=", version}},
		{"looks encoded", modern("tools/call", `"name":"=?base64?eA==?=",`), []string{"Mcp-Method: tools/call", "Mcp-Name: =?base64?PT9iYXNlNjQ/ZUE9PT89?=", version}},
		{"MCP-01 name in another case", modern("tools/call", `"name":"a","Name":"b",`), []string{"Mcp-Method: tools/call", "Mcp-Name: a", version}},
		{"MCP-02 folded letters", modern("tools/call", `"ſname":"b",`), []string{"Mcp-Method: tools/call", version}},
		{"name is no string", modern("tools/call", `"name":5,`), []string{"Mcp-Method: tools/call", version}},
		{"MCP-21 version unknown", strings.ReplaceAll(modern("ping", ""), "2026-07-28", "1999-01-01"), []string{"Mcp-Method: ping", "Mcp-Protocol-Version: 1999-01-01"}},
		{"version is no string", strings.ReplaceAll(modern("ping", ""), `"2026-07-28"`, "5"), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := map[string][]string{}
			s, _ := bridge(t, func(w http.ResponseWriter, r *http.Request) {
				for name, values := range r.Header {
					got[name] = values
				}
				body, _ := io.ReadAll(r.Body)
				if string(body) != tt.line {
					t.Errorf("body = %s, want the line byte for byte", body)
				}
				fmt.Fprint(w, ok("1"))
			})
			s.send(tt.line)
			s.want(ok("1"))
			s.wantEnd()
			var mcp []string
			for name, values := range got {
				if strings.HasPrefix(name, "Mcp-") {
					mcp = append(mcp, name+": "+strings.Join(values, "|"))
				}
			}
			if diff := cmp.Diff(tt.want, sorted(mcp)); diff != "" {
				t.Errorf("MCP headers (-want +got):\n%s", diff)
			}
			fixed := []string{got["Authorization"][0], got["Content-Type"][0], got["Accept"][0]}
			if diff := cmp.Diff([]string{"Bearer " + testKey, "application/json", "application/json, text/event-stream"}, fixed); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNegotiatedVersion(t *testing.T) {
	t.Parallel()
	var got []string
	s, _ := bridge(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Mcp-Protocol-Version"))
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-03-26"}}`, requestID(body))
	})
	for i, method := range []string{"tools/list", "initialize", "tools/list", "initialize"} {
		s.send(call1(fmt.Sprint(i), method))
		s.recv()
	}
	s.wantEnd()
	if diff := cmp.Diff([]string{"", "", "2025-03-26", ""}, got); diff != "" {
		t.Errorf("versions sent (-want +got):\n%s", diff)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	const tool = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`
	const note = `{"jsonrpc":"2.0","method":"notifications/progress"}`
	fault := func(id, code string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + code + `,"message":"m","data":{"n":12345678901234567890}}}`
	}
	huge := `"` + strings.Repeat("x", 1<<20) + `"`
	tests := []struct {
		name, line, kind string
		status           int
		body             string
		want             []string
	}{
		{"pretty-printed", tool, "application/json", 200, "{\n  \"jsonrpc\": \"2.0\",\r\n  \"id\": 1,\n  \"result\": {\"a\": \"x\\ny <&>\"}\n}\n", []string{`{"jsonrpc":"2.0","id":1,"result":{"a":"x\ny <&>"}}`}},
		{"charset", tool, "application/json; charset=utf-8", 200, ok("1"), []string{ok("1")}},
		{"error on HTTP 400", tool, "application/json", 400, fault("1", "-32602"), []string{fault("1", "-32602")}},
		{"error with id null", tool, "application/json", 400, fault("null", "-32700"), []string{fault("1", "-32700")}},
		{"error without id", tool, "application/json", 400, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"}}`, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"m"}}`}},
		{"error with another id", tool, "application/json", 200, fault(`"server-error"`, "-32603"), []string{fault("1", "-32603")}},
		{"string id written another way", `{"id":"a\/b","method":"m"}`, "application/json", 200, ok(`"a/b"`), []string{ok(`"a/b"`)}},
		{"MCP-05 id null", `{"jsonrpc":"2.0","id":null,"method":"m"}`, "application/json", 400, fault("null", "-32600"), []string{fault("null", "-32600")}},
		{"MCP-07 object id is not repeated", `{"jsonrpc":"2.0","id":{"a":1},"method":"m"}`, "application/json", 400, fault("null", "-32600"), []string{fault("null", "-32600")}},
		{"MCP-07 exponent", `{"jsonrpc":"2.0","id":1e3,"method":"m"}`, "application/json", 400, fault("null", "-32600"), []string{fault("null", "-32600")}},
		{"MCP-07 huge id is not repeated", `{"jsonrpc":"2.0","id":` + huge + `,"method":"m"}`, "application/json", 400, fault("null", "-32600"), []string{fault("null", "-32600")}},
		{"MCP-07 huge id, gateway answer", `{"jsonrpc":"2.0","id":` + huge + `,"method":"m"}`, "text/plain", 400, "no",
			[]string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"HTTP 400 Bad Request from the local router: the request was refused (it says: \"no\")","data":{"reason":"http_error","http_status":400}}}`}},
		{"notification, 202", note, "", 202, "", nil},
		{"notification, 200 and empty", note, "application/json", 200, "", nil},
		{"notification, error", note, "application/json", 503, fault("null", "-32603"), nil},
		{"notification refused as malformed", note, "application/json", 400, fault("null", "-32600"), []string{fault("null", "-32600")}},
		{"no method, no id", `{"jsonrpc":"2.0"}`, "application/json", 400, fault("null", "-32600"), []string{fault("null", "-32600")}},
		{"reply, 202", `{"jsonrpc":"2.0","id":4,"result":{}}`, "", 202, "", nil},
		{"events", tool, "text/event-stream", 200,
			"\xef\xbb\xbfevent: message\ndata: " + note + "\n\n:comment\n\nid: 1\ndata:\n\nretry: 5\ndata:{\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\r\ndata: \"result\":{}}\r\n\r\n",
			[]string{note, ok("1")}},
		{"events ended by carriage returns", tool, "text/event-stream", 200, "data: " + note + "\r\rdata: " + ok("1") + "\r\r", []string{note, ok("1")}},
		{"last event not closed", tool, "text/event-stream", 200, "data: " + ok("1"), []string{ok("1")}},
		{"foreign event skipped", tool, "text/event-stream", 200, "data: hello\n\ndata: {\"a\":1}\n\ndata: " + ok("1") + "\n\n", []string{ok("1")}},
		{"second answer dropped", tool, "text/event-stream", 200, "data: " + ok("1") + "\n\ndata: " + fault("1", "-32603") + "\n\n", []string{ok("1")}},
		{"error event with id null", tool, "text/event-stream", 200, "data: " + fault("null", "-32603") + "\n\n", []string{fault("1", "-32603")}},
		{"MCP-16 invalid UTF-8 in the answer", tool, "application/json", 200, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}",
			[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"HTTP 200 OK from the local router: the answer is not a JSON-RPC message (it says: \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"result\\\":\\\" \\\"}\")","data":{"reason":"bad_answer","http_status":200}}}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, local(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", tt.kind)
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			}))
			s.send(tt.line)
			rest, err := s.end()
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.want, rest); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if len(s.log.String()) > 4096 {
				t.Errorf("%d bytes were logged", len(s.log.String()))
			}
		})
	}
}

// A server may ask the client something in the middle of a call; the client's
// reply is a POST of its own.
func TestServerRequestOnTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ask = `{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{}}`
		const reply = `{"jsonrpc":"2.0","id":"e1","result":{"action":"accept"}}`
		replied := make(chan struct{})
		s := start(t, local(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if string(body) == reply {
				w.WriteHeader(http.StatusAccepted)
				close(replied)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", ask)
			<-replied
			fmt.Fprintf(w, "data: %s\n\n", ok("1"))
		}))
		s.send(call1("1", "tools/call"))
		s.want(ask)
		s.send(reply)
		s.want(ok("1"))
		s.wantEnd()
	})
}

// A POST that gets no answer may not hold its place for ever.
func TestNotificationThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := local(func(w http.ResponseWriter, r *http.Request) {
			if body, _ := io.ReadAll(r.Body); requestID(body) == nil {
				<-r.Context().Done()
				return
			}
			fmt.Fprint(w, ok("1"))
		})
		o.InFlight = 1
		s := start(t, o)
		s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, call1("1", "ping"))
		s.want(ok("1"))
		s.wantEnd()
	})
}

func TestTLS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // the refused handshake is meant
	srv.StartTLS()
	t.Cleanup(srv.Close)
	trusting := start(t, Options{URL: srv.URL, Key: testKey, Transport: srv.Client().Transport})
	trusting.send(call1("1", "ping"))
	trusting.want(echoed("1", call1("1", "ping")))
	trusting.wantEnd()

	strict := start(t, Options{URL: srv.URL, Key: testKey})
	strict.send(call1("1", "ping"))
	if got := strict.recv(); !strings.Contains(got, "its TLS certificate is not trusted; nothing was sent") {
		t.Errorf("got %s, want a word about the certificate", got)
	}
	strict.wantEnd()
}
