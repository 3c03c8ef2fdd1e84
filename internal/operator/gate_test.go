package operator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/licence"
	"pawgate/internal/operator"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
)

// exec changes the database behind the commands' back.
func (b bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.DB.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

func (b bench) text(sql string, args ...any) string {
	b.t.Helper()
	var s string
	if err := b.DB.QueryRow(b.t.Context(), sql, args...).Scan(&s); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return s
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

type rulesShown struct {
	Rules   []string
	Policy  json.RawMessage
	Changed bool
}

const twoRules = `
[[policy]]
tool = "odoo_execute"
effect = "forbid"
when = [{ arg = "query", op = "contains", value = "drop" }]
[[policy]]
tool = "memory_*"
effect = "ask"
`

func TestAgentRules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot","allow":["*"]}`)
	if got := ok[rulesShown](b, "agent rules", `{"agent_id":"bot"}`); len(got.Rules) != 0 || string(got.Policy) != "[]" || got.Changed {
		t.Errorf("a new agent: %+v", got)
	}
	want := []string{`1: forbid odoo_execute when query contains "drop"`, "2: ask memory_*"}
	set := ok[rulesShown](b, "agent rules", encode(t, map[string]any{"agent_id": "bot", "source": twoRules}))
	if diff := cmp.Diff(want, set.Rules); diff != "" || !set.Changed {
		t.Errorf("set, changed %t (-want +got):\n%s", set.Changed, diff)
	}
	again := ok[rulesShown](b, "agent rules", encode(t, map[string]any{"agent_id": "bot", "source": string(set.Policy)}))
	if diff := cmp.Diff(want, again.Rules); diff != "" || again.Changed {
		t.Errorf("what is shown can be set again, changed %t (-want +got):\n%s", again.Changed, diff)
	}
	if got := ok[rulesShown](b, "agent rules", `{"agent_id":"bot","remove":[1]}`); len(got.Rules) != 1 || got.Rules[0] != "1: ask memory_*" || !got.Changed {
		t.Errorf("one removed: %+v", got)
	}
	if got := b.text(`select rules::text from agents where id = 'bot'`); got != `[{"tool": "memory_*", "effect": "ask"}]` {
		t.Errorf("the gate reads %s", got)
	}
	ok[rulesShown](b, "agent rules", `{"agent_id":"bot","clear":true}`)
	if got := b.text(`select rules::text from agents where id = 'bot'`); got != `[]` {
		t.Errorf("cleared: %s", got)
	}
	if n := b.text(`select count(*) from audit where method = 'agent.rules' and agent_id = 'bot'`); n != "5" {
		t.Errorf("AUTH-24: %s of 5 commands are on record", n)
	}
}

// C37: what could only be ignored when it runs is refused when it is written.
func TestAgentRules_C37_refuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	for source, want := range map[string]string{
		`[{"tool":"memory_serch","effect":"forbid"}]`:                                                     "rule 1: there is no tool memory_serch",
		`[{"tool":"memory_*","effect":"forbid"},{"tool":"memory_search","effect":"stop"}]`:                "rule 2: effect must be",
		`[{"tool":"memory_search","effect":"ask","when":[{"arg":"limit","op":"gt","value":1}]}]`:          "there is no argument limit",
		`[{"tool":"memory_search","effect":"ask","when":[{"arg":"query","op":"gt","value":1}]}]`:          "can only compare it as a time",
		`[{"tool":"memory_search","effect":"allow","when":[{"arg":"query","op":"matches","value":"a"}]}]`: "begin with ^",
		"[[policy]]\ntool = 'memory_search'\neffect = 'ask'\nwehn = []\n":                                 "is no member of a rule",
		"nothing": "line 1",
	} {
		if got := b.fails("agent rules", encode(t, map[string]any{"agent_id": "bot", "source": source}), "source"); !strings.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", source, got, want)
		}
	}
	b.fails("agent rules", `{"agent_id":"bot","remove":[1]}`, "remove")
	b.fails("agent rules", `{"agent_id":"bot","clear":true,"remove":[1]}`, "source")
	b.fails("agent rules", `{"agent_id":"nobody"}`, "not_found")
}

