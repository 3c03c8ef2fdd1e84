package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
	"pawgate/internal/work"
)

type cronShown struct {
	ID, Name string
	AgentID  string `json:"agent_id"`
	Cron     string
	Timezone string `json:"cron_timezone"`
	Enabled  bool
	NextRuns []string `json:"next_runs"`
	Note     string
}

type cronList struct {
	Tasks []struct {
		ID, Name, State, Cron string
		AgentID               string     `json:"agent_id"`
		NextRun               *time.Time `json:"next_run"`
		LastState             string     `json:"last_state"`
		LastError             string     `json:"last_error"`
		LastDelivery          string     `json:"last_delivery"`
		Runs, Failures        int
	}
	NextCursor string `json:"next_cursor"`
}

func (l cronList) names() []string {
	names := []string{}
	for _, t := range l.Tasks {
		names = append(names, t.AgentID+"/"+t.Name)
	}
	return names
}

// daily makes a schedule and gives its id.
func daily(t *testing.T, cat tool.Category, who caller.Caller, agent, name string) string {
	t.Helper()
	return tooltest.OK[cronShown](t, cat, who, "schedule_task",
		fmt.Sprintf(`{"cron":"0 9 * * *","task":"report","name":%q,"agent_id":%q,"cron_timezone":"UTC"}`, name, agent)).ID
}

func TestScheduleTask(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	got := tooltest.OK[cronShown](t, cat, tooltest.Who("lead"), "schedule_task",
		`{"cron":"0  9 * * 1","task":"report","name":"monday","cron_timezone":"Asia/Taipei","notify_channel":"telegram","notify_chat_id":"7"}`)
	want := cronShown{ID: got.ID, Name: "monday", AgentID: "lead", Cron: "0 9 * * 1", Timezone: "Asia/Taipei", Enabled: true, NextRuns: []string{
		"2026-12-07T09:00:00+08:00", "2026-12-14T09:00:00+08:00", "2026-12-21T09:00:00+08:00", "2026-12-28T09:00:00+08:00", "2027-01-04T09:00:00+08:00"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CRON-05 made (-want +got):\n%s", diff)
	}
	// At noon, a slot of nine o'clock is tomorrow's: what is over is not made up for.
	utc := tooltest.OK[cronShown](t, cat, tooltest.Who("lead"), "schedule_task", `{"cron":"0 9 * * *","task":"report","name":"daily"}`)
	t.Run("K-94 without a zone it says UTC", func(t *testing.T) {
		if utc.NextRuns[0] != "2026-12-02T09:00:00Z" || utc.Timezone != "UTC" || !strings.Contains(utc.Note, "UTC") {
			t.Errorf("made %+v", utc)
		}
	})
	tooltest.Fault(t, cat, tooltest.Who("lead"), "schedule_task", `{"cron":"0 9 * * *","task":"report","name":"daily"}`, fault.Conflict)
}

func TestScheduleTask_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, parameter string }{
		{"CRON-03 a day that never comes", `{"cron":"0 0 30 2 *","task":"x","name":"n"}`, "cron"},
		{"CRON-04 step 0", `{"cron":"*/0 * * * *","task":"x","name":"n"}`, "cron"},
		{"CRON-06 Quartz", `{"cron":"0 0 15 ? * 2","task":"x","name":"n"}`, "cron"},
		{"CRON-11 TZ=0", `{"cron":"TZ=0","task":"x","name":"n"}`, "cron"},
		{"CRON-12 misspelt zone", `{"cron":"0 9 * * *","task":"x","name":"n","cron_timezone":"Asia/Tapei"}`, "cron_timezone"},
		{"CRON-12 an empty zone is not UTC", `{"cron":"0 9 * * *","task":"x","name":"n","cron_timezone":""}`, "cron_timezone"},
		{"no task", `{"cron":"0 9 * * *","task":" ","name":"n"}`, "task"},
		{"no name", `{"cron":"0 9 * * *","task":"x","name":""}`, "name"},
		{"two lines", `{"cron":"0 9 * * *","task":"x","name":"a\nb"}`, "name"},
		{"a channel that there is not", `{"cron":"0 9 * * *","task":"x","name":"n","notify_channel":"fax","notify_chat_id":"7"}`, "notify_channel"},
		{"a thread of nothing", `{"cron":"0 9 * * *","task":"x","name":"n","notify_thread_id":"7"}`, "notify_channel"},
		{"half an address", `{"cron":"0 9 * * *","task":"x","name":"n","notify_chat_id":"7"}`, "notify_channel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tooltest.Invalid(t, setup(t, postgrestest.New(t)), tooltest.Who("lead"), "schedule_task", c.args, c.parameter)
		})
	}
}

