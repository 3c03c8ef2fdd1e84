package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/fault"
	"pawgate/internal/tool/tooltest"
)

type agentStatus struct {
	AgentID       string         `json:"agent_id"`
	State         string         `json:"state"`
	Stopped       bool           `json:"stopped"`
	Stops         []stopShown    `json:"stops"`
	ReportsTo     string         `json:"reports_to"`
	DirectReports int            `json:"direct_reports"`
	Keys          keyCounts      `json:"keys"`
	LastDay       map[string]int `json:"last_24h"`
	LastCalls     []callShown    `json:"last_calls"`
	LastErrors    []callShown    `json:"last_errors"`
	Queue         map[string]any `json:"queue"`
	CostToday     map[string]any `json:"cost_today"`
	Agenda        map[string]any `json:"agenda"`
}

type stopShown struct {
	Scope, Reason string
	Since         time.Time
}

type keyCounts struct {
	Active, Expired, Revoked int
	LastUsedAt               *time.Time `json:"last_used_at"`
}

type callShown struct {
	At                              time.Time
	Tool, Decision, Outcome, Reason string
	DurationMS                      float64 `json:"duration_ms"`
}

func TestAgentStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	used := noon.Add(-time.Hour)
	b.exec(t, `insert into api_keys (id, agent_id, hint, hash, expires_at, revoked_at, last_used_at) values
		('k1', 'lead', 'paw_test_SECRET', 'h1', null, null, $1),
		('k2', 'lead', 'paw_test_SECRET', 'h2', $2, null, null),
		('k3', 'lead', 'paw_test_SECRET', 'h3', null, $2, null),
		('k4', 'ceo', 'paw_test_SECRET', 'h4', null, null, null)`, used, noon)
	b.exec(t, `insert into stops (agent_id, reason, stopped_by, stopped_at, resumed_at) values
		('lead', 'looping', 'ceo', $1, null), (null, '', 'root', $2, null), ('lead', 'past', 'ceo', $1, $2)`, used, noon)
	b.exec(t, `insert into audit (seq, prev, hash, kind, id, at, request_id, door, agent_id, method, tool, decision, outcome, reason, duration_us, arguments) values
		(15, '', '', 'outcome', gen_random_uuid(), $1, 'r1', 'http', 'lead', 'tools/call', 'memory_search', 'allowed', 'ok', '', 1500, '{"query":"PRIVATE"}'),
		(16, '', '', 'outcome', gen_random_uuid(), $1, 'r7', 'http', 'lead', 'tools/call', 'send_message', 'allowed', 'fault', 'denied', 1000, null),
		(14, '', '', 'outcome', gen_random_uuid(), $2, 'r2', 'http', 'lead', 'tools/call', 'memory_store', 'allowed', 'fault', 'unavailable', 20, null),
		(13, '', '', 'outcome', gen_random_uuid(), $3, 'r3', 'http', 'lead', 'tools/call', 'odoo_search', 'refused', '', 'denied', 0, null),
		(12, '', '', 'outcome', gen_random_uuid(), $3, 'r4', 'http', 'lead', 'tools/list', '', 'allowed', 'ok', '', 0, null),
		(11, '', '', 'outcome', gen_random_uuid(), $3, 'r5', 'operator', 'lead', 'agent.allow', 'memory_*', 'allowed', 'ok', '', 0, null),
		(10, '', '', 'outcome', gen_random_uuid(), $1, 'r6', 'http', 'ceo', 'tools/call', 'memory_search', 'refused', '', 'denied', 0, null)`,
		noon.Add(-time.Minute), noon.Add(-time.Hour), noon.Add(-25*time.Hour))

	b.exec(t, `insert into work (id, kind, source, agent_id, from_agent, payload, root_id, state, run_at, lease_until, finished_at) values
		(gen_random_uuid(), 'prompt', 'send_to_agent', 'lead', 'ceo', '{}', gen_random_uuid(), 'queued', $1, null, null),
		(gen_random_uuid(), 'prompt', 'send_to_agent', 'lead', 'ceo', '{}', gen_random_uuid(), 'queued', $3, null, null),
		(gen_random_uuid(), 'prompt', 'send_to_agent', 'lead', 'ceo', '{}', gen_random_uuid(), 'running', $1, $3, null),
		(gen_random_uuid(), 'prompt', 'send_to_agent', 'lead', 'ceo', '{}', gen_random_uuid(), 'dead', $1, null, $1),
		(gen_random_uuid(), 'prompt', 'send_to_agent', 'lead', 'ceo', '{}', gen_random_uuid(), 'done', $2, null, $2),
		(gen_random_uuid(), 'prompt', 'send_to_agent', 'coder', 'lead', '{}', gen_random_uuid(), 'queued', $1, null, null)`,
		used, noon.Add(-25*time.Hour), noon.Add(time.Hour))
	b.exec(t, `insert into usage (at, agent_id, requests, cost_micros, source, source_id) values
		($1, 'lead', 2, 1500, 'loop', '1'), ($1, 'lead', 1, null, 'loop', '2'), ($2, 'lead', 1, 7, 'loop', '3'), ($1, 'ceo', 1, 9, 'loop', '4')`, used, noon.Add(-13*time.Hour))
	b.exec(t, `insert into schedules (id, agent_id, created_by, name, cron, timezone, task, next_slot, enabled) values
		('s1', 'lead', 'ceo', 'a', '', '', '', $1, true), ('s2', 'lead', 'ceo', 'b', '', '', '', $2, true), ('s3', 'lead', 'ceo', 'c', '', '', '', $3, false)`,
		noon.Add(2*time.Hour), noon.Add(time.Hour), noon)
	b.exec(t, `insert into reminders (id, agent_id, due_at, mode, channel, chat_id, state) values ('r1', 'lead', $1, 'direct', '', '', 'pending'), ('r2', 'lead', $1, 'direct', '', '', 'fired')`, noon)

	got := tooltest.OK[agentStatus](t, b.cat, tooltest.Who("ceo"), "agent_status", `{"agent_id":"lead"}`)
	want := agentStatus{
		AgentID: "lead", State: "active", ReportsTo: "ceo", DirectReports: 1,
		Stopped: true, Stops: []stopShown{{"agent", "looping", used}, {"all", "", noon}},
		Keys:    keyCounts{Active: 1, Expired: 1, Revoked: 1, LastUsedAt: &used},
		LastDay: map[string]int{"calls": 3, "refused": 1, "failed": 1},
		LastCalls: []callShown{
			{At: noon.Add(-time.Minute), Tool: "send_message", Decision: "allowed", Outcome: "fault", Reason: "denied", DurationMS: 1},
			{At: noon.Add(-time.Minute), Tool: "memory_search", Decision: "allowed", Outcome: "ok", DurationMS: 1.5},
			{At: noon.Add(-time.Hour), Tool: "memory_store", Decision: "allowed", Outcome: "fault", Reason: "unavailable", DurationMS: 0.02},
			{At: noon.Add(-25 * time.Hour), Tool: "odoo_search", Decision: "refused", Reason: "unknown_tool"},
		},
		LastErrors: []callShown{
			{At: noon.Add(-time.Minute), Tool: "send_message", Decision: "allowed", Outcome: "fault", Reason: "denied", DurationMS: 1},
			{At: noon.Add(-time.Hour), Tool: "memory_store", Decision: "allowed", Outcome: "fault", Reason: "unavailable", DurationMS: 0.02},
		},
		Queue:     map[string]any{"queued": 2., "running": 1., "oldest_at": "2026-12-01T11:00:00Z", "done_24h": 0., "dead_24h": 1.},
		CostToday: map[string]any{"since": "2026-12-01T00:00:00Z", "cost_micro_usd": 1500., "requests": 3., "unpriced": 1.},
		Agenda:    map[string]any{"schedules": 2., "next_at": "2026-12-01T13:00:00Z", "reminders": 1.},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	b.exec(t, `update agents set budget_cents = 500, heartbeat_enabled = false, fallback_model = 'second', created_by = 'ceo' where id = 'lead'`)
	text := string(tooltest.Call(t, b.cat, operator(), "agent_status", `{"agent_id":"lead"}`).OK)
	for _, part := range []string{`"budget_cents":500`, `"heartbeat_enabled":false`, `"fallback_model":"second"`, `"created_by":"ceo"`} {
		if !strings.Contains(text, part) {
			t.Errorf("the answer lacks %s: %s", part, text)
		}
	}
	if strings.Contains(text, "max_concurrent") || strings.Contains(text, `"soul"`) {
		t.Errorf("the answer tells what nobody has set: %s", text)
	}
	for _, secret := range []string{"SECRET", "PRIVATE", "h1"} {
		if strings.Contains(text, secret) {
			t.Errorf("the answer holds %q: %s", secret, text)
		}
	}
}

