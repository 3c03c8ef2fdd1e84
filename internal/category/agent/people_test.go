package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/category/agent"
	"pawgate/internal/fault"
	"pawgate/internal/people"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

type paired struct {
	AgentID  string `json:"agent_id"`
	Changed  bool
	Code     string
	Note     string
	Pairings []people.Pairing
}

func approver() caller.Caller {
	who := tooltest.Who("lead")
	who.Scopes = append(who.Scopes, caller.ScopeApprove)
	return who
}

func (b bench) pair(t *testing.T, who caller.Caller, args string) paired {
	t.Helper()
	return tooltest.OK[paired](t, b.cat, who, "pairing_manage", args)
}

// An agent that a message talks into it lets nobody in; a person does.
func TestPairingManage_approval_takes_a_person(t *testing.T) {
	t.Parallel()
	b := setup(t)
	coder := tooltest.Who("coder")
	asked := b.pair(t, coder, `{"action":"approve","channel":"telegram","subject":12345}`)
	if !asked.Changed || asked.Pairings[0].State != "asked" || !strings.Contains(asked.Note, "pawgate pairing approve coder telegram 12345") {
		t.Errorf("an agent's approval: %+v", asked)
	}
	if again := b.pair(t, coder, `{"action":"approve","subject":"telegram:12345"}`); again.Changed || again.Pairings[0].State != "asked" {
		t.Errorf("again: %+v", again)
	}
	tooltest.Fault(t, b.cat, coder, "pairing_manage", `{"action":"generate","channel":"telegram","subject":"12345"}`, fault.Denied)
	if n := b.number(t, `select count(*) from pairings where state in ('approved', 'invited')`); n != 0 {
		t.Fatalf("an agent let %d in", n)
	}
	itself := approver()
	itself.Agent = "coder"
	if got := b.pair(t, itself, `{"action":"approve","channel":"telegram","subject":"12345"}`); got.Pairings[0].State != "asked" {
		t.Errorf("an agent with the scope approve let somebody in to itself: %+v", got)
	}
	done := b.pair(t, approver(), `{"action":"approve","agent_id":"coder","channel":"telegram","subject":"12345"}`)
	if done.Pairings[0].State != "approved" || done.Pairings[0].ChangedBy != "lead (test)" {
		t.Errorf("a person's approval: %+v", done)
	}
	// The same account of another channel is somebody else.
	if got := b.pair(t, coder, `{"action":"list","channel":"line"}`); len(got.Pairings) != 0 {
		t.Errorf("approved on another channel too: %+v", got)
	}
	if got := b.pair(t, coder, `{"action":"revoke","channel":"telegram","subject":"12345"}`); got.Pairings[0].State != "revoked" {
		t.Errorf("revoke: %+v", got)
	}
	if got := b.pair(t, coder, `{"action":"revoke","channel":"telegram","subject":"nobody"}`); got.Changed || got.Pairings[0].State != "none" {
		t.Errorf("revoke of nobody: %+v", got)
	}
}

func TestPairingManage_code(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := noon
	b.cat = agent.New(b.tx, func() time.Time { return now })
	invite := func() string {
		t.Helper()
		return b.pair(t, operator(), `{"action":"generate","agent_id":"coder","channel":"line","subject":"U1"}`).Code
	}
	redeem := func(code string) string {
		return fmt.Sprintf(`{"action":"redeem","channel":"line","subject":"U1","code":%q}`, code)
	}
	coder := tooltest.Who("coder")
	first := invite()
	code := invite()
	if first == code || len(code) != 9 {
		t.Fatalf("codes %q and %q", first, code)
	}
	if stored := b.text(t, `select encode(code, 'escape') || encode(salt, 'escape') from pairings`); strings.Contains(stored, strings.ReplaceAll(code, "-", "")) {
		t.Error("the code is stored in clear")
	}
	tooltest.Fault(t, b.cat, coder, "pairing_manage", redeem(first), people.WrongCode) // replaced
	if got := b.pair(t, coder, redeem(" "+strings.ToLower(code))); got.Pairings[0].State != "approved" {
		t.Errorf("redeem: %+v", got)
	}
	if got := b.pair(t, coder, redeem("AAAA-AAAA")); got.Changed || got.Pairings[0].State != "approved" {
		t.Errorf("once approved, a code changes nothing: %+v", got)
	}
	b.pair(t, coder, `{"action":"revoke","channel":"line","subject":"U1"}`)
	tooltest.Fault(t, b.cat, coder, "pairing_manage", redeem(code), people.WrongCode) // used

	code = invite()
	for range 5 {
		tooltest.Fault(t, b.cat, coder, "pairing_manage", redeem("AAAA-AAAA"), people.WrongCode)
	}
	tooltest.Fault(t, b.cat, coder, "pairing_manage", redeem(code), people.WrongCode) // void
	code = invite()                                                                   // a person can always make another
	now = now.Add(people.CodeLife)
	if got := b.pair(t, coder, `{"action":"list"}`); got.Pairings[0].State != "expired" {
		t.Errorf("list: %+v", got)
	}
	tooltest.Fault(t, b.cat, coder, "pairing_manage", redeem(code), people.WrongCode) // expired
}