func TestScheduleTask_has_bounds(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	for _, agent := range []string{"ceo", "stranger", "nobody"} {
		tooltest.Fault(t, cat, tooltest.Who("lead"), "schedule_task", fmt.Sprintf(`{"cron":"0 9 * * *","task":"x","name":"n","agent_id":%q}`, agent), fault.NotFound)
	}
	exec(t, db, `insert into schedules (id, agent_id, created_by, name, cron, timezone, task, next_slot)
		select 's' || n, 'coder', 'lead', 's' || n, '0 9 * * *', 'UTC', 'x', now() from generate_series(1, 100) n`)
	tooltest.Fault(t, cat, tooltest.Who("lead"), "schedule_task", `{"cron":"0 9 * * *","task":"x","name":"n"}`, fault.TooLarge)
}

// TestScheduleTask_once: what was for once is in nobody's way when it is over,
// neither by its name nor by its number, and stays to be seen until then.
func TestScheduleTask_once(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	const once = `{"cron":"@at 2026-12-24T09:00:00Z","task":"x","name":"call"}`
	lead := tooltest.Who("lead")
	first := tooltest.OK[cronShown](t, cat, lead, "schedule_task", once).ID
	tooltest.Fault(t, cat, lead, "schedule_task", once, fault.Conflict)
	exec(t, db, `update schedules set next_slot = null`) // it has had its slot, and runs
	work := uuid.New()
	exec(t, db, `insert into work (id, kind, source, agent_id, from_agent, payload, root_id) values ($1, 'prompt', 'schedule', 'lead', 'lead', '{}', $1)`, work)
	exec(t, db, `insert into firings (schedule_id, slot, state, work_id) values ($1, now(), 'queued', $2)`, first, work)
	tooltest.Fault(t, cat, lead, "schedule_task", once, fault.Conflict)
	exec(t, db, `update work set state = 'done', finished_at = now()`)
	tooltest.Fault(t, cat, tooltest.Who("ceo"), "schedule_task", `{"cron":"0 9 * * *","task":"x","name":"call","agent_id":"lead"}`, fault.Conflict) // not the ceo's to clear
	if again := tooltest.OK[cronShown](t, cat, lead, "schedule_task", once).ID; again == first {
		t.Error("the old one came back")
	}
	if got := tooltest.OK[cronList](t, cat, lead, "list_cron_tasks", `{}`); len(got.Tasks) != 1 || got.Tasks[0].State != "active" {
		t.Errorf("listed %+v", got)
	}
	exec(t, db, `insert into schedules (id, agent_id, created_by, name, cron, timezone, task)
		select 's' || n, 'lead', 'lead', 's' || n, '@at 2026-11-24T09:00:00Z', 'UTC', 'x' from generate_series(1, 100) n`)
	daily(t, cat, lead, "lead", "one more")
}

// TestCronOwnership: whoever made a schedule, or stands above, changes it, and
// nobody else learns that it is there.
func TestCronOwnership(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		who  caller.Caller
		want fault.Reason
	}{
		{tooltest.Who("lead"), ""}, {tooltest.Who("ceo"), ""}, {operator(), ""},
		{tooltest.Who("coder"), fault.NotFound}, {tooltest.Who("stranger"), fault.NotFound},
	} {
		for _, call := range []struct{ tool, args string }{
			{"update_cron_task", `"task":"new"`}, {"pause_cron_task", `"enabled":false`}, {"run_cron_task", ``}, {"delete_cron_task", ``},
		} {
			t.Run(c.who.Agent+" "+call.tool, func(t *testing.T) {
				t.Parallel()
				cat := setup(t, postgrestest.New(t))
				id := daily(t, cat, tooltest.Who("lead"), "coder", "n")
				args := strings.TrimSuffix(fmt.Sprintf(`{"id":%q,%s`, id, call.args), ",") + "}"
				if c.want != "" {
					tooltest.Fault(t, cat, c.who, call.tool, args, c.want)
					return
				}
				tooltest.OK[struct{ ID string }](t, cat, c.who, call.tool, args)
			})
		}
	}
}

