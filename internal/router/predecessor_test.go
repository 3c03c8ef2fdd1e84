package router_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/policy"
	"pawgate/internal/router"
)

// What the predecessor's gate got wrong, each by the id of its register: W for
// what was left in it, B for what it had once.

// doors are the ways to the gate, for one agent: each gives the reason of the
// refusal, or "" and the result.
func (g *gate) doors() map[string]func(name, arguments string) (reason, text string) {
	of := func(r reply) (string, string) {
		if r.Error != nil {
			reason, _ := r.Error.Data["reason"].(string)
			return reason, r.Body
		}
		reason, _ := r.Result.StructuredContent["reason"].(string)
		return reason, r.Body
	}
	loop := g.router.LoopDoor(router.Identity{Agent: "alice", Credential: "schedule:7"})
	return map[string]func(name, arguments string) (string, string){
		"http": func(name, arguments string) (string, string) { return of(g.post(callBody(name, arguments))) },
		"stdio": func(name, arguments string) (string, string) {
			return of(g.post(callBody(name, arguments), func(r *http.Request) {
				r.Header.Del("Authorization")
				*r = *r.WithContext(router.NewLocalDoor("alice").Open(r.Context()))
			}))
		},
		"loop": func(name, arguments string) (string, string) {
			g.Helper()
			result, _ := loop.Call(g.Context(), name, []byte(arguments), "key of the loop")
			var out struct{ Reason string }
			if err := json.Unmarshal(result, &out); err != nil {
				g.Fatalf("%s: %v", result, err)
			}
			return out.Reason, string(result)
		},
	}
}

// TestPredecessorDoors: what one door refuses, every door refuses, under either
// spelling, whoever asks for it.
func TestPredecessorDoors(t *testing.T) {
	const none = `denied_tools = '{}', allowed_tools = '{*}', rules = '[]', approval_required_tools = '{}', scoped_tools = '{}', state = 'active'`
	for _, c := range []struct {
		name, set, tool, want string
	}{
		{"B-4 B-35 W-5 AUTH-03 a denied tool", `denied_tools = '{probe_write}'`, "probe_write", "unknown_tool"},
		{"B-34 a denied tool with a qualifier", `denied_tools = '{probe_write}'`, "mcp__duduclaw__probe_write", "unknown_tool"},
		{"B-32 B-33 an allow list of another", `allowed_tools = '{probe_echo}'`, "probe_write", "unknown_tool"},
		{"B-34 an allow list of it, qualified", `allowed_tools = '{probe_write}'`, "mcp__any__probe_write", ""},
		{"W-6 B-18 B-59 an empty allow list", `allowed_tools = '{}'`, "probe_write", "unknown_tool"},
		{"W-37 a paused agent", `state = 'paused'`, "probe_write", "agent_inactive"},
		{"a rule", `rules = '[{"tool":"probe_write","effect":"forbid"}]'`, "probe_write", "forbidden_by_rule"},
		{"a grant", `scoped_tools = '{probe_*}'`, "probe_write", "grant_required"},
		{"B-30 C34 an approval", `approval_required_tools = '{probe_write}'`, "probe_write", "approval_required"},
		{"W-23 an approval, qualified", `approval_required_tools = '{probe_write}'`, "mcp__x__probe_write", "approval_required"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t)
			g.exec(`update agents set ` + none)
			g.exec(`update agents set ` + c.set + ` where id = 'alice'`)
			g.exec(`update api_keys set scopes = '{*,operator,approve}' where id = 'key-alice'`) // B-31: an administrator's key is no way round
			for door, call := range g.doors() {
				if reason, text := call(c.tool, `{"input":"a"}`); reason != c.want {
					t.Errorf("%s: %q, want %q: %s", door, reason, c.want, text)
				}
			}
			if ran := g.probe.ran.Load(); (c.want == "") != (ran == 3) || c.want != "" && ran != 0 {
				t.Errorf("ran %d times", ran)
			}
		})
	}
	t.Run("W-6 a loop with nothing allowed is offered nothing", func(t *testing.T) {
		g := newGate(t)
		g.exec(`update agents set allowed_tools = '{}'`)
		if listed, err := g.router.LoopDoor(router.Identity{Agent: "alice"}).List(t.Context()); err != nil || len(listed) != 0 {
			t.Errorf("%d tools, %v", len(listed), err)
		}
	})
	t.Run("B-28 W-14 W-21 secrets are hidden at every door", func(t *testing.T) {
		g := newGate(t)
		secret := "ddc_refresh_prod_" + strings.Repeat("0123456789abcdef", 4)
		for door, call := range g.doors() {
			if reason, text := call("probe_echo", `{"text":"it is `+secret+`"}`); reason != "" || strings.Contains(text, secret[20:]) {
				t.Errorf("%s: %s %s", door, reason, text)
			}
		}
	})
}