func TestAgentStatus_of_a_quiet_agent(t *testing.T) {
	t.Parallel()
	got := tooltest.OK[agentStatus](t, setup(t).cat, tooltest.Who("clerk"), "agent_status", `{"agent_id":"clerk"}`)
	want := agentStatus{
		AgentID: "clerk", State: "paused", ReportsTo: "ceo", Stops: []stopShown{},
		LastDay:   map[string]int{"calls": 0, "refused": 0, "failed": 0},
		LastCalls: []callShown{}, LastErrors: []callShown{},
		Queue:     map[string]any{"queued": 0., "running": 0., "done_24h": 0., "dead_24h": 0.},
		CostToday: map[string]any{"since": "2026-12-01T00:00:00Z", "cost_micro_usd": 0., "requests": 0., "unpriced": 0.},
		Agenda:    map[string]any{"schedules": 0., "reminders": 0.},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestAgentStatus_refusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// The sentence must not tell an agent that exists from one that does not.
	unseen := tooltest.Fault(t, b.cat, tooltest.Who("lead"), "agent_status", `{"agent_id":"ceo"}`, fault.NotFound)
	unknown := tooltest.Fault(t, b.cat, tooltest.Who("lead"), "agent_status", `{"agent_id":"who"}`, fault.NotFound)
	if a, b := strings.Replace(unseen.Message, "ceo", "X", 1), strings.Replace(unknown.Message, "who", "X", 1); a != b {
		t.Errorf("AUTH-04: the answers differ:\n%s\n%s", a, b)
	}
	tooltest.OK[agentStatus](t, b.cat, operator(), "agent_status", `{"agent_id":"ceo"}`)
	tooltest.Invalid(t, b.cat, tooltest.Who("lead"), "agent_status", `{}`, "agent_id")
	tooltest.Invalid(t, b.cat, tooltest.Who("lead"), "agent_status", `{"agent_id":"a\u0000b"}`, "agent_id")
}