func TestPairingManage_refusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ name, args, parameter string }{
		{"no_subject", `{"action":"approve","channel":"line"}`, "subject"},
		{"no_channel", `{"action":"approve","subject":"U1"}`, "channel"},
		{"unknown_channel", `{"action":"approve","channel":"fax","subject":"U1"}`, "channel"},
		{"no_code", `{"action":"redeem","channel":"line","subject":"U1"}`, "code"},
		{"unknown_action", `{"action":"grant","channel":"line","subject":"U1"}`, "action"},
		{"spaces", `{"action":"approve","channel":"line","subject":"U 1"}`, "subject"},
		{"invisible", `{"action":"approve","channel":"line","subject":"U\u200b1"}`, "subject"},
		{"MCP-17_nul", `{"action":"approve","channel":"line","subject":"\u0000"}`, "subject"},
	} {
		t.Run(c.name, func(t *testing.T) { tooltest.Invalid(t, b.cat, operator(), "pairing_manage", c.args, c.parameter) })
	}
	for _, action := range []string{"list", "approve", "revoke", "redeem", "generate"} {
		tooltest.Fault(t, b.cat, tooltest.Who("lead"), "pairing_manage", map[string]any{"action": action, "agent_id": "ceo", "channel": "line", "subject": "U1", "code": "x"}, fault.NotFound)
	}
	for action, want := range map[string]bool{"list": true, "revoke": true, "approve": false, "generate": false} {
		out := tooltest.Call(t, b.cat, operator(), "pairing_manage", map[string]any{"action": action, "agent_id": "old", "channel": "line", "subject": "U1"})
		if (out.OK != nil) != want {
			t.Errorf("%s of an archived agent: %+v", action, out)
		}
	}
	for i := range 20 {
		b.pair(t, tooltest.Who("coder"), fmt.Sprintf(`{"action":"approve","channel":"line","subject":"U%d"}`, i))
	}
	tooltest.Fault(t, b.cat, tooltest.Who("coder"), "pairing_manage", `{"action":"approve","channel":"line","subject":"U20"}`, "too_many_pending")
}

// However many guess at once, no more guesses are heard than are allowed.
func TestPairingManage_guesses_at_once(t *testing.T) {
	t.Parallel()
	cat := agent.New(clonePool(t), clock)
	tooltest.OK[paired](t, cat, operatorAs("boss"), "pairing_manage", `{"action":"generate","agent_id":"bot","channel":"line","subject":"U1"}`)
	heard := 0
	for _, out := range together(16, func(int) tool.Outcome {
		return tooltest.Call(t, cat, tooltest.Who("bot"), "pairing_manage", `{"action":"redeem","channel":"line","subject":"U1","code":"AAAA-AAAA"}`)
	}) {
		if out.Fault == nil || out.Fault.Reason != people.WrongCode {
			t.Fatalf("want %s, got %+v", people.WrongCode, out)
		}
		if strings.Contains(out.Fault.Message, "the code is wrong") {
			heard++
		}
	}
	if heard != 5 {
		t.Errorf("%d guesses were heard, want 5", heard)
	}
}

func operatorAs(agent string) caller.Caller {
	who := tooltest.Who(agent)
	who.Scopes = append(who.Scopes, caller.ScopeOperator)
	return who
}

type resolved struct {
	Found  bool
	Person *struct {
		PersonID    string   `json:"person_id"`
		DisplayName string   `json:"display_name"`
		Roles       []string `json:"roles"`
		ProjectIDs  []string `json:"project_ids"`
		Emails      []string
		Handles     map[string]string `json:"channel_handles"`
	}
}

func TestIdentityResolve(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `insert into people (id, display_name, roles, project_ids) values ('mei', '美 Mei', '{owner}', '{p1,p2}')`)
	b.exec(t, `insert into person_handles (channel, external_id, person_id) values ('telegram', '12345', 'mei'), ('email', 'mei@example.com', 'mei'), ('email', 'm@example.org', 'mei')`)
	who := tooltest.Who("coder")
	got := tooltest.OK[resolved](t, b.cat, who, "identity_resolve", `{"channel":"Telegram","external_id":12345}`)
	if !got.Found || got.Person.PersonID != "mei" || got.Person.DisplayName != "美 Mei" || cmp.Diff([]string{"p1", "p2"}, got.Person.ProjectIDs) != "" {
		t.Errorf("got %+v", got)
	}
	if got.Person.Emails != nil || got.Person.Handles != nil {
		t.Errorf("personal data that nobody asked for: %+v", got.Person)
	}
	got = tooltest.OK[resolved](t, b.cat, who, "identity_resolve", `{"channel":"email","external_id":"MEI@Example.com","fields":["emails","handles"]}`)
	if !got.Found || cmp.Diff([]string{"m@example.org", "mei@example.com"}, got.Person.Emails) != "" || got.Person.Handles["telegram"] != "12345" {
		t.Errorf("by address: %+v", got)
	}
	for _, args := range []string{`{"channel":"line","external_id":"12345"}`, `{"channel":"telegram","external_id":"1234"}`} {
		if got := tooltest.OK[resolved](t, b.cat, who, "identity_resolve", args); got.Found || got.Person != nil {
			t.Errorf("%s: %+v", args, got)
		}
	}
	tooltest.Invalid(t, b.cat, who, "identity_resolve", `{"channel":"fax","external_id":"1"}`, "channel")
	tooltest.Invalid(t, b.cat, who, "identity_resolve", `{"channel":"line","external_id":""}`, "external_id")
	tooltest.Invalid(t, b.cat, who, "identity_resolve", `{"channel":"line","external_id":"a\u0000"}`, "external_id")
}