func TestCronByName(t *testing.T) {
	t.Parallel()
	cat := setup(t, postgrestest.New(t))
	daily(t, cat, tooltest.Who("ceo"), "lead", "twice")
	daily(t, cat, tooltest.Who("ceo"), "coder", "twice")
	daily(t, cat, tooltest.Who("coder"), "coder", "own")
	tooltest.Fault(t, cat, tooltest.Who("ceo"), "delete_cron_task", `{"name":"twice"}`, fault.Conflict)
	if got := tooltest.OK[cronList](t, cat, tooltest.Who("ceo"), "list_cron_tasks", `{}`); len(got.Tasks) != 3 {
		t.Errorf("after a name that was not clear: %v", got.names())
	}
	mine := daily(t, cat, tooltest.Who("ceo"), "ceo", "twice")
	if got := tooltest.OK[cronShown](t, cat, tooltest.Who("ceo"), "delete_cron_task", `{"name":"twice"}`); got.ID != mine {
		t.Errorf("one's own comes first: %+v", got)
	}
	for _, tool := range []string{"update_cron_task", "delete_cron_task", "pause_cron_task", "run_cron_task"} {
		tooltest.Invalid(t, cat, tooltest.Who("ceo"), tool, `{}`, "id")
		tooltest.Invalid(t, cat, tooltest.Who("ceo"), tool, `{"id":"a","name":"b"}`, "id")
	}
}

func TestUpdateCronTask(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	lead := tooltest.Who("lead")
	id := daily(t, cat, lead, "lead", "n")
	daily(t, cat, lead, "lead", "taken")
	got := tooltest.OK[cronShown](t, cat, lead, "update_cron_task", fmt.Sprintf(`{"id":%q,"cron":"0 13 * * *","new_name":"m","cron_timezone":"Europe/Berlin"}`, id))
	if got.Name != "m" || got.NextRuns[0] != "2026-12-02T13:00:00+01:00" {
		t.Errorf("changed %+v", got) // noon UTC is one o'clock in Berlin: today's slot is this moment
	}
	row, err := postgres.One[struct {
		Task     string
		NextSlot time.Time
	}](t.Context(), db, `select task, next_slot from schedules where id = @id`, pgx.StrictNamedArgs{"id": id})
	if err != nil || row.Task != "report" || !row.NextSlot.Equal(time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)) {
		t.Errorf("stored %+v, %v", row, err)
	}
	tooltest.Invalid(t, cat, lead, "update_cron_task", `{"name":"m","cron":"0 0 31 4 *"}`, "cron")
	tooltest.Invalid(t, cat, lead, "update_cron_task", `{"name":"m"}`, "cron")
	tooltest.Invalid(t, cat, lead, "update_cron_task", `{"name":"m","task":""}`, "task")
	tooltest.Invalid(t, cat, lead, "update_cron_task", `{"name":"m","new_name":" "}`, "new_name")
	tooltest.Fault(t, cat, lead, "update_cron_task", `{"name":"m","new_name":"taken"}`, fault.Conflict)
}

