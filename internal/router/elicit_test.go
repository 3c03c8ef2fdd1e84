package router_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pawgate/internal/router"
)

// asking is a modern call of probe_write by a client that can ask its person.
func (g *gate) asking(params string, capabilities string) reply {
	g.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"probe_write",%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, params, capabilities)
	return g.post(body, header("Mcp-Protocol-Version", "2026-07-28"), header("Mcp-Method", "tools/call"), header("Mcp-Name", "probe_write"))
}

const canAsk, cannotAsk = `{"elicitation":{}}`, `{}`

// question is the part of an answer that asks.
type question struct {
	Result struct {
		ResultType    string
		RequestState  string
		InputRequests map[string]struct {
			Method string
			Params struct{ Message string }
		}
	}
}

func asked(t *testing.T, r reply) (state, message string) {
	t.Helper()
	var q question
	if err := json.Unmarshal([]byte(r.Body), &q); err != nil {
		t.Fatal(err)
	}
	if q.Result.ResultType != "input_required" || q.Result.RequestState == "" || q.Result.InputRequests["approval"].Method != "elicitation/create" {
		t.Fatalf("no question: %s", r.Body)
	}
	return q.Result.RequestState, q.Result.InputRequests["approval"].Params.Message
}

func answering(state, action, content string) string {
	return fmt.Sprintf(`"arguments":{"input":"a"},"requestState":%q,"inputResponses":{"approval":{"action":%q,"content":%s}}`, state, action, content)
}

func (g *gate) byClient() {
	g.Helper()
	g.requireApproval()
	g.exec(`update agents set approver = 'client'`)
}

// TestAskModernClient: a client of the stateless revision is asked with the
// result and answers with the next attempt, on any instance.
func TestAskModernClient(t *testing.T) {
	g := newGate(t)
	g.byClient()
	state, message := asked(t, g.asking(`"arguments":{"input":"a"}`, canAsk))
	for _, part := range []string{"alice", "probe_write", `"input":"a"`, "approval_required_tools"} {
		if !strings.Contains(message, part) {
			t.Errorf("the card lacks %s: %s", part, message)
		}
	}
	g.router = newSecondInstance(g)
	g.asking(answering(state, "accept", `{"decision":"approve"}`), canAsk).wantOK(t)
	if n := g.probe.ran.Load(); n != 1 {
		t.Errorf("ran %d times", n)
	}
	if n := g.count(`select count(*) from approvals where state = 'used' and decided_by = 'client'`); n != 1 {
		t.Errorf("%d approvals used", n)
	}
	t.Run("an answer is good once", func(t *testing.T) {
		g.asking(answering(state, "accept", `{"decision":"approve"}`), canAsk).wantError(t, 400, -32602, "requestState")
		if n := g.probe.ran.Load(); n != 1 {
			t.Errorf("ran %d times", n)
		}
	})
}

// TestAskIsBound: an answer to one call does not approve another.
func TestAskIsBound(t *testing.T) {
	g := newGate(t)
	g.byClient()
	state, _ := asked(t, g.asking(`"arguments":{"input":"a"}`, canAsk))
	yes := `"inputResponses":{"approval":{"action":"accept","content":{"decision":"approve"}}}`
	for name, params := range map[string]string{
		"other arguments": fmt.Sprintf(`"arguments":{"input":"b"},"requestState":%q,%s`, state, yes),
		"no state":        `"arguments":{"input":"a"},` + yes,
		"a forged state":  fmt.Sprintf(`"arguments":{"input":"a"},"requestState":%q,%s`, state[:len(state)-6]+"AAAAAA", yes),
	} {
		t.Run(name, func(t *testing.T) { g.asking(params, canAsk).wantError(t, 400, -32602, "requestState") })
	}
	if n := g.probe.ran.Load(); n != 0 {
		t.Errorf("ran %d times", n)
	}
}

// TestAskDenied: who declines denies, who dismisses leaves it open.
func TestAskDenied(t *testing.T) {
	g := newGate(t)
	g.byClient()
	state, _ := asked(t, g.asking(`"arguments":{"input":"a"}`, canAsk))
	g.asking(answering(state, "cancel", `{}`), canAsk).wantFault(t, "approval_required")
	f := g.asking(answering(state, "accept", `{"decision":"deny","reason":"not today"}`), canAsk).wantFault(t, "denied")
	if !strings.Contains(f["error"].(string), "not today") {
		t.Errorf("fault %v", f)
	}
	g.asking(`"arguments":{"input":"a"}`, canAsk).wantFault(t, "denied")
	if n := g.probe.ran.Load(); n != 0 {
		t.Errorf("ran %d times", n)
	}
}

// TestAskFallsBack: a client that cannot ask leaves it to an operator.
func TestAskFallsBack(t *testing.T) {
	g := newGate(t)
	g.byClient()
	g.asking(`"arguments":{"input":"a"}`, cannotAsk).wantFault(t, "approval_required")
	g.post(write("a", "")).wantFault(t, "approval_required")
}

// TestAskOverStdio: an older client over stdio that declared elicitation is
// asked while its call waits.
func TestAskOverStdio(t *testing.T) {
	for _, c := range []struct{ name, reply, want string }{
		{"approved", `"result":{"action":"accept","content":{"decision":"approve"}}`, `"status":"ok"`},
		{"declined", `"result":{"action":"decline"}`, `"reason":"denied"`},
		{"dismissed", `"result":{"action":"cancel"}`, `"reason":"approval_required"`},
		{"an error", `"error":{"code":-1,"message":"x"}`, `"reason":"approval_required"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t)
			g.byClient()
			door := router.NewLocalDoor("alice")
			post := func(body string, w http.ResponseWriter) {
				req := httptest.NewRequestWithContext(door.Open(t.Context()), http.MethodPost, "/mcp", strings.NewReader(body))
				req.Header.Set("Content-Type", "application/json")
				g.router.ServeHTTP(w, req)
			}
			post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`, httptest.NewRecorder())
			w := &watched{ResponseRecorder: httptest.NewRecorder(), event: make(chan []byte, 4)}
			done := make(chan struct{})
			go func() { defer close(done); post(write("a", ""), w) }()
			question := string(<-w.event)
			if !strings.Contains(question, `"id":"pawgate-1","method":"elicitation/create"`) || !strings.Contains(question, "probe_write") {
				t.Fatalf("asked %s", question)
			}
			post(`{"jsonrpc":"2.0","id":"pawgate-1",`+c.reply+`}`, httptest.NewRecorder())
			<-done
			answer := string(<-w.event)
			if !strings.HasPrefix(answer, "event: message\ndata: {") || !strings.HasSuffix(answer, "}\n\n") || !strings.Contains(answer, c.want) {
				t.Errorf("answered %q", answer)
			}
		})
	}
}

// watched tells of every write.
type watched struct {
	*httptest.ResponseRecorder
	event chan []byte
}

func (w *watched) Write(p []byte) (int, error) {
	w.event <- bytes.Clone(p)
	return w.ResponseRecorder.Write(p)
}