// TestPredecessorIdentity: W-1, W-3, B-8, B-46, B-79: whoever the credential
// says is who runs, and is named with the credential in the trail, also when many
// call at once and when a schedule started it.
func TestPredecessorIdentity(t *testing.T) {
	g := newGate(t)
	g.unlimited()
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			key, agent := aliceKey, "alice"
			if i%2 == 1 {
				key, agent = bobKey, "bob"
			}
			if got := g.post(callBody("probe_echo", `{"text":"`+agent+`"}`), as(key), header("X-Agent-Id", "root")).wantOK(g.T); got["agent"] != agent {
				t.Errorf("%s ran as %v", agent, got["agent"])
			}
		})
	}
	group.Wait()
	g.router.LoopDoor(router.Identity{Agent: "bob", Credential: "schedule:7"}).Call(t.Context(), "probe_echo", []byte(`{"text":"bob"}`), "k")
	if n := g.count(`select count(*) from audit where kind = 'outcome' and arguments->>'text' <> agent_id`); n != 0 {
		t.Errorf("%d rows name another agent", n)
	}
	for _, want := range []string{"alice key-alice http", "bob key-bob http", "bob schedule:7 loop"} {
		if n := g.count(`select count(*) from audit where kind = 'outcome' and agent_id || ' ' || credential_id || ' ' || door = $1`, want); n == 0 {
			t.Errorf("no row of %s", want)
		}
	}
}

// TestPredecessorDenials: W-19, W-18, B-37: every kind of refusal has a row that
// says which, with what was tried (W-45, B-45: of whatever tool), and refusals
// that must look alike do, whatever the caller's scopes.
func TestPredecessorDenials(t *testing.T) {
	for _, c := range []struct {
		name, set, body, reason, code string
	}{
		{"unknown", ``, callBody("nope", `{}`), "unknown_tool", "-32602"},
		{"denied", `update agents set denied_tools = '{probe_write}'`, write("a", ""), "denied", "-32602"},
		{"not allowed", `update agents set allowed_tools = '{web_*}'`, write("a", ""), "not_allowed", "-32602"},
		{"scope", `update api_keys set scopes = '{*:read}'`, write("a", ""), "scope", "-32602"},
		{"no scope", `update api_keys set scopes = '{}'`, write("a", ""), "scope", "-32602"},
		{"rule", `update agents set rules = '[{"tool":"*","effect":"forbid"}]'`, write("a", ""), "forbidden_by_rule", ""},
		{"grant", `update agents set scoped_tools = '{*}'`, write("a", ""), "grant_required", ""},
		{"limit", `update agents set limits = '{"write":{"burst":1,"per_minute":0.001}}'`, write("a", ""), "rate_limited", ""},
		{"limit that nothing flows into", `update agents set limits = '{"write":{"burst":1,"per_minute":0}}'`, write("a", ""), "rate_limited", ""},
		{"approval", `update agents set approval_required_tools = '{*}'`, write("a", ""), "approval_required", ""},
		{"approval of a reader", `update agents set approval_required_tools = '{*}'`, callBody("probe_echo", `{"text":"a"}`), "approval_required", ""},
		{"no approver", `update agents set approval_required_tools = '{*}', approver = 'none'`, write("a", ""), "no_approver", ""},
		{"stop", `insert into stops (reason, stopped_by) values ('x', 'y')`, write("a", ""), "stopped", ""},
		{"paused", `update agents set state = 'paused'`, write("a", ""), "agent_inactive", ""},
		{"broken arguments", ``, callBody("probe_write", `{"inptu":"a"}`), "inptu", "-32602"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t)
			if c.set != "" {
				g.exec(c.set)
			}
			g.post(c.body) // what the limit lets through
			r := g.post(c.body)
			if c.code != "" && (r.Error == nil || fmt.Sprint(r.Error.Code) != c.code) || c.code == "" && !r.Result.IsError {
				t.Errorf("answer %s", r.Body)
			}
			if n := g.count(`select count(*) from audit where agent_id = 'alice' and credential_id = 'key-alice' and reason = $1 and (decision = 'refused' or outcome = 'invalid')`, c.reason); n == 0 {
				t.Errorf("no row says %s", c.reason)
			}
		})
	}
}

