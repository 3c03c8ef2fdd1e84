package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/category/agent"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
	"pawgate/internal/work"
)

type receipt struct {
	MessageID string `json:"message_id"`
	AgentID   string `json:"agent_id"`
	State     string `json:"state"`
	Depth     int    `json:"depth"`
	Note      string `json:"note"`
}

// item is a row of the queue.
type item struct {
	Agent, From, Source, Session, Notify string
	Payload                              work.Prompt
	Scopes, NarrowedBy                   []string
}

func (b bench) item(t *testing.T, id string) item {
	t.Helper()
	type row struct {
		AgentID, FromAgent, Source, Session, Notify, Payload string
		Scopes, NarrowedBy                                   []string
	}
	r, err := postgres.One[row](t.Context(), b.tx, `select agent_id, from_agent, source, session, coalesce(notify::text, '') as notify, payload::text as payload,
		scopes, narrowed_by from work where id = @id`, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		t.Fatal(err)
	}
	i := item{Agent: r.AgentID, From: r.FromAgent, Source: r.Source, Session: r.Session, Notify: r.Notify, Scopes: r.Scopes, NarrowedBy: r.NarrowedBy}
	if err := json.Unmarshal([]byte(r.Payload), &i.Payload); err != nil {
		t.Fatal(err)
	}
	return i
}

func TestSendToAgent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	who := tooltest.Who("lead")
	who.Scopes = []string{"agent:*"}
	got := tooltest.OK[receipt](t, b.cat, who, "send_to_agent", `{"agent_id":"coder","prompt":"write it","notify_channel":"telegram","notify_chat_id":"77"}`)
	if got.State != "queued" || got.AgentID != "coder" || got.Depth != 0 {
		t.Errorf("receipt %+v", got)
	}
	want := item{Agent: "coder", From: "lead", Source: "send_to_agent", Notify: `{"channel": "telegram", "chat_id": "77"}`,
		Payload: work.Prompt{Prompt: "write it"}, Scopes: []string{"agent:*"}, NarrowedBy: []string{}}
	if diff := cmp.Diff(want, b.item(t, got.MessageID)); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	// A superior does not lend its tools to those below it.
	up := tooltest.OK[receipt](t, b.cat, tooltest.Who("coder"), "send_to_agent", `{"agent_id":"ceo","prompt":"upwards, past the lead"}`)
	if i := b.item(t, up.MessageID); i.Source != work.Upwards || !slices.Equal(i.NarrowedBy, []string{"coder"}) || !strings.Contains(up.Note, "without tools") {
		t.Errorf("upwards: %+v, %q", i, up.Note)
	}
	if r := tooltest.OK[responses](t, b.cat, tooltest.Who("coder"), "check_responses", `{"agent_id":"ceo"}`); len(r.Responses) != 1 || r.Responses[0].MessageID != up.MessageID {
		t.Errorf("what was asked upwards is not there: %+v", r)
	}
	tooltest.Invalid(t, b.cat, who, "send_to_agent", `{"agent_id":"coder","prompt":" "}`, "prompt")
	tooltest.Invalid(t, b.cat, who, "send_to_agent", `{"agent_id":"coder","prompt":"x","notify_channel":"fax","notify_chat_id":"7"}`, "notify_channel")
	tooltest.Invalid(t, b.cat, who, "send_to_agent", `{"agent_id":"coder","prompt":"x","notify_channel":"telegram"}`, "notify_channel")
}

// TestDelegation: who may give work to whom.
func TestDelegation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, from, to string
		below, above   fault.Reason // "": allowed, for spawn_agent and send_to_agent
	}{
		{"to a report", "ceo", "lead", "", ""},
		{"to a report of a report", "ceo", "coder", "", ""},
		{"to a superior", "coder", "lead", fault.NotFound, ""},
		{"to itself", "lead", "lead", fault.Conflict, fault.Conflict},
		{"beside", "lead", "stranger", fault.NotFound, fault.NotFound},
		{"to nobody", "lead", "nobody", fault.NotFound, fault.NotFound},
		{"to a paused one", "ceo", "clerk", fault.Conflict, fault.Conflict},
		{"to an archived one", "ceo", "old", fault.Conflict, fault.Conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			try := func(tool, args string, reason fault.Reason) {
				t.Helper()
				if reason == "" {
					tooltest.OK[receipt](t, b.cat, tooltest.Who(c.from), tool, args)
					return
				}
				tooltest.Fault(t, b.cat, tooltest.Who(c.from), tool, args, reason)
			}
			try("spawn_agent", fmt.Sprintf(`{"agent_id":%q,"task":"x"}`, c.to), c.below)
			try("send_to_agent", fmt.Sprintf(`{"agent_id":%q,"prompt":"x"}`, c.to), c.above)
		})
	}
}