func TestPauseCronTask(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	lead := tooltest.Who("lead")
	daily(t, cat, lead, "lead", "n")
	if got := tooltest.OK[cronShown](t, cat, lead, "pause_cron_task", `{"name":"n"}`); got.Enabled || len(got.NextRuns) != 0 {
		t.Errorf("paused %+v", got)
	}
	exec(t, db, `update schedules set next_slot = $1`, noon.Add(-7*24*time.Hour))
	if got := tooltest.OK[cronList](t, cat, lead, "list_cron_tasks", `{}`); got.Tasks[0].State != "paused" || got.Tasks[0].NextRun != nil {
		t.Errorf("listed %+v", got)
	}
	if got := tooltest.OK[cronList](t, cat, lead, "list_cron_tasks", `{"enabled_only":"true"}`); len(got.Tasks) != 0 {
		t.Errorf("enabled only %+v", got)
	}
	got := tooltest.OK[cronShown](t, cat, lead, "pause_cron_task", `{"name":"n","enabled":"true"}`)
	if !got.Enabled || got.NextRuns[0] != "2026-12-02T09:00:00Z" {
		t.Errorf("resumed %+v", got)
	}
	if got := tooltest.OK[cronList](t, cat, lead, "list_cron_tasks", `{}`); !got.Tasks[0].NextRun.After(noon) {
		t.Errorf("what was due while it was paused is made up for: %+v", got)
	}
	tooltest.Invalid(t, cat, lead, "pause_cron_task", `{"name":"n","enabled":"yes"}`, "enabled")
}

func TestRunCronTask(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	daily(t, cat, tooltest.Who("lead"), "coder", "n")
	ran := tooltest.OK[struct {
		RunID string `json:"run_id"`
		State string
	}](t, cat, tooltest.Who("ceo"), "run_cron_task", `{"name":"n"}`)
	item, err := postgres.One[struct {
		AgentID, FromAgent, Lane string
		NarrowedBy               []string
	}](t.Context(), db, `select agent_id, from_agent, lane, narrowed_by from work where id = @id`, pgx.StrictNamedArgs{"id": ran.RunID})
	if err != nil || item.AgentID != "coder" || item.FromAgent != "lead" || len(item.NarrowedBy) != 2 || !strings.HasPrefix(item.Lane, "schedule/") {
		t.Errorf("queued %+v, %v", item, err)
	}
	tooltest.Fault(t, cat, tooltest.Who("lead"), "run_cron_task", `{"name":"n"}`, fault.InProgress)
	exec(t, db, `update work set state = 'dead', error = 'no model', finished_at = now()`)
	got := tooltest.OK[cronList](t, cat, tooltest.Who("lead"), "list_cron_tasks", `{}`).Tasks[0]
	if got.LastDelivery != "" || got.LastState != "dead" || got.LastError != "no model" || got.Runs != 1 || got.Failures != 1 {
		t.Errorf("listed %+v", got)
	}
	tooltest.OK[struct{}](t, cat, tooltest.Who("lead"), "run_cron_task", `{"name":"n"}`)
	exec(t, db, `insert into work (id, kind, source, agent_id, from_agent, payload, root_id, idempotency_key, state, error, finished_at)
		select gen_random_uuid(), 'call', 'notice', 'lead', 'lead', '{}', id, 'notice/' || id, 'dead', 'blocked', now() from work where finished_at is null`)
	exec(t, db, `update work set state = 'done', finished_at = now() where finished_at is null`)
	got = tooltest.OK[cronList](t, cat, tooltest.Who("lead"), "list_cron_tasks", `{}`).Tasks[0]
	if got.LastState != "done" || got.LastDelivery != "failed" || got.LastError != "blocked" {
		t.Errorf("a result that nobody was told of: %+v", got)
	}
	exec(t, db, `update work set state = 'done', finished_at = now() where finished_at is null`)
	exec(t, db, `update agents set state = 'paused' where id = 'coder'`)
	tooltest.Fault(t, cat, tooltest.Who("lead"), "run_cron_task", `{"name":"n"}`, fault.NotFound)
}