func TestAgentImport_rules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	file := func(policy string) string {
		return encode(t, map[string]any{"replace": true, "source": "[agent]\nname = 'bot'\n[[capabilities.policy]]\n" + policy})
	}
	type imported struct {
		Rules        []string
		AllowedTools []string `json:"allowed_tools"`
		Notes        []struct{ Key, Text string }
	}
	got := ok[imported](b, "agent import", file("tool = 'mcp__duduclaw__memory_store'\neffect = 'forbid'\nwhen = [{arg='query', op='starts_with', value='x'}]\n"))
	if diff := cmp.Diff([]string{`1: forbid memory_store when query starts_with "x"`}, got.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	stored := `[{"tool": "memory_store", "when": [{"op": "starts_with", "arg": "query", "value": "x"}], "effect": "forbid"}]`
	if rules := b.text(`select rules::text from agents where id = 'bot'`); rules != stored {
		t.Errorf("the gate reads %s", rules)
	}
	ok[noted](b, "agent set", `{"agent_id":"bot","approver":"client","approval_minutes":30}`)
	for policy, want := range map[string]string{
		"tool = 'send_fax'\neffect = 'forbid'\n":                                                   "rule 1: there is no tool send_fax; change the rule, or remove it and deny its tool; nothing was imported",
		"tool = 'memory_store'\neffect = 'forbid'\nwhen = [{arg='to', op='equals', value='x'}]\n":  "there is no argument to",
		"tool = 'memory_store'\neffect = 'forbid'\nwhen = [{arg='query', op='like', value='x'}]\n": "op must be one of",
	} {
		if got := b.fails("agent import", file(policy), "source"); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if rules := b.text(`select rules::text from agents where id = 'bot'`); rules != stored {
		t.Errorf("a refused file changed the rules: %s", rules)
	}
	ok[imported](b, "agent import", file("tool = 'memory_*'\neffect = 'allow'\n"))
	if got := b.text(`select approver || ' ' || approval_life || ' ' || allowed_tools::text from agents where id = 'bot'`); got != "client 00:30:00 {memory_*}" {
		t.Errorf("after a replacement: %s", got)
	}
}

func TestAgentSet_approver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	type shown struct {
		Approver        string
		ApprovalMinutes int `json:"approval_minutes"`
		GrantMinutes    int `json:"grant_minutes"`
		Changed         bool
	}
	if got := ok[shown](b, "agent create", `{"agent_id":"bot"}`); got.Approver != "operator" || got.ApprovalMinutes != 15 || got.GrantMinutes != 60 {
		t.Errorf("a new agent: %+v", got)
	}
	if diff := cmp.Diff(shown{"client", 45, 5, true}, ok[shown](b, "agent set", `{"agent_id":"bot","approver":"client","approval_minutes":45,"grant_minutes":5}`)); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(shown{"none", 45, 5, true}, ok[shown](b, "agent set", `{"agent_id":"bot","approver":"none"}`)); diff != "" {
		t.Errorf("the rest stays (-want +got):\n%s", diff)
	}
	b.fails("agent set", `{"agent_id":"bot","approver":"anybody"}`, "approver")
	b.fails("agent set", `{"agent_id":"bot","approval_minutes":10081}`, "approval_minutes")
	for _, command := range []string{"agent ask", "agent scoped"} {
		ok[noted](b, command, `{"agent_id":"bot","patterns":["memory_store","odoo_*"]}`)
		ok[noted](b, command, `{"agent_id":"bot","patterns":["odoo_*"],"remove":true}`)
		b.fails(command, `{"agent_id":"bot","patterns":["memory_stroe"]}`, "patterns")
	}
	if got := b.text(`select approval_required_tools::text || scoped_tools::text || allowed_tools::text from agents where id = 'bot'`); got != "{memory_store}{memory_store}{}" {
		t.Errorf("lists: %s", got)
	}
}

func TestAgentLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	type line struct {
		Class     string
		Burst     float64
		PerMinute float64 `json:"per_minute"`
		Own       bool
	}
	type shown struct {
		Limits  []line
		Changed bool
	}
	usual := ok[shown](b, "agent limits", `{"agent_id":"bot"}`)
	if len(usual.Limits) != 6 || usual.Limits[3] != (line{"send", 20, 60, false}) || usual.Changed {
		t.Errorf("the usual ones: %+v", usual)
	}
	got := ok[shown](b, "agent limits", `{"agent_id":"bot","class":"send","burst":2}`)
	if got.Limits[3] != (line{"send", 2, 60, true}) || !got.Changed {
		t.Errorf("set: %+v", got)
	}
	if limits := b.text(`select limits::text from agents where id = 'bot'`); limits != `{"send": {"burst": 2, "per_minute": 60}}` {
		t.Errorf("the gate reads %s", limits)
	}
	ok[shown](b, "agent limits", `{"agent_id":"bot","class":"credential","per_minute":10,"burst":10}`)
	if got := ok[shown](b, "agent limits", `{"agent_id":"bot","class":"send","clear":true}`); got.Limits[3] != usual.Limits[3] || !got.Limits[0].Own {
		t.Errorf("one cleared: %+v", got)
	}
	if got := ok[shown](b, "agent limits", `{"agent_id":"bot","clear":true}`); got.Limits[0].Own || !got.Changed {
		t.Errorf("all cleared: %+v", got)
	}
	for args, parameter := range map[string]string{
		`{"agent_id":"bot","class":"fax","burst":1}`:                      "class",
		`{"agent_id":"bot","burst":1}`:                                    "class",
		`{"agent_id":"bot","class":"send"}`:                               "burst",
		`{"agent_id":"bot","class":"send","burst":1,"clear":true}`:        "clear",
		`{"agent_id":"bot","class":"send","per_minute":0}`:                "per_minute", // 0 would be no limit
		`{"agent_id":"bot","class":"send","burst":100000,"per_minute":1}`: "burst",
	} {
		b.fails("agent limits", args, parameter)
	}
}

// waits files a request of an agent.
func (b bench) waits(id, agent, kind, arguments string) {
	b.t.Helper()
	b.exec(`insert into approvals (id, kind, agent_id, credential_id, tool, definition, arguments_hash, arguments, because, expires_at)
		values ($1, $2, $3, 'k1', 'odoo_execute', '', '', $4, 'rule 1', clock_timestamp() + interval '15 minutes')`, id, kind, agent, arguments)
}

type decided struct {
	ApprovalID string `json:"approval_id"`
	State      string
	DecidedBy  string `json:"decided_by"`
	Reason     string
	Covers     json.RawMessage
	Changed    bool
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	ok[noted](b, "agent create", `{"agent_id":"cat"}`)
	b.waits("aone23", "bot", "call", `{"query":"a","limit":1}`)
	b.waits("atwo23", "bot", "call", `{"query":"b"}`)
	b.waits("athree", "cat", "call", `{}`)
	b.exec(`update approvals set expires_at = clock_timestamp() where id = 'athree'`)
	list := func(args string) []string {
		var ids []string
		for _, a := range ok[struct{ Approvals []decided }](b, "approval list", args).Approvals {
			ids = append(ids, a.ApprovalID+" "+a.State)
		}
		return ids
	}
	if diff := cmp.Diff([]string{"aone23 pending", "atwo23 pending"}, list(`{}`)); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	got := ok[decided](b, "approve", `{"approval_id":"aone","for_minutes":5,"same":["query"],"reason":"fine"}`)
	if got.State != "approved" || got.DecidedBy != "local:tester" || got.Reason != "fine" || !got.Changed || string(got.Covers) != `{"query":"a"}` {
		t.Errorf("approve: %+v", got)
	}
	if got := ok[decided](b, "deny", `{"approval_id":"atwo23","reason":"no"}`); got.State != "denied" || !got.Changed {
		t.Errorf("deny: %+v", got)
	}
	if got := ok[decided](b, "deny", `{"approval_id":"atwo23"}`); got.Changed {
		t.Errorf("a second time: %+v", got)
	}
	b.fails("approve", `{"approval_id":"atwo23"}`, "conflict")
	b.fails("approve", `{"approval_id":"athree"}`, "expired")
	b.fails("approve", `{"approval_id":"nothing"}`, "not_found")
	b.fails("approve", `{"approval_id":"aone23","for_minutes":5}`, "same")
	b.fails("approve", `{"approval_id":"aone23","for_minutes":5,"any":true,"same":["query"]}`, "any")
	if diff := cmp.Diff([]string{"atwo23 denied", "aone23 approved", "athree expired"}, list(`{"state":"all"}`)); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"athree expired"}, list(`{"agent_id":"cat","state":"expired"}`)); diff != "" {
		t.Errorf("of one agent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"aone23 approved"}, list(`{"state":"all","limit":1,"after":"atwo23"}`)); diff != "" {
		t.Errorf("the next page (-want +got):\n%s", diff)
	}
	if n := b.text(`select count(*) from audit where agent_id = 'bot' and method in ('approve', 'deny') and outcome = 'ok'`); n != "3" {
		t.Errorf("AUTH-24: %s of 3 decisions are on record", n)
	}
}