func TestDelegation_of_an_operator_and_to_a_stopped_one(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tooltest.OK[receipt](t, b.cat, operator(), "spawn_agent", `{"agent_id":"coder","task":"x"}`)
	b.exec(t, `insert into stops (agent_id, stopped_by) values ('coder', 'test')`)
	tooltest.Fault(t, b.cat, tooltest.Who("lead"), "send_to_agent", `{"agent_id":"coder","prompt":"x"}`, fault.Conflict)
}

func TestSpawnAgent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := tooltest.OK[receipt](t, b.cat, tooltest.Who("ceo"), "spawn_agent", `{"agent_id":"coder","task":"build","session_key":"release"}`)
	want := item{Agent: "coder", From: "ceo", Source: "spawn_agent", Session: "release", Payload: work.Prompt{Prompt: "build"},
		Scopes: tooltest.Who("ceo").Scopes, NarrowedBy: []string{"ceo"}}
	if diff := cmp.Diff(want, b.item(t, got.MessageID)); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	tooltest.Invalid(t, b.cat, tooltest.Who("ceo"), "spawn_agent", `{"agent_id":"coder","task":""}`, "task")
	large := fmt.Sprintf(`{"agent_id":"coder","task":%q}`, strings.Repeat("長", 50_000))
	tooltest.Fault(t, b.cat, tooltest.Who("ceo"), "spawn_agent", large, fault.TooLarge)
}

func TestWorkNeverCarriesAnOperatorsScopes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	who := operator()
	who.Scopes = append(who.Scopes, caller.ScopeApprove)
	got := tooltest.OK[receipt](t, b.cat, who, "send_to_agent", `{"agent_id":"coder","prompt":"x"}`)
	scopes := b.item(t, got.MessageID).Scopes
	if slices.Contains(scopes, caller.ScopeOperator) || slices.Contains(scopes, caller.ScopeApprove) {
		t.Errorf("scopes %v", scopes)
	}
}

// TestDelegationChain: a run's own requests are one hop further, and only while
// it runs.
func TestDelegationChain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := tooltest.OK[receipt](t, b.cat, tooltest.Who("ceo"), "spawn_agent", `{"agent_id":"lead","task":"x"}`)
	run := tooltest.Who("lead")
	run.Credential = work.Credential(uuid.MustParse(first.MessageID))
	tooltest.Fault(t, b.cat, run, "spawn_agent", `{"agent_id":"coder","task":"before it runs"}`, fault.Cancelled)
	b.exec(t, `update work set state = 'running', lease_until = now() + interval '1 minute'`)
	second := tooltest.OK[receipt](t, b.cat, run, "spawn_agent", `{"agent_id":"coder","task":"x"}`)
	if second.Depth != 1 {
		t.Errorf("depth %d", second.Depth)
	}
	if diff := cmp.Diff([]string{"ceo", "lead"}, slices.Sorted(slices.Values(b.item(t, second.MessageID).NarrowedBy))); diff != "" {
		t.Errorf("narrowed by (-want +got):\n%s", diff)
	}
	b.exec(t, `update work set depth = 5 where id = $1`, first.MessageID)
	tooltest.Fault(t, b.cat, run, "send_to_agent", `{"agent_id":"coder","prompt":"x"}`, work.TooDeep)
}