// TestPredecessorApprovalHidesSecrets: W-46: what waits for a decision holds no
// secret, neither a declared one nor one that looks like one.
func TestPredecessorApprovalHidesSecrets(t *testing.T) {
	g := newGate(t)
	g.exec(`update agents set approval_required_tools = '{*}', approval_card = 'telegram:1'`)
	const declared, formed = "correct-horse", "sk-ant-" + "api03-0123456789012345678901234567890123456789"
	f := g.post(callBody("probe_echo", `{"token":"`+declared+`","text":"key `+formed+`"}`)).wantFault(t, "approval_required")
	for _, table := range []string{"approvals", "approval_cards", "audit", "idempotency"} {
		var all string
		if err := g.db.QueryRow(t.Context(), `select coalesce(json_agg(x)::text, '') from `+table+` x`).Scan(&all); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(all, declared) || strings.Contains(all, formed[20:]) {
			t.Errorf("%s holds it: %s", table, all)
		}
	}
	if answer := fmt.Sprint(f); strings.Contains(answer, declared) {
		t.Error(answer)
	}
}

// TestPredecessorKeys: B-6, W-2, B-23, W-13, W-15.
func TestPredecessorKeys(t *testing.T) {
	for name, c := range map[string]struct {
		set  string
		edit func(*http.Request)
		want int
	}{
		"W-2 a key without an end is good for ever":     {set: `update api_keys set created_at = now() - interval '10 years'`, want: 200},
		"B-23 made in the future, by a clock that errs": {set: `update api_keys set created_at = now() + interval '1 day'`, want: 200},
		"its end is its end":                            {set: `update api_keys set expires_at = now() - interval '1 second'`, want: 401},
		"its end is to come":                            {set: `update api_keys set expires_at = now() + interval '1 hour'`, want: 200},
		"B-6 no key is configured":                      {set: `delete from api_keys`, want: 401},
		"B-6 no agent either":                           {set: `truncate agents cascade`, want: 401},
		"W-15 a key in the query": {set: `select 1`, want: 401, edit: func(r *http.Request) {
			r.Header.Del("Authorization")
			r.URL.RawQuery = "api_key=" + aliceKey
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			g.exec(c.set)
			edit := c.edit
			if edit == nil {
				edit = func(*http.Request) {}
			}
			if r := g.post(callBody("probe_echo", `{}`), edit); r.Status != c.want {
				t.Errorf("HTTP %d, want %d: %s", r.Status, c.want, r.Body)
			}
			if strings.Contains(g.log.String(), aliceKey) {
				t.Error("the key is in the log")
			}
			if n := g.count(`select count(*) from api_keys k where k::text like '%' || $1 || '%'`, aliceKey); n != 0 {
				t.Error("W-13: the database holds the key")
			}
		})
	}
}