func TestApprove_any_arguments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.waits("aone23", "bot", "call", `{"query":"a"}`)
	if got := ok[decided](b, "approve", `{"approval_id":"aone23","for_minutes":60,"any":true}`); string(got.Covers) != `{}` {
		t.Errorf("covers %s", got.Covers)
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot","allow":["*"]}`)
	ok[noted](b, "agent scoped", `{"agent_id":"bot","patterns":["odoo_execute"]}`)
	b.waits("ggrant", "bot", "grant", `{"reason":"x"}`)
	b.waits("acall1", "bot", "call", `{"query":"a"}`)
	b.waits("acall2", "bot", "call", `{"query":"b"}`)
	b.waits("aopen1", "bot", "call", `{"query":"c"}`)
	ok[decided](b, "approve", `{"approval_id":"ggrant"}`)
	ok[decided](b, "approve", `{"approval_id":"acall1"}`)
	ok[decided](b, "approve", `{"approval_id":"acall2","for_minutes":5,"same":["query"]}`)
	type grants struct {
		Grants []struct {
			ApprovalID string `json:"approval_id"`
			Kind       string
			Covers     string
		}
	}
	var got []string
	for _, g := range ok[grants](b, "grant list", `{"agent_id":"bot"}`).Grants {
		got = append(got, g.ApprovalID+" "+g.Kind+" "+g.Covers)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"acall1 call one call", `acall2 call {"query": "b"}`, "ggrant grant any arguments"}, got); diff != "" {
		t.Errorf("alive (-want +got):\n%s", diff)
	}
	b.fails("grant revoke", `{"approval_id":"acall"}`, "ambiguous")
	b.fails("grant revoke", `{"approval_id":"aopen1"}`, "not_found")
	b.fails("grant revoke", `{"approval_id":" "}`, "approval_id")
	granted := func() string {
		return ok[explained](b, "agent explain", `{"agent_id":"bot","tool":"odoo_execute"}`).Step("scoped_tools")
	}
	if v := granted(); v != "passes a grant is alive" {
		t.Errorf("before: %s", v)
	}
	for _, id := range []string{"gg", "acall2", "acall1"} {
		if got := ok[decided](b, "grant revoke", `{"approval_id":"`+id+`","reason":"done"}`); got.State != "revoked" || !got.Changed {
			t.Errorf("revoke %s: %+v", id, got)
		}
	}
	if v := granted(); !strings.HasPrefix(v, "refuses") {
		t.Errorf("after: %s", v)
	}
	b.fails("grant revoke", `{"approval_id":"ggrant"}`, "not_found")
	if got := b.text(`select reason from approvals where id = 'ggrant'`); got != "revoked by local:tester: done" {
		t.Errorf("the record says %s", got)
	}
}

type broken struct {
	Chains, Rows int
	Broken       []struct {
		AgentID string `json:"agent_id"`
		Seq     int64
		Problem string
	}
}

func TestAuditVerify(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		ok[noted](b, "agent create", fmt.Sprintf(`{"agent_id":"bot%d"}`, time.Now().UnixNano()))
	}
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	for _, role := range []string{"a", "b", "c", "d"} {
		ok[noted](b, "agent set", `{"agent_id":"bot","role":"`+role+`"}`)
	}
	if got := ok[broken](b, "audit verify", `{}`); len(got.Broken) != 0 || got.Rows != 8 || got.Chains != 4 {
		t.Errorf("an untouched trail: %+v", got)
	}
	b.exec(`alter table audit disable trigger audit_append_only`)
	b.exec(`update audit set reason = 'nothing happened' where agent_id = 'bot' and seq = 2`)
	b.exec(`delete from audit where agent_id = 'bot' and seq = 4`)
	b.exec(`alter table audit enable trigger audit_append_only`)
	got := ok[broken](b, "audit verify", `{"agent_id":"bot"}`)
	var places []string
	for _, p := range got.Broken {
		places = append(places, fmt.Sprintf("%s %d %s", p.AgentID, p.Seq, p.Problem))
	}
	if diff := cmp.Diff([]string{"bot 2 the row was edited", "bot 5 rows before it are missing"}, places); diff != "" {
		t.Errorf("broken places (-want +got):\n%s", diff)
	}
}

