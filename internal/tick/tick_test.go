package tick_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tick"
	"pawgate/internal/work"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

type bench struct {
	t  *testing.T
	db postgres.DB
}

func setup(t *testing.T, db postgres.DB) bench {
	t.Helper()
	b := bench{t, db}
	b.exec(`insert into agents (id, reports_to) values ('alice', null), ('bob', 'alice')`)
	return b
}

func (b bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.db.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// schedule makes a schedule s of bob's, made by alice, with a slot to come.
func (b bench) schedule(cron string, next time.Time, more string) {
	b.t.Helper()
	b.exec(`insert into schedules (id, agent_id, created_by, name, cron, timezone, task, next_slot) values ('s', 'bob', 'alice', 'n', $1, 'UTC', 'report', $2)`, cron, next)
	if more != "" {
		b.exec(`update schedules set ` + more)
	}
}

func (b bench) tick(now time.Time) tick.Done {
	b.t.Helper()
	done, err := tick.Ticker{DB: b.db, Now: func() time.Time { return now }}.Tick(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return done
}

// firings are the recorded slots: "12:00 queued", with the number of older ones
// passed over.
func (b bench) firings() []string {
	b.t.Helper()
	type row struct {
		Slot   time.Time
		State  string
		Missed int
	}
	rows, err := postgres.All[row](b.t.Context(), b.db, `select slot, state, missed from firings order by slot`, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	list := []string{}
	for _, r := range rows {
		text := r.Slot.UTC().Format("15:04") + " " + r.State
		if r.Missed > 0 {
			text += fmt.Sprint(" +", r.Missed)
		}
		list = append(list, text)
	}
	return list
}

func (b bench) queued() int {
	b.t.Helper()
	n, err := postgres.One[struct{ N int }](b.t.Context(), b.db, `select count(*) as n from work`, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return n.N
}

func TestTick(t *testing.T) {
	t.Parallel()
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	for _, c := range []struct {
		name, cron, more string
		next             time.Time
		ticks            []time.Time
		want             []string
		queued           int
	}{
		{"not due", "* * * * *", "", minute(1), []time.Time{noon}, []string{}, 0},
		{"due", "0 12 * * *", "", noon, []time.Time{noon}, []string{"12:00 queued"}, 1},
		{"CRON-10 K-91 the same tick again", "0 12 * * *", "", noon, []time.Time{noon, noon, noon}, []string{"12:00 queued"}, 1},
		{"K-92 a restart in the afternoon, for nine in the evening there", "0 21 * * *", "timezone = 'America/Sao_Paulo'", minute(12 * 60),
			[]time.Time{minute(8*60 + 12), minute(8*60 + 13)}, []string{}, 0},
		{"a late tick", "0 12 * * *", "misfire = 'skip'", noon, []time.Time{minute(2)}, []string{"12:00 queued"}, 1},
		{"the clock goes back", "* * * * *", "overlap = 'queue'", noon, []time.Time{minute(1), noon, minute(1), minute(2)}, []string{"12:01 queued +1", "12:02 queued"}, 2},
		{"CRON-09 a day down, run once", "* * * * *", "", minute(-1440), []time.Time{noon}, []string{"12:00 queued +1440"}, 1},
		{"CRON-09 a day down, skip", "0 * * * *", "misfire = 'skip'", minute(-1440), []time.Time{minute(30)}, []string{"12:00 missed +24"}, 0},
		{"CRON-09 a day down, all", "0 * * * *", "misfire = 'all'", minute(-120), []time.Time{minute(30)}, []string{"10:00 queued", "11:00 queued", "12:00 queued"}, 3},
		{"CRON-09 a day of minutes, all: the newest", "* * * * *", "misfire = 'all'", minute(-1440), []time.Time{noon}, nil, 20},
		{"the last run goes on", "* * * * *", "", noon, []time.Time{noon, minute(1)}, []string{"12:00 queued", "12:01 overlapped"}, 1},
		{"runs may overlap", "* * * * *", "overlap = 'queue'", noon, []time.Time{noon, minute(1)}, []string{"12:00 queued", "12:01 queued"}, 2},
		{"paused", "* * * * *", "enabled = false", noon, []time.Time{noon}, []string{}, 0},
		{"a zone that is gone", "* * * * *", "timezone = 'Old/Zone'", noon, []time.Time{noon, minute(1)}, []string{"12:00 missed"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, postgrestest.New(t))
			b.schedule(c.cron, c.next, c.more)
			for _, now := range c.ticks {
				b.tick(now)
			}
			if c.want != nil {
				if diff := cmp.Diff(c.want, b.firings()); diff != "" {
					t.Errorf("firings (-want +got):\n%s", diff)
				}
			}
			if n := b.queued(); n != c.queued {
				t.Errorf("%d pieces of work, want %d", n, c.queued)
			}
		})
	}
}

// TestRunsOfOneScheduleTakeTurns: slots that are made up for, and those that wait
// for the run before them, are done one after the other, oldest first, however
// many workers there are; SQS hears of the one whose turn it is.
func TestRunsOfOneScheduleTakeTurns(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"CRON-09 made up for": "misfire = 'all'", "queued behind the last run": "misfire = 'all', overlap = 'queue'"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, postgrestest.New(t))
			b.schedule("0 * * * *", noon.Add(-2*time.Hour), more)
			b.exec(`insert into schedules (id, agent_id, created_by, name, cron, timezone, task, next_slot) values ('other', 'bob', 'alice', 'other', '0 12 * * *', 'UTC', 'else', $1)`, noon)
			b.tick(noon)
			queue := work.Queue{DB: b.db, Worker: "w"}
			var done []string
			for range 3 {
				told := &heard{}
				if _, err := work.Dispatch(t.Context(), b.db, told); err != nil {
					t.Fatal(err)
				}
				leased, err := queue.Claim(t.Context(), 10)
				if err != nil {
					t.Fatal(err)
				}
				if again, err := queue.Claim(t.Context(), 10); err != nil || len(again) > 0 {
					t.Errorf("another worker got %d items, %v", len(again), err)
				}
				if len(told.ids) != len(leased) {
					t.Errorf("SQS was told of %d items, %d could be claimed", len(told.ids), len(leased))
				}
				for _, l := range leased {
					prompt, err := l.Prompt()
					if err != nil {
						t.Fatal(err)
					}
					_, after, _ := strings.Cut(prompt.Prompt, "T")
					done = append(done, strings.Split(prompt.Prompt, "\n")[1]+" "+after[:5])
					if ok, err := queue.Done(t.Context(), l, "done"); err != nil || !ok {
						t.Fatalf("done: %v, %v", ok, err)
					}
				}
			}
			slices.Sort(done[:min(2, len(done))]) // the other schedule waits for nobody
			if diff := cmp.Diff([]string{"else 12:00", "report 10:00", "report 11:00", "report 12:00"}, done); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
		})
	}
}

