package operator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type queueShown struct {
	Work []struct {
		ID, State, Source, Attempts, Error string
		Agent                              string `json:"agent_id"`
		From                               string `json:"from_agent"`
	}
	Next string `json:"next_after"`
}

func (q queueShown) states() []string {
	list := []string{}
	for _, w := range q.Work {
		list = append(list, w.Agent+" "+w.State+" "+w.Attempts+" "+w.Error)
	}
	return list
}

func TestQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"boss"}`)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	const dead = "00000000-0000-7000-8000-000000000001"
	b.exec(`insert into work (id, kind, source, agent_id, from_agent, payload, root_id, state, attempts, error, finished_at, created_at) values
		($1, 'prompt', 'send_to_agent', 'bot', 'boss', '{"prompt":"x"}', $1, 'dead', 3, 'no model', now(), now() - interval '3 minutes'),
		('00000000-0000-7000-8000-000000000002', 'prompt', 'schedule', 'bot', 'bot', '{}', $1, 'done', 1, '', now(), now() - interval '2 minutes'),
		('00000000-0000-7000-8000-000000000003', 'prompt', 'schedule', 'boss', 'boss', '{}', $1, 'queued', 0, '', null, now() - interval '1 minute')`, dead)
	for args, want := range map[string][]string{
		`{}`:                  {"boss queued 0/3 ", "bot dead 3/3 no model"},
		`{"state":"done"}`:    {"bot done 1/3 "},
		`{"agent_id":"boss"}`: {"boss queued 0/3 ", "bot dead 3/3 no model"},
		`{"state":"all","after":"00000000-0000-7000-8000-000000000002"}`: {"bot dead 3/3 no model"},
	} {
		if diff := cmp.Diff(want, ok[queueShown](b, "queue list", args).states()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
	if page := ok[queueShown](b, "queue list", `{"limit":1}`); len(page.Work) != 1 || page.Next != page.Work[0].ID {
		t.Errorf("a page: %+v", page)
	}
	again := ok[struct{ ID, State string }](b, "queue retry", `{"id":"`+dead+`"}`)
	if again.State != "queued" || again.ID == dead {
		t.Errorf("queued again: %+v", again)
	}
	b.fails("queue retry", `{"id":"`+again.ID+`"}`, "not_found")
	b.fails("queue retry", `{"id":"x"}`, "id")
	b.fails("queue list", `{"after":"x"}`, "after")
}

func TestScheduleList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.exec(`insert into schedules (id, agent_id, created_by, name, cron, timezone, task, next_slot) values
		('s1', 'bot', 'bot', 'a', '0 9 * * *', 'UTC', 'x', now()), ('s2', 'bot', 'bot', 'b', '0 9 * * *', 'UTC', 'x', null)`)
	type list struct {
		Tasks []struct{ Name, State string }
		Next  string `json:"next_after"`
	}
	got := ok[list](b, "schedule list", `{"agent_id":"bot","limit":1}`)
	if len(got.Tasks) != 1 || got.Tasks[0].State != "active" || got.Next != "s1" {
		t.Errorf("first page: %+v", got)
	}
	if got = ok[list](b, "schedule list", `{"after":"s1"}`); len(got.Tasks) != 1 || got.Tasks[0].State != "finished" {
		t.Errorf("second page: %+v", got)
	}
}

func TestMaintainWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.exec(`insert into work (id, kind, source, agent_id, from_agent, payload, root_id, state, finished_at)
		select gen_random_uuid(), 'prompt', 'x', 'bot', 'bot', '{}', gen_random_uuid(), 'done', now() - n * interval '1 day' from unnest('{29,31}'::int[]) n`)
	b.exec(`insert into schedules (id, agent_id, created_by, name, cron, timezone, task, next_slot, updated_at) values
		('s1', 'bot', 'bot', 'over', '@at 2020-01-01T00:00:00Z', 'UTC', 'x', null, now() - interval '31 days'),
		('s2', 'bot', 'bot', 'daily', '0 9 * * *', 'UTC', 'x', now(), now() - interval '31 days')`)
	b.exec(`insert into firings (schedule_id, slot, state, fired_at) values ('s2', now(), 'queued', now() - interval '31 days'), ('s2', now() - interval '1 day', 'queued', now())`)
	b.exec(`insert into reminders (id, agent_id, due_at, mode, channel, chat_id, state, ended_at) values
		('r1', 'bot', now(), 'direct', 'line', '8', 'fired', now() - interval '31 days'), ('r2', 'bot', now(), 'direct', 'line', '8', 'fired', now())`)
	got := ok[struct{ Work, Slots, Schedules, Reminders int }](b, "maintain", `{}`)
	if got.Work != 1 || got.Slots != 1 || got.Schedules != 1 || got.Reminders != 1 {
		t.Errorf("removed %+v, want one of each", got)
	}
}