func TestAuditPrune(t *testing.T) {
	t.Parallel()
	b := bench{t: t, Operator: operator.Operator{DB: postgrestest.Clone(t), Catalog: tools(t), Env: "test", By: "x", Now: time.Now}}
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.exec(`select audit_partition('2026-01-01')`)
	b.exec(`select audit_partition('2026-02-01')`)
	b.fails("audit prune", `{"before":"2999-01-01"}`, "before")
	b.fails("audit prune", `{"before":"soon"}`, "before")
	b.fails("audit prune", `{}`, "before")
	type pruned struct {
		Dropped []string
		Note    string
	}
	if got := ok[pruned](b, "audit prune", `{"before":"2026-02-28"}`); len(got.Dropped) != 1 || got.Dropped[0] != "audit_2026_01" {
		t.Errorf("a month that goes on stays: %+v", got)
	}
	if got := ok[pruned](b, "audit prune", `{"before":"2026-02-28"}`); len(got.Dropped) != 0 || got.Note == "" {
		t.Errorf("again: %+v", got)
	}
	if got := ok[broken](b, "audit verify", `{}`); len(got.Broken) != 0 {
		t.Errorf("what is left cannot be verified: %+v", got)
	}
}

func TestOAuth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	ok[noted](b, "agent create", `{"agent_id":"cat"}`)
	type mapped struct {
		Subject string
		AgentID string `json:"agent_id"`
		Scopes  []string
		Before  string `json:"agent_before"`
	}
	const alice = `"issuer":"https://login.example.com/","subject":"alice"`
	if diff := cmp.Diff(mapped{"alice", "bot", []string{"*:read"}, ""}, ok[mapped](b, "oauth map", `{`+alice+`,"agent_id":"bot"}`)); diff != "" {
		t.Errorf("map (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(mapped{"alice", "cat", []string{"approve", "memory:write"}, "bot"},
		ok[mapped](b, "oauth map", `{`+alice+`,"agent_id":"cat","scope":["memory:write","approve"]}`)); diff != "" {
		t.Errorf("map again (-want +got):\n%s", diff)
	}
	type listed struct{ Subjects []mapped }
	if got := ok[listed](b, "oauth list", `{}`).Subjects; len(got) != 1 || got[0].AgentID != "cat" {
		t.Errorf("list: %+v", got)
	}
	if got := ok[listed](b, "oauth list", `{"agent_id":"bot"}`).Subjects; len(got) != 0 {
		t.Errorf("of another agent: %+v", got)
	}
	for args, want := range map[string]string{
		`{"issuer":"login.example.com","subject":"a","agent_id":"bot"}`:                   "issuer",
		`{"issuer":"http://login.example.com","subject":"a","agent_id":"bot"}`:            "issuer",
		`{"issuer":"https://u:p@login.example.com","subject":"a","agent_id":"bot"}`:       "issuer",
		`{"issuer":"https://login.example.com?x=1","subject":"a","agent_id":"bot"}`:       "issuer",
		`{"issuer":"https://login.example.com","subject":"","agent_id":"bot"}`:            "subject",
		`{"issuer":"https://login.example.com","subject":"a","agent_id":"nobody"}`:        "not_found",
		`{"issuer":"https://l.example.com","subject":"a","agent_id":"bot","scope":["x"]}`: "scope",
	} {
		b.fails("oauth map", args, want)
	}
	ok[mapped](b, "oauth map", `{"issuer":"http://127.0.0.1:9000","subject":"a","agent_id":"bot"}`)
	ok[noted](b, "agent set", `{"agent_id":"bot","state":"archived"}`)
	b.fails("oauth map", `{`+alice+`,"agent_id":"bot"}`, "conflict")
	if got := ok[mapped](b, "oauth unmap", `{`+alice+`}`); got.AgentID != "cat" {
		t.Errorf("unmap: %+v", got)
	}
	b.fails("oauth unmap", `{`+alice+`}`, "not_found")
}