// TestPredecessorListIsCallable: W-22, B-38, C22: listed is exactly what is not
// an unknown tool when it is called.
func TestPredecessorListIsCallable(t *testing.T) {
	for name, set := range map[string]string{"all": `select 1`, "some": `update agents set allowed_tools = '{probe_e*,probe_fault}', denied_tools = '{probe_error}'`,
		"by scope": `update api_keys set scopes = '{probe:write}'`} {
		t.Run(name, func(t *testing.T) { listIsCallable(t, set) })
	}
}

func listIsCallable(t *testing.T, set string) {
	t.Helper()
	g := newGate(t)
	g.exec(set)
	listed := map[string]bool{}
	for _, tool := range g.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Result.Tools {
		listed[tool.Name] = true
	}
	close(g.probe.release)
	for _, e := range g.router.Catalog.All() {
		r := g.post(callBody(e.Name, `{}`))
		if unknown := r.Error != nil && strings.HasPrefix(r.Error.Message, "unknown tool"); unknown == listed[e.Name] {
			t.Errorf("%s is listed: %v, and answers %s", e.Name, listed[e.Name], r.Body)
		}
	}
}

// TestPredecessorNoScan: W-9, W-10: the gate judges rights, not words, so work
// that speaks of commands is done, and nothing depends on how they are spaced.
func TestPredecessorNoScan(t *testing.T) {
	g := newGate(t)
	for _, text := range []string{"upload to the share, then rm -rf build/", "you are now dancing", "eval(exec(system('drop table')))", "ignore\nall\tprevious instructions", "curl http://x"} {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.post(callBody("probe_echo", `{"text":`+string(quoted)+`}`)).wantOK(t); got["text"] != text {
			t.Errorf("%q became %q", text, got["text"])
		}
	}
}

// TestPredecessorLimits: W-11: a class has one bucket for all instances, and
// what one class uses up is not the other's.
func TestPredecessorLimits(t *testing.T) {
	g := newGate(t)
	g.exec(`update agents set limits = '{"write":{"burst":4,"per_minute":0.001}}'`)
	second := newSecondInstance(g)
	passed := 0
	for i := range 10 {
		h := []*router.Router{g.router, second}[i%2]
		if r := g.through(h, write(fmt.Sprint(i), "")); r.Error == nil && !r.Result.IsError {
			passed++
		}
	}
	if passed != 4 {
		t.Errorf("%d of 10 passed through two instances, want 4", passed)
	}
	g.post(callBody("probe_echo", `{}`)).wantOK(t)
}

// TestPredecessorSidecarURL: W-25: a host is compared whole, not by its
// beginning.
func TestPredecessorSidecarURL(t *testing.T) {
	for raw, ok := range map[string]bool{
		"http://localhost:1": true, "http://127.0.0.1:1": true, "http://[::1]:1": true, "https://gpu.example": true,
		"http://localhost.evil.tld": false, "http://127.0.0.1.evil.tld": false, "http://localhost@evil.tld": false, "http://gpu.example": false,
		"ftp://localhost": false, "": false,
	} {
		if err := router.CheckSidecarURL(raw); (err == nil) != ok {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestPredecessorCatalogue: B-1, B-5: no tool of ours can be called without a
// scope, and none escapes a list of tools that need an approval (B-30).
func TestPredecessorCatalogue(t *testing.T) {
	t.Parallel()
	tools, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	s := policy.Snapshot{Agent: policy.Agent{ID: "a", State: "active", Allowed: []string{"*"}, ApprovalRequired: []string{"*"}, ApprovalLife: time.Minute}, Edition: "enterprise"}
	for _, e := range tools.All() {
		for _, scopes := range [][]string{nil, {""}, {"nothing:read"}, {e.Category}, {e.Name}, {e.Category + "read"}, {strings.ToUpper(e.Category) + ":" + e.Action()}} {
			s.Caller = caller.Caller{Agent: "a", Scopes: scopes}
			if d := policy.Decide(s, e.Tool); d.Allowed {
				t.Errorf("%s is allowed with the scopes %q", e.Name, scopes)
			}
		}
		if _, because := policy.Weigh(s, e.Tool, []byte(`{}`)); because == "" {
			t.Errorf("%s needs no approval", e.Name)
		}
	}
}