func TestSpawnEphemeral(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `update agents set approval_required_tools = '{memory_store}', scoped_tools = '{memory_forget}', rules = '[{"tool":"memory_*"}]', approver = 'none' where id = 'coder'`)
	got := tooltest.OK[receipt](t, b.cat, tooltest.Who("coder"), "spawn_ephemeral",
		`{"instruction":"You sum up.","context":"Sum this up.","tools":"[\"memory_search\",\"memory_store\"]","tier":"cheap"}`)
	want := item{Agent: got.AgentID, From: "coder", Source: "spawn_ephemeral", Payload: work.Prompt{System: "You sum up.", Prompt: "Sum this up.", Tier: "cheap"},
		Scopes: tooltest.Who("coder").Scopes, NarrowedBy: []string{"coder"}}
	if diff := cmp.Diff(want, b.item(t, got.MessageID)); diff != "" {
		t.Errorf("queued (-want +got):\n%s", diff)
	}
	type lists struct {
		ReportsTo, Approver, Rules                string
		AllowedTools, DeniedTools, Approval, Live []string
	}
	made, err := postgres.One[lists](t.Context(), b.tx, `select reports_to, approver, rules::text as rules, allowed_tools, denied_tools,
		approval_required_tools as approval, scoped_tools as live from agents where id = @id and ephemeral`, pgx.StrictNamedArgs{"id": got.AgentID})
	wantLists := lists{"coder", "none", `[{"tool": "memory_*"}]`, []string{"memory_search", "memory_store"}, []string{"odoo_*"}, []string{"memory_store"}, []string{"memory_forget"}}
	if diff := cmp.Diff(wantLists, made); err != nil || diff != "" {
		t.Errorf("%v, made (-want +got):\n%s", err, diff)
	}
}

func TestSpawnEphemeral_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, who, tools string
		reason           fault.Reason
	}{
		{"a tool that is not allowed", "coder", `["web_fetch"]`, fault.Denied},
		{"a tool that is denied", "coder", `["odoo_search"]`, fault.Denied},
		{"anything, of one that may call nothing", "lead", `["memory_search"]`, fault.Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			tooltest.Fault(t, b.cat, tooltest.Who(c.who), "spawn_ephemeral", fmt.Sprintf(`{"instruction":"x","context":"y","tools":%s}`, c.tools), c.reason)
		})
	}
}

func TestSpawnEphemeral_has_bounds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, args := range []string{`{"instruction":"x","context":"y","tools":[]}`, `{"instruction":"x","context":"y","tools":["*"]}`, `{"instruction":"x","context":"y","tools":["[\"a\"]"]}`} {
		tooltest.Invalid(t, b.cat, tooltest.Who("ceo"), "spawn_ephemeral", args, "tools")
	}
	tooltest.Invalid(t, b.cat, tooltest.Who("ceo"), "spawn_ephemeral", `{"instruction":"","context":"y","tools":["memory_search"]}`, "instruction")
	b.exec(t, `insert into agents (id, reports_to, ephemeral) select 'eph-' || n, 'ceo', true from generate_series(1, 32) n`)
	tooltest.Fault(t, b.cat, tooltest.Who("ceo"), "spawn_ephemeral", `{"instruction":"x","context":"y","tools":["memory_search"]}`, work.Runaway)
}

type responses struct {
	Responses []struct {
		MessageID string `json:"message_id"`
		State     string
		Response  string
		Cut       bool
		Error     string
	}
	NextCursor string `json:"next_cursor"`
}