func TestListCronTasks(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	daily(t, cat, tooltest.Who("ceo"), "ceo", "a")
	daily(t, cat, tooltest.Who("lead"), "lead", "b")
	daily(t, cat, tooltest.Who("ceo"), "coder", "c")
	daily(t, cat, tooltest.Who("stranger"), "stranger", "d")
	for _, c := range []struct {
		who  caller.Caller
		args string
		want int
	}{
		{tooltest.Who("ceo"), `{}`, 3}, {tooltest.Who("lead"), `{}`, 2}, {tooltest.Who("coder"), `{}`, 1}, {tooltest.Who("stranger"), `{}`, 1},
		{operator(), `{}`, 4}, {tooltest.Who("lead"), `{"agent_id":"ceo"}`, 0}, {tooltest.Who("ceo"), `{"agent_id":"lead"}`, 1},
	} {
		if got := tooltest.OK[cronList](t, cat, c.who, "list_cron_tasks", c.args); len(got.Tasks) != c.want {
			t.Errorf("%s %s sees %v, want %d", c.who.Agent, c.args, got.names(), c.want)
		}
	}
	var pages []string
	args := map[string]any{"limit": 2}
	for range 3 {
		page := tooltest.OK[cronList](t, cat, operator(), "list_cron_tasks", args)
		pages = append(pages, page.names()...)
		if args["cursor"] = page.NextCursor; page.NextCursor == "" {
			break
		}
	}
	if len(pages) != 4 {
		t.Errorf("all pages %v", pages)
	}
	exec(t, db, `update agents set state = 'paused' where id = 'coder'`)
	if got := tooltest.OK[cronList](t, cat, tooltest.Who("coder"), "list_cron_tasks", `{}`); got.Tasks[0].State != "suspended" {
		t.Errorf("CRON-13 %+v", got)
	}
}

type reminderList struct {
	Reminders []struct {
		ID, State, Message, Prompt, Error string
		TriggerAt                         time.Time `json:"trigger_at"`
	}
	More bool
}

func remind(t *testing.T, cat tool.Category, who caller.Caller, when string) string {
	t.Helper()
	return tooltest.OK[struct{ ID string }](t, cat, who, "create_reminder",
		fmt.Sprintf(`{"time":%q,"message":"stand up","channel":"telegram","chat_id":"7"}`, when)).ID
}

func TestReminders(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	lead := tooltest.Who("lead")
	late, early := remind(t, cat, lead, "2h"), remind(t, cat, lead, "2026-12-01T14:00:00+01:00")
	callback := tooltest.OK[struct{ ID string }](t, cat, lead, "create_reminder",
		`{"time":"2026-12-02T09:00","timezone":"Asia/Taipei","mode":"agent_callback","prompt":"look","channel":"line","chat_id":"8"}`).ID
	got := tooltest.OK[reminderList](t, cat, lead, "list_reminders", `{}`)
	var ids []string
	for _, r := range got.Reminders {
		ids = append(ids, r.ID)
	}
	if diff := cmp.Diff([]string{early, late, callback}, ids); diff != "" {
		t.Errorf("in order (-want +got):\n%s", diff)
	}
	if at := got.Reminders[2].TriggerAt; !at.Equal(time.Date(2026, 12, 2, 1, 0, 0, 0, time.UTC)) {
		t.Errorf("nine o'clock in Taipei is %s", at)
	}
	tooltest.Fault(t, cat, tooltest.Who("coder"), "cancel_reminder", fmt.Sprintf(`{"id":%q}`, late), fault.NotFound)
	tooltest.Fault(t, cat, tooltest.Who("coder"), "list_reminders", `{"agent_id":"lead"}`, fault.NotFound)
	for range 2 {
		tooltest.OK[struct{ State string }](t, cat, tooltest.Who("ceo"), "cancel_reminder", fmt.Sprintf(`{"id":%q}`, late))
	}
	exec(t, db, `update reminders set state = 'fired', work_id = gen_random_uuid() where id in ($1, $2)`, early, callback)
	exec(t, db, `insert into work (id, kind, source, agent_id, from_agent, payload, root_id, state, error, finished_at)
		select work_id, 'call', 'reminder', 'lead', 'lead', '{}', work_id, case id when $1 then 'dead' else 'done' end, 'blocked', now() from reminders where state = 'fired'`, early)
	tooltest.Fault(t, cat, lead, "cancel_reminder", fmt.Sprintf(`{"id":%q}`, early), fault.Conflict)
	exec(t, db, `insert into work (id, kind, source, agent_id, from_agent, payload, root_id, idempotency_key)
		select gen_random_uuid(), 'call', 'notice', 'lead', 'lead', '{}', work_id, 'notice/' || work_id from reminders where id = $1`, callback)
	if got := tooltest.OK[reminderList](t, cat, lead, "list_reminders", `{"status":"sending"}`); len(got.Reminders) != 1 || got.Reminders[0].ID != callback {
		t.Errorf("answered and not yet sent: %+v", got)
	}
	exec(t, db, `update work set state = 'done', finished_at = now() where source = 'notice'`)
	for state, want := range map[string]string{"cancelled": late, "failed": early, "delivered": callback} {
		got := tooltest.OK[reminderList](t, cat, lead, "list_reminders", fmt.Sprintf(`{"status":%q}`, state))
		if len(got.Reminders) != 1 || got.Reminders[0].ID != want {
			t.Errorf("%s: %+v", state, got)
		}
	}
	if got := tooltest.OK[reminderList](t, cat, lead, "list_reminders", `{}`); len(got.Reminders) != 0 {
		t.Errorf("pending is what is shown unless told otherwise: %+v", got)
	}
	if got := tooltest.OK[reminderList](t, cat, lead, "list_reminders", `{"status":"all","limit":2}`); len(got.Reminders) != 2 || !got.More {
		t.Errorf("two of all: %+v", got)
	}
	tooltest.Invalid(t, cat, lead, "list_reminders", `{"status":"lost"}`, "status")
}