func TestMaintain(t *testing.T) {
	t.Parallel()
	b := bench{t: t, Operator: operator.Operator{DB: postgrestest.Clone(t), Catalog: tools(t), Env: "test", By: "x", Now: time.Now}}
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.exec(`insert into idempotency (agent_id, credential_id, key, tool, arguments_hash, started_at, deadline)
		select 'bot', 'k', n::text, 't', '', now() - n * interval '1 hour', now() from generate_series(20, 30) n`)
	b.exec(`insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, state, decided_at, created_at, expires_at, covers_until)
		values ('old', 'bot', 'k', 't', '', '', 'denied', now() - interval '31 days', now() - interval '32 days', now() - interval '31 days', null),
		       ('undecided', 'bot', 'k', 't', '', '', 'pending', null, now() - interval '32 days', now() - interval '31 days', null),
		       ('recent', 'bot', 'k', 't', '', '', 'denied', now() - interval '29 days', now() - interval '32 days', now() - interval '31 days', null),
		       ('alive', 'bot', 'k', 't', '', '', 'approved', now() - interval '31 days', now() - interval '32 days', now() - interval '31 days', now() + interval '1 day'),
		       ('waits', 'bot', 'k', 't', '', '', 'pending', null, now(), now() + interval '1 hour', null)`)
	b.exec(`insert into decisions (id, agent_id, question, options, state, expires_at)
		values ('gone', 'bot', 'q', '[]', 'open', now() - interval '31 days'), ('made', 'bot', 'q', '[]', 'resolved', now() - interval '31 days'), ('open', 'bot', 'q', '[]', 'open', now())`)
	b.exec(`insert into buckets values ('full', 1, true, now() - interval '25 hours'), ('used', 1, true, now())`)
	b.exec(`do $$ begin execute format('drop table %I', 'audit_' || to_char(now() + interval '2 months', 'YYYY_MM')); end $$`)
	want := operator.Maintained{Outcomes: 7, Approvals: 2, Decisions: 1, Buckets: 1, Partitions: 1}
	got, err := operator.Maintain(t.Context(), b.DB)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if left := b.text(`select string_agg(id, ' ' order by id) from approvals`); left != "alive recent waits" {
		t.Errorf("left: %s", left)
	}
	if diff := cmp.Diff(operator.Maintained{}, ok[operator.Maintained](b, "maintain", `{}`)); diff != "" {
		t.Errorf("a second time (-want +got):\n%s", diff)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := operator.Maintain(t.Context(), b.DB); err != nil {
				t.Errorf("side by side: %v", err)
			}
		})
	}
	wg.Wait()
}

// B-55: the licence's number of agents holds whichever way one is made.
func TestAgentCreate_B_55_licence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Licence = licence.Licence{Customer: "c", Edition: tool.Pro, Agents: 2, Issued: noon, NotBefore: noon, Expires: noon.AddDate(1, 0, 0)}
	ok[noted](b, "agent create", `{"agent_id":"a"}`)
	ok[noted](b, "agent create", `{"agent_id":"b"}`)
	b.fails("agent create", `{"agent_id":"c"}`, "edition")
	source := func(name string) string {
		return encode(t, map[string]any{"replace": true, "source": "[agent]\nname = '" + name + "'\n"})
	}
	b.fails("agent import", source("c"), "edition")
	ok[noted2](b, "agent import", source("b")) // it is there already
	ok[noted](b, "agent set", `{"agent_id":"a","state":"archived"}`)
	ok[noted](b, "agent create", `{"agent_id":"c"}`)
	b.Licence, b.LicenceError = licence.Licence{}, licence.ErrLicence
	b.fails("agent create", `{"agent_id":"d"}`, "not_configured")
	ok[map[string]any](b, "stop", `{}`)
}

type noted2 struct{ Created bool }

func TestEnsureDefault_asks_the_client(t *testing.T) {
	t.Parallel()
	tx := postgrestest.New(t)
	if _, err := operator.EnsureDefault(t.Context(), tx, "test"); err != nil {
		t.Fatal(err)
	}
	var approver string
	if err := tx.QueryRow(t.Context(), `select approver from agents where id = 'default'`).Scan(&approver); err != nil || approver != "client" {
		t.Errorf("approver %s, %v", approver, err)
	}
}