// heard is a sender that keeps what it was told of.
type heard struct{ ids []string }

func (h *heard) Send(_ context.Context, ids []string) ([]string, error) {
	h.ids = append(h.ids, ids...)
	return nil, nil
}

func TestTick_work(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	b.schedule("0 12 * * *", noon, `notify = '{"channel":"line","chat_id":"8"}', scopes = '{memory:read}'`)
	if done := b.tick(noon); done.Fired != 1 || done.Passed != 0 {
		t.Errorf("done %+v", done)
	}
	type row struct {
		AgentID, FromAgent, Source, Prompt, Notify string
		Scopes, NarrowedBy                         []string
	}
	got, err := postgres.One[row](t.Context(), b.db, `select agent_id, from_agent, source, payload ->> 'prompt' as prompt, notify ->> 'chat_id' as notify, scopes, narrowed_by from work`, nil)
	want := row{"bob", "alice", "schedule", "[Scheduled task n, due at 2026-12-01T12:00:00Z]\nreport", "8", []string{"memory:read"}, []string{"alice"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, work (-want +got):\n%s", err, diff)
	}
}

// TestBounds: what bounded the run that left something for later bounds that too.
func TestBounds(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	b.schedule("0 12 * * *", noon, `narrowed_by = '{carol}'`)
	b.exec(`insert into reminders (id, agent_id, due_at, mode, channel, chat_id, message, narrowed_by) values ('r', 'bob', now(), 'direct', 'telegram', '7', 'x', '{carol}')`)
	b.tick(noon)
	got, err := postgres.All[struct {
		Source     string
		NarrowedBy []string
	}](t.Context(), b.db, `select source, narrowed_by from work order by source`, nil)
	if want := "[{reminder [carol]} {schedule [carol alice]}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, got %v, want %s", err, got, want)
	}
}