func TestCheckResponses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for n := range 3 {
		ids = append(ids, tooltest.OK[receipt](t, b.cat, tooltest.Who("lead"), "send_to_agent", fmt.Sprintf(`{"agent_id":"coder","prompt":"%d"}`, n)).MessageID)
	}
	others := tooltest.OK[receipt](t, b.cat, tooltest.Who("ceo"), "send_to_agent", `{"agent_id":"coder","prompt":"secret"}`).MessageID
	b.exec(t, `update work set created_at = now() - n * interval '1 minute' from unnest($1::uuid[]) with ordinality as l (id, n) where work.id = l.id`, ids)
	long := strings.Repeat("長", 3000)
	b.exec(t, `update work set state = 'done', result = $2, finished_at = now() where id = $1`, ids[0], long)
	b.exec(t, `update work set state = 'dead', error = 'no model', finished_at = now() where id = $1`, ids[1])
	b.exec(t, `update work set state = 'done', result = 'SECRET', finished_at = now() where id = $1`, others)

	var got []string
	args := map[string]any{"agent_id": "coder", "limit": 2}
	for range 3 {
		page := tooltest.OK[responses](t, b.cat, tooltest.Who("lead"), "check_responses", args)
		for _, r := range page.Responses {
			got = append(got, fmt.Sprintf("%s %s %d %v %s", r.MessageID, r.State, len([]rune(r.Response)), r.Cut, r.Error))
		}
		if page.NextCursor == "" {
			break
		}
		args["cursor"] = page.NextCursor
	}
	want := []string{ids[0] + " done 2000 true ", ids[1] + " dead 0 false no model", ids[2] + " queued 0 false "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("responses over all pages (-want +got):\n%s", diff)
	}
	whole := tooltest.OK[responses](t, b.cat, tooltest.Who("lead"), "check_responses", fmt.Sprintf(`{"agent_id":"coder","message_id":%q}`, ids[0]))
	if len(whole.Responses) != 1 || whole.Responses[0].Response != long || whole.Responses[0].Cut {
		t.Errorf("one in full: %d", len(whole.Responses))
	}
	tooltest.Fault(t, b.cat, tooltest.Who("lead"), "check_responses", fmt.Sprintf(`{"agent_id":"coder","message_id":%q}`, others), fault.NotFound)
	if all := tooltest.OK[responses](t, b.cat, operator(), "check_responses", `{"agent_id":"coder"}`); len(all.Responses) != 4 {
		t.Errorf("an operator sees %d", len(all.Responses))
	}
	tooltest.Invalid(t, b.cat, tooltest.Who("lead"), "check_responses", `{"agent_id":"coder","limit":51}`, "limit")
	tooltest.Invalid(t, b.cat, tooltest.Who("lead"), "check_responses", `{"agent_id":"coder","cursor":"x"}`, "cursor")
	tooltest.Invalid(t, b.cat, tooltest.Who("lead"), "check_responses", `{"agent_id":"coder","message_id":"x"}`, "message_id")
}

// TestTold: whoever does the work hears of it at once, after it is there.
func TestTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	told := 0
	cat := agent.With(b.tx, func() time.Time { return noon }, agent.Options{Tell: func(context.Context) { told++ }})
	tooltest.OK[receipt](t, cat, tooltest.Who("lead"), "send_to_agent", `{"agent_id":"coder","prompt":"x"}`)
	tooltest.Fault(t, cat, tooltest.Who("lead"), "send_to_agent", `{"agent_id":"nobody","prompt":"x"}`, fault.NotFound)
	if told != 1 {
		t.Errorf("told %d times", told)
	}
}

// LAM-01: behind a transaction pooler the types of parameters are guessed from
// Go's, so every statement is run that way once.
func TestLAM_01_delegation_pooled(t *testing.T) {
	t.Parallel()
	db := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), Pooled: true})
	if _, err := db.Exec(t.Context(), `insert into agents (id, reports_to, allowed_tools) values ('lead', null, '{*}'), ('coder', 'lead', '{}')`); err != nil {
		t.Fatal(err)
	}
	cat := agent.New(db, func() time.Time { return noon })
	sent := tooltest.OK[receipt](t, cat, tooltest.Who("lead"), "send_to_agent", `{"agent_id":"coder","prompt":"x","notify_channel":"line","notify_chat_id":"8"}`)
	tooltest.OK[receipt](t, cat, tooltest.Who("lead"), "spawn_agent", `{"agent_id":"coder","task":"x"}`)
	tooltest.OK[receipt](t, cat, tooltest.Who("lead"), "spawn_ephemeral", `{"instruction":"x","context":"y","tools":["memory_search"]}`)
	for _, args := range []string{`{"agent_id":"coder"}`, `{"agent_id":"coder","message_id":"` + sent.MessageID + `"}`} {
		tooltest.OK[responses](t, cat, tooltest.Who("lead"), "check_responses", args)
	}
}
