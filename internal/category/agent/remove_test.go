package agent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/roster"
	"pawgate/internal/tool/tooltest"
)

type gone struct {
	AgentID string `json:"agent_id"`
	State   string `json:"state"`
	Note    string `json:"note"`
	roster.Removal
}

// Removing says what becomes of everything, and it is so.
func TestAgentRemove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `insert into api_keys (id, agent_id, hint, hash, expires_at, revoked_at) values
		('k1', 'lead', '', 'h1', null, null), ('k2', 'lead', '', 'h2', $1, null), ('k3', 'lead', '', 'h3', null, $1)`, noon)
	b.exec(t, `insert into oauth_subjects (issuer, subject, agent_id) values ('i', 's', 'lead')`)
	b.exec(t, `insert into approvals (id, kind, agent_id, credential_id, tool, definition, arguments_hash, state, expires_at, covers_until) values
		('p1', 'call', 'lead', '', 'x', '', '', 'pending', now() + interval '1 hour', null),
		('p2', 'grant', 'lead', '', 'x', '', '', 'approved', now() - interval '1 hour', now() + interval '1 hour'),
		('p3', 'grant', 'lead', '', 'x', '', '', 'approved', now() - interval '1 hour', now() - interval '1 minute'),
		('p4', 'call', 'lead', '', 'x', '', '', 'used', now(), null),
		('p5', 'call', 'coder', '', 'x', '', '', 'pending', now() + interval '1 hour', null)`)
	b.exec(t, `insert into work (id, kind, source, agent_id, from_agent, payload, root_id, state, lease_until, finished_at)
		select gen_random_uuid(), 'prompt', 'send_to_agent', a, f, '{}', gen_random_uuid(), s, case when s = 'running' then now() end, case when s = 'done' then now() end
		from (values ('lead', 'ceo', 'queued'), ('lead', 'ceo', 'running'), ('lead', 'ceo', 'done'), ('coder', 'lead', 'queued')) w (a, f, s)`)
	b.exec(t, `insert into schedules (id, agent_id, created_by, name, cron, timezone, task) values
		('s1', 'lead', 'ceo', 'a', '', '', ''), ('s2', 'coder', 'lead', 'b', '', '', ''), ('s3', 'coder', 'coder', 'c', '', '', '')`)
	b.exec(t, `insert into reminders (id, agent_id, due_at, mode, channel, chat_id) values ('r1', 'lead', $1, 'direct', '', '')`, noon)
	got := tooltest.OK[gone](t, b.cat, tooltest.Who("ceo"), "agent_remove", `{"agent_id":"lead"}`)
	want := roster.Removal{MovedTo: "ceo", Moved: []string{"coder", "old"}, Keys: 1, Subjects: 1, Approvals: 1, Grants: 1, Work: 2, Schedules: 1, Orphaned: 1, Reminders: 1}
	if diff := cmp.Diff(want, got.Removal); diff != "" || got.State != "archived" {
		t.Errorf("%s, removal (-want +got):\n%s", got.State, diff)
	}
	states := b.text(t, `select string_agg(id || ' ' || state, ', ' order by id) from approvals`)
	if want := "p1 cancelled, p2 revoked, p3 revoked, p4 used, p5 pending"; states != want {
		t.Errorf("approvals are %s, want %s", states, want)
	}
	if n := b.number(t, `select count(*) from agents where reports_to = 'ceo' and id in ('coder', 'old') and version = 2`); n != 2 {
		t.Errorf("%d of 2 reports moved up", n)
	}
	if work := b.text(t, `select string_agg(agent_id || ' ' || state, ', ' order by agent_id, state) from work`); work != "coder queued, lead cancelled, lead cancelled, lead done" {
		t.Errorf("work is %s", work)
	}
	if on := b.text(t, `select string_agg(id, ' ' order by id) from schedules where enabled`); on != "s1 s3" {
		t.Errorf("schedules that are on: %s", on)
	}
	if n := b.number(t, `select count(*) from api_keys where agent_id = 'lead'`); n != 3 {
		t.Errorf("%d keys are left of 3: nothing is deleted", n)
	}
	tooltest.Fault(t, b.cat, tooltest.Who("ceo"), "agent_remove", `{"agent_id":"lead"}`, fault.Conflict)
}

func TestAgentRemove_refusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `update agents set role = 'main' where id = 'clerk'`)
	for _, c := range []struct {
		name, agent string
		who         caller.Caller
		want        fault.Reason
	}{
		{"itself", "coder", tooltest.Who("coder"), fault.Denied},
		{"AUTH-04_a_superior", "lead", tooltest.Who("coder"), fault.NotFound},
		{"AUTH-04_beside", "stranger", tooltest.Who("ceo"), fault.NotFound},
		{"unknown", "nobody", tooltest.Who("ceo"), fault.NotFound},
		{"path", "../lead", tooltest.Who("ceo"), fault.NotFound},
		{"role_main", "clerk", tooltest.Who("ceo"), fault.Denied},
		{"archived", "old", tooltest.Who("ceo"), fault.Conflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			tooltest.Fault(t, b.cat, c.who, "agent_remove", map[string]string{"agent_id": c.agent}, c.want)
		})
	}
	// The predecessor's guard of the main agent was sidestepped by taking its role first.
	tooltest.Fault(t, b.cat, tooltest.Who("ceo"), "agent_update", `{"agent_id":"clerk","role":"worker"}`, fault.Denied)
	tooltest.OK[gone](t, b.cat, operator(), "agent_remove", `{"agent_id":"clerk"}`)
}