// TestSuspended: an agent that is not at work runs nothing, and its slots are
// recorded; nothing is made up for when it is back.
func TestSuspended(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, off, on string }{
		{"CRON-13 disabled", `update agents set state = 'paused' where id = 'bob'`, `update agents set state = 'active'`},
		{"CRON-13 stopped", `insert into stops (agent_id, stopped_by) values ('bob', 'test')`, `update stops set resumed_at = now()`},
		{"CRON-13 everyone stopped", `insert into stops (stopped_by) values ('test')`, `update stops set resumed_at = now()`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, postgrestest.New(t))
			b.schedule("* * * * *", noon, "")
			b.exec(c.off)
			b.tick(noon)
			b.exec(c.on)
			b.tick(noon.Add(time.Minute))
			if diff := cmp.Diff([]string{"12:00 suspended", "12:01 queued"}, b.firings()); diff != "" || b.queued() != 1 {
				t.Errorf("%d pieces of work, firings (-want +got):\n%s", b.queued(), diff)
			}
		})
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	b.schedule("@at 2026-12-01T12:00:00Z", noon, "")
	b.tick(noon)
	b.tick(noon.Add(time.Hour))
	left, err := postgres.One[struct{ NextSlot *time.Time }](t.Context(), b.db, `select next_slot from schedules`, nil)
	if err != nil || left.NextSlot != nil || b.queued() != 1 {
		t.Errorf("next %v, %v, %d pieces of work", left.NextSlot, err, b.queued())
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	b.schedule("* * * * *", noon, "overlap = 'queue', misfire = 'all', jitter_seconds = 600")
	b.tick(noon.Add(9 * time.Minute))
	got, err := postgres.One[struct{ Least, Most, Different int }](t.Context(), b.db,
		`select extract(epoch from min(run_at - created_at))::int as least, extract(epoch from max(run_at - created_at))::int as most, count(distinct date_trunc('second', run_at)) as different from work`, nil)
	if err != nil || got.Least < 0 || got.Most > 600 || got.Different < 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestManyTickers: every slot once, however many tickers see it.
func TestManyTickers(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.Clone(t))
	b.exec(`insert into schedules (id, agent_id, created_by, name, cron, timezone, task, next_slot, overlap)
		select 's' || n, 'bob', 'alice', 's' || n, '* * * * *', 'UTC', 'x', $1, 'queue' from generate_series(1, 300) n`, noon)
	b.exec(`insert into reminders (id, agent_id, due_at, mode, channel, chat_id, message) select 'r' || n, 'bob', now(), 'direct', 'line', '8', 'm' from generate_series(1, 300) n`)
	var tickers sync.WaitGroup
	for range 6 {
		tickers.Go(func() {
			for n := range 5 {
				now := noon.Add(time.Duration(n) * time.Minute)
				if _, err := (tick.Ticker{DB: b.db, Now: func() time.Time { return now }}).Tick(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	tickers.Wait()
	got, err := postgres.One[struct{ Firings, Work, Keys, Reminders int }](t.Context(), b.db, `select (select sum(1 + missed) from firings) as firings,
		(select count(*) from work where source = 'schedule') as work, (select count(distinct idempotency_key) from work where source = 'schedule') as keys,
		(select count(*) from work where source = 'reminder') as reminders`, nil)
	if err != nil || got.Firings != 1500 || got.Work != got.Keys || got.Reminders != 300 {
		t.Errorf("%+v, %v; want 1500 slots, each once, and 300 reminders", got, err)
	}
}

func TestReminders(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	b.exec(`insert into reminders (id, agent_id, due_at, mode, channel, chat_id, message, prompt, state) values
		('r1', 'bob', now(), 'direct', 'line', '8', 'stand up', '', 'pending'),
		('r2', 'bob', now(), 'agent_callback', 'line', '9', '', 'look', 'pending'),
		('r3', 'bob', now() + interval '1 minute', 'direct', 'line', '8', 'later', '', 'pending'),
		('r4', 'bob', now(), 'direct', 'line', '8', 'changed my mind', '', 'cancelled')`)
	b.exec(`insert into stops (agent_id, stopped_by) values ('bob', 'test')`)
	if done := b.tick(noon); done.Reminders != 0 {
		t.Errorf("of a stopped agent: %+v", done)
	}
	b.exec(`update stops set resumed_at = now()`)
	for _, want := range []int{2, 0} {
		if done := b.tick(noon); done.Reminders != want {
			t.Errorf("done %+v, want %d", done, want)
		}
	}
	type row struct{ Kind, AgentID, Payload, Notify string }
	got, err := postgres.All[row](t.Context(), b.db, `select kind, agent_id, payload::text as payload, coalesce(notify::text, '') as notify from work order by kind`, pgx.StrictNamedArgs{})
	want := []row{
		{"call", "bob", `{"tool": "send_message", "arguments": {"text": "stand up", "channel": "line", "chat_id": "8"}}`, ""},
		{"prompt", "bob", `{"prompt": "[Reminder]\nlook"}`, `{"channel": "line", "chat_id": "9"}`},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, work (-want +got):\n%s", err, diff)
	}
}

// TestPooled: behind a transaction pooler the types of arguments are not asked
// for, so every statement must make do without.
func TestPooled(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), Pooled: true, MaxConns: 4}))
	b.schedule("* * * * *", noon, "jitter_seconds = 60")
	b.exec(`insert into reminders (id, agent_id, due_at, mode, channel, chat_id, message) values ('r1', 'bob', now(), 'direct', 'line', '8', 'm')`)
	if done := b.tick(noon); done.Fired != 1 || done.Reminders != 1 {
		t.Errorf("done %+v", done)
	}
	if _, err := (tick.Ticker{DB: b.db}).Tick(t.Context()); err != nil { // by the database's clock
		t.Error(err)
	}
}