func TestCreateReminder_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, parameter string }{
		{"without offset or zone", `{"time":"2026-12-24T09:00:00","message":"m","channel":"line","chat_id":"8"}`, "time"},
		{"in the past", `{"time":"2026-12-01T11:59:00Z","message":"m","channel":"line","chat_id":"8"}`, "time"},
		{"now", `{"time":"0s","message":"m","channel":"line","chat_id":"8"}`, "time"},
		{"too far", `{"time":"366d","message":"m","channel":"line","chat_id":"8"}`, "time"},
		{"huge", `{"time":"9999999999d","message":"m","channel":"line","chat_id":"8"}`, "time"},
		{"an unknown mode", `{"time":"5m","message":"m","channel":"line","chat_id":"8","mode":"loud"}`, "mode"},
		{"a callback without prompt", `{"time":"5m","message":"m","channel":"line","chat_id":"8","mode":"agent_callback"}`, "prompt"},
		{"a prompt that nobody reads", `{"time":"5m","message":"m","channel":"line","chat_id":"8","prompt":"p"}`, "prompt"},
		{"no message", `{"time":"5m","channel":"line","chat_id":"8"}`, "message"},
		{"a channel that there is not", `{"time":"5m","message":"m","channel":"fax","chat_id":"8"}`, "channel"},
		{"no chat", `{"time":"5m","message":"m","channel":"line","chat_id":""}`, "chat_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tooltest.Invalid(t, setup(t, postgrestest.New(t)), tooltest.Who("lead"), "create_reminder", c.args, c.parameter)
		})
	}
}

func TestCreateReminder_has_bounds(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	exec(t, db, `insert into reminders (id, agent_id, due_at, mode, channel, chat_id) select 'r' || n, 'lead', now(), 'direct', 'line', '8' from generate_series(1, 100) n`)
	tooltest.Fault(t, cat, tooltest.Who("lead"), "create_reminder", `{"time":"5m","message":"m","channel":"line","chat_id":"8"}`, fault.TooLarge)
}

// TestScheduledWorkHasNoOperatorsScopes: a schedule outlives the moment in which
// an operator made it.
func TestScheduledWorkHasNoOperatorsScopes(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	daily(t, cat, operator(), "coder", "n")
	got, err := postgres.One[struct{ Scopes []string }](t.Context(), db, `select scopes from schedules`, nil)
	if diff := cmp.Diff(work.Scopes(operator()), got.Scopes); err != nil || diff != "" {
		t.Errorf("%v, scopes (-want +got):\n%s", err, diff)
	}
}

// inRun is an agent in a run that it does for whoever bounds it.
func inRun(t *testing.T, db postgres.DB, agent string, narrowedBy ...string) caller.Caller {
	t.Helper()
	id := uuid.New()
	exec(t, db, `insert into work (id, kind, source, agent_id, from_agent, payload, narrowed_by, root_id, state, lease_until)
		values ($1, 'prompt', 'spawn_agent', $2, 'lead', '{}', $3, $1, 'running', now() + interval '1 hour')`, id, agent, append([]string{}, narrowedBy...))
	who := tooltest.Who(agent)
	who.Credential = work.Credential(id)
	return who
}

func narrowedBy(t *testing.T, db postgres.DB, table string) []string {
	t.Helper()
	got, err := postgres.One[struct{ NarrowedBy []string }](t.Context(), db, `select narrowed_by from `+table, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got.NarrowedBy
}

// TestRunLeavesItsBounds: what bounds a run bounds what it leaves for later.
func TestRunLeavesItsBounds(t *testing.T) {
	t.Parallel()
	lead := []string{"lead"}
	t.Run("a schedule", func(t *testing.T) {
		t.Parallel()
		db := postgrestest.New(t)
		cat := setup(t, db)
		daily(t, cat, inRun(t, db, "coder", "lead"), "coder", "n")
		if diff := cmp.Diff(lead, narrowedBy(t, db, "schedules")); diff != "" {
			t.Errorf("narrowed by (-want +got):\n%s", diff)
		}
	})
	t.Run("a reminder", func(t *testing.T) {
		t.Parallel()
		db := postgrestest.New(t)
		cat := setup(t, db)
		remind(t, cat, inRun(t, db, "coder", "lead"), "5m")
		if diff := cmp.Diff(lead, narrowedBy(t, db, "reminders")); diff != "" {
			t.Errorf("narrowed by (-want +got):\n%s", diff)
		}
	})
	t.Run("another task for a schedule", func(t *testing.T) {
		t.Parallel()
		db := postgrestest.New(t)
		cat := setup(t, db)
		daily(t, cat, tooltest.Who("coder"), "coder", "n")
		tooltest.OK[cronShown](t, cat, inRun(t, db, "coder", "lead"), "update_cron_task", `{"name":"n","task":"another"}`)
		if diff := cmp.Diff(lead, narrowedBy(t, db, "schedules")); diff != "" {
			t.Errorf("narrowed by (-want +got):\n%s", diff)
		}
	})
	t.Run("a schedule that is run now", func(t *testing.T) {
		t.Parallel()
		db := postgrestest.New(t)
		cat := setup(t, db)
		daily(t, cat, tooltest.Who("coder"), "coder", "n")
		who := inRun(t, db, "coder", "lead")
		tooltest.OK[struct{}](t, cat, who, "run_cron_task", `{"name":"n"}`)
		got, err := postgres.One[struct {
			NarrowedBy []string
			Depth      int
			ParentID   uuid.UUID
		}](t.Context(), db, `select narrowed_by, depth, parent_id from work where source = 'schedule'`, nil)
		if err != nil || !cmp.Equal(got.NarrowedBy, lead) || got.Depth != 1 || got.ParentID != *work.Parent(who) {
			t.Errorf("queued %+v, %v", got, err)
		}
	})
	t.Run("another's schedule that is run now", func(t *testing.T) {
		t.Parallel()
		db := postgrestest.New(t)
		cat := setup(t, db)
		daily(t, cat, tooltest.Who("coder"), "coder", "n")
		who := inRun(t, db, "lead")
		exec(t, db, `update work set depth = 5`)
		tooltest.Fault(t, cat, who, "run_cron_task", `{"name":"n"}`, work.TooDeep)
	})
}

// TestCronTaskIsItsWriters: to write the task of another's schedule gives no
// more than the writer has.
func TestCronTaskIsItsWriters(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	maker, writer := tooltest.Who("coder"), tooltest.Who("lead")
	maker.Scopes, writer.Scopes = []string{"control:write", "odoo:write"}, []string{"control:write"}
	daily(t, cat, maker, "coder", "n")
	tooltest.OK[cronShown](t, cat, writer, "update_cron_task", `{"name":"n","cron":"0 8 * * *"}`)
	if got := narrowedBy(t, db, "schedules"); len(got) != 0 {
		t.Errorf("another time is narrowed by %v", got)
	}
	tooltest.OK[cronShown](t, cat, writer, "update_cron_task", `{"name":"n","task":"another"}`)
	got, err := postgres.One[struct{ Scopes, NarrowedBy []string }](t.Context(), db, `select scopes, narrowed_by from schedules`, nil)
	if err != nil || !cmp.Equal(got.Scopes, writer.Scopes) || !cmp.Equal(got.NarrowedBy, []string{"lead"}) {
		t.Errorf("%v, the task has %+v", err, got)
	}
}
