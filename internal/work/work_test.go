package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/work"
)

type bench struct {
	t  *testing.T
	db postgres.DB
	q  work.Queue
}

// setup is a queue between alice, who asks, and bob, who does.
func setup(t *testing.T, db postgres.DB) bench {
	t.Helper()
	b := bench{t, db, work.Queue{DB: db, Worker: "w1"}}
	b.exec(`insert into agents (id, reports_to) values ('alice', null), ('bob', 'alice')`)
	return b
}

func (b bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.db.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

func (b bench) enqueue(item work.Item) (work.Queued, error) {
	var queued work.Queued
	err := postgres.InTx(b.t.Context(), b.db, func(tx pgx.Tx) error {
		var err error
		queued, err = work.Enqueue(b.t.Context(), tx, item)
		return err
	})
	return queued, err
}

func (b bench) queued(item work.Item) work.Queued {
	b.t.Helper()
	queued, err := b.enqueue(item)
	if err != nil {
		b.t.Fatal(err)
	}
	return queued
}

func ask(prompt string) work.Item {
	return work.Item{Kind: work.KindPrompt, Source: "send_to_agent", Agent: "bob", From: "alice", Payload: work.Prompt{Prompt: prompt}}
}

// claim leases one item.
func (b bench) claim(ids ...uuid.UUID) work.Leased {
	b.t.Helper()
	leased, err := b.q.Claim(b.t.Context(), 1, ids...)
	if err != nil || len(leased) != 1 {
		b.t.Fatalf("claimed %d, %v", len(leased), err)
	}
	return leased[0]
}

type row struct {
	State, Result, Error string
	Attempts             int
}

func (b bench) row(id uuid.UUID) row {
	b.t.Helper()
	r, err := postgres.One[row](b.t.Context(), b.db, `select state, result, error, attempts from work where id = @id`, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b bench) want(id uuid.UUID, want row) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.row(id)); diff != "" {
		b.t.Errorf("item (-want +got):\n%s", diff)
	}
}

// is ends the test unless a step went as wanted.
func (b bench) is(what string, want bool) func(bool, error) {
	return func(got bool, err error) {
		b.t.Helper()
		if err != nil || got != want {
			b.t.Fatalf("%s: %v, %v, want %v", what, got, err, want)
		}
	}
}

func TestEnqueueIsTheCallers(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.Clone(t))
	var id uuid.UUID
	err := postgres.InTx(t.Context(), b.db, func(tx pgx.Tx) error {
		queued, err := work.Enqueue(t.Context(), tx, ask("hello"))
		id = queued.ID
		return errors.Join(err, errors.New("changed my mind"))
	})
	if err == nil || id == uuid.Nil {
		t.Fatalf("%v, %v", id, err)
	}
	if leased, err := b.q.Claim(t.Context(), 10); err != nil || len(leased) != 0 {
		t.Errorf("work that was rolled back: %v, %v", leased, err)
	}
}

func TestEnqueueRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, prepare string
		change        func(*work.Item)
		reason        fault.Reason
	}{
		{"a payload that is too large", "", func(i *work.Item) { i.Payload = work.Prompt{Prompt: strings.Repeat("x", work.MaxPayload)} }, fault.TooLarge},
		{"no such agent", "", func(i *work.Item) { i.Agent = "nobody" }, fault.NotFound},
		{"a paused agent", `update agents set state = 'paused' where id = 'bob'`, nil, fault.NotFound},
		{"a stopped agent", `insert into stops (agent_id, stopped_by) values ('bob', 'test')`, nil, fault.NotFound},
		{"everyone stopped", `insert into stops (stopped_by) values ('test')`, nil, fault.NotFound},
		{"a run that is none", "", func(i *work.Item) { i.Parent = new(uuid.New()) }, fault.Cancelled},
		{"too many at once", `insert into work (id, kind, source, agent_id, from_agent, payload, root_id)
			select gen_random_uuid(), 'prompt', 'send_to_agent', 'bob', 'alice', '{}', gen_random_uuid() from generate_series(1, 20)`, nil, work.Runaway},
		{"a full queue", `insert into work (id, kind, source, agent_id, from_agent, payload, root_id)
			select gen_random_uuid(), 'prompt', 'schedule', 'bob', 'bob', '{}', gen_random_uuid() from generate_series(1, 1000)`, nil, fault.RateLimited},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, postgrestest.New(t))
			if c.prepare != "" {
				b.exec(c.prepare)
			}
			item := ask("hello")
			if c.change != nil {
				c.change(&item)
			}
			_, err := b.enqueue(item)
			if f, ok := fault.Of(err); !ok || f.Reason != c.reason {
				t.Errorf("got %v, want %s", err, c.reason)
			}
		})
	}
}

func TestEnqueueAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	item := ask("hello")
	item.Key = "k"
	first := b.queued(item)
	if again := b.queued(item); again.ID != first.ID || !again.Again {
		t.Errorf("the same key gave %+v after %+v", again, first)
	}
	item.Payload = work.Prompt{Prompt: "something else"}
	if _, err := b.enqueue(item); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("the same key for something else: %v", err)
	}
}

// TestChain: each hop is asked for by the run of the one before.
func TestChain(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	item := ask("down")
	item.NarrowedBy = []string{"alice"}
	hop := b.queued(item)
	for depth := 1; ; depth++ {
		run := b.claim(hop.ID)
		who := caller.Caller{Agent: run.Agent, Credential: work.Credential(run.ID)}
		next := work.Item{Kind: work.KindPrompt, Source: "send_to_agent", From: run.Agent, Agent: map[string]string{"alice": "bob", "bob": "alice"}[run.Agent],
			Payload: work.Prompt{Prompt: "further"}, Parent: work.Parent(who)}
		queued, err := b.enqueue(next)
		if f, ok := fault.Of(err); ok && f.Reason == work.TooDeep {
			if depth != work.MaxDepth+1 {
				t.Errorf("refused at hop %d, want %d", depth, work.MaxDepth+1)
			}
			break
		}
		if err != nil || queued.Depth != depth {
			t.Fatalf("hop %d: %+v, %v", depth, queued, err)
		}
		hop = queued
	}
	last := b.claimedRow(hop.ID)
	if diff := cmp.Diff([]string{"alice"}, last); diff != "" {
		t.Errorf("narrowed by (-want +got):\n%s", diff)
	}
	stranger := ask("not mine")
	stranger.Parent = &hop.ID // the run is bob's or alice's; whoever it is not may not ask in its name
	stranger.From, stranger.Agent = "carol", "bob"
	b.exec(`insert into agents (id) values ('carol')`)
	if _, err := b.enqueue(stranger); err == nil {
		t.Error("a run of somebody else was believed")
	}
}

func (b bench) claimedRow(id uuid.UUID) []string {
	b.t.Helper()
	r, err := postgres.One[struct{ NarrowedBy []string }](b.t.Context(), b.db, `select narrowed_by from work where id = @id`, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		b.t.Fatal(err)
	}
	return r.NarrowedBy
}

func TestChainHasAnEnd(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	first := b.queued(ask("fan out"))
	run := b.claim(first.ID)
	b.exec(`insert into work (id, kind, source, agent_id, from_agent, payload, root_id, created_at)
		select gen_random_uuid(), 'prompt', 'send_to_agent', 'alice', 'bob', '{}', $1, now() - interval '1 hour' from generate_series(1, 99)`, first.ID)
	item := work.Item{Kind: work.KindPrompt, Source: "send_to_agent", From: "bob", Agent: "alice", Payload: work.Prompt{Prompt: "more"},
		Parent: work.Parent(caller.Caller{Credential: work.Credential(run.ID)})}
	_, err := b.enqueue(item)
	if f, ok := fault.Of(err); !ok || f.Reason != work.Runaway {
		t.Errorf("the 101st piece of a chain: %v", err)
	}
}

// TestClaimedOnce: many workers, every item to exactly one of them.
func TestClaimedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.Clone(t))
	b.exec(`insert into work (id, kind, source, agent_id, from_agent, payload, root_id)
		select gen_random_uuid(), 'prompt', 'schedule', 'bob', 'alice', '{}', gen_random_uuid() from generate_series(1, 300)`)
	var mu sync.Mutex
	claims := map[uuid.UUID]int{}
	var workers sync.WaitGroup
	for n := range 8 {
		q := work.Queue{DB: b.db, Worker: fmt.Sprint("w", n)}
		workers.Go(func() {
			for {
				leased, err := q.Claim(context.WithoutCancel(t.Context()), 7)
				if err != nil {
					t.Error(err)
				}
				if len(leased) == 0 {
					return
				}
				for _, l := range leased {
					mu.Lock()
					claims[l.ID]++
					mu.Unlock()
					if ok, err := q.Done(context.WithoutCancel(t.Context()), l, "done"); err != nil || !ok {
						t.Errorf("done: %v, %v", ok, err)
					}
				}
			}
		})
	}
	workers.Wait()
	if len(claims) != 300 {
		t.Errorf("%d items were claimed, want 300", len(claims))
	}
	for id, n := range claims {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
}

// TestTakenOver: what a lost worker had is done by another, and the lost one
// records nothing when it comes back.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	id := b.queued(ask("hello")).ID
	lost := b.claim()
	b.is("extend", true)(b.q.Extend(t.Context(), lost))
	b.lose(id)
	if swept, err := work.Sweep(t.Context(), b.db); err != nil || swept.Returned != 1 {
		t.Fatalf("swept %+v, %v", swept, err)
	}
	b.want(id, row{State: "queued", Error: "the worker was lost", Attempts: 1})
	b.due(id)
	second := b.claim()
	b.is("extend of the lost one", false)(b.q.Extend(t.Context(), lost))
	b.is("result of the lost one", false)(b.q.Done(t.Context(), lost, "old"))
	b.is("failure of the lost one", false)(b.q.Fail(t.Context(), lost, "old"))
	b.is("result", true)(b.q.Done(t.Context(), second, "new"))
	b.is("second result", false)(b.q.Done(t.Context(), second, "newer"))
	b.want(id, row{State: "done", Result: "new", Attempts: 2})
	if _, err := b.db.Exec(t.Context(), `savepoint s`); err != nil {
		t.Fatal(err)
	}
	if _, err := b.db.Exec(t.Context(), `update work set result = 'x' where id = $1`, id); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("the table let a result be replaced: %v", err)
	}
}

// lose lets a lease run out; due ends a back-off.
func (b bench) lose(id uuid.UUID) {
	b.exec(`update work set lease_until = now() - interval '1 second' where id = $1`, id)
}
func (b bench) due(id uuid.UUID) { b.exec(`update work set run_at = now() where id = $1`, id) }

// TestMaxConcurrent: however many workers look at once, an agent's model answers
// so many prompts at a time; single calls do not wait for them, and other agents
// are not bounded by it.
func TestMaxConcurrent(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.Clone(t))
	b.exec(`update agents set max_concurrent = 2 where id = 'bob'`)
	for n := range 9 {
		b.queued(ask(fmt.Sprint(n)))
	}
	reminder := ask("")
	reminder.Kind, reminder.Payload = work.KindCall, work.Call{Tool: "send_message", Arguments: map[string]any{}}
	b.queued(reminder)
	free := ask("free")
	free.Agent, free.From = "alice", "bob"
	b.queued(free)
	count := func(kind work.Kind, leased []work.Leased) (n int) {
		for _, l := range leased {
			if l.Kind == kind && l.Agent == "bob" {
				n++
			}
		}
		return n
	}
	for round := range 4 {
		var mu sync.Mutex
		var leased []work.Leased
		var all sync.WaitGroup
		for n := range 5 {
			all.Go(func() {
				got, err := work.Queue{DB: b.db, Worker: fmt.Sprint("w", n)}.Claim(t.Context(), 5)
				mu.Lock()
				defer mu.Unlock()
				leased = append(leased, got...)
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := count(work.KindPrompt, leased); n != 2 {
			t.Fatalf("round %d: %d prompts of bob at once", round, n)
		}
		if calls := count(work.KindCall, leased); round == 0 && (calls != 1 || len(leased) != 4) {
			t.Errorf("%d leased, %d of them calls", len(leased), calls)
		}
		if more, err := b.q.Claim(t.Context(), 5); err != nil || len(more) != 0 {
			t.Fatalf("round %d: %d more, %v", round, len(more), err)
		}
		for _, l := range leased {
			b.is("done", true)(b.q.Done(t.Context(), l, "42"))
		}
	}
}

// TestMaxConcurrentOfSQS: SQS is told of what has a place, and a message for what
// has none leads to another one later.
func TestMaxConcurrentOfSQS(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	b.exec(`update agents set max_concurrent = 1 where id = 'bob'`)
	first, second := b.queued(ask("1")).ID, b.queued(ask("2")).ID
	s := &sender{}
	if sent, err := work.Dispatch(t.Context(), b.db, s); err != nil || sent != 1 || s.told[0] != first.String() {
		t.Fatalf("told of %v (%d), %v", s.told, sent, err)
	}
	l := b.claim(first)
	if leased, err := b.q.Claim(t.Context(), 1, second); err != nil || len(leased) != 0 {
		t.Fatalf("claimed %d, %v", len(leased), err)
	}
	if sent, err := work.Dispatch(t.Context(), b.db, s); err != nil || sent != 0 {
		t.Errorf("told of %d without a place, %v", sent, err)
	}
	b.is("done", true)(b.q.Done(t.Context(), l, "42"))
	if sent, err := work.Dispatch(t.Context(), b.db, s); err != nil || sent != 1 || s.told[1] != second.String() {
		t.Errorf("told of %v (%d), %v", s.told, sent, err)
	}
	b.claim(second)
}

func TestDeadLetter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(b bench, l work.Leased)
		want string
	}{
		{"failed each time", func(b bench, l work.Leased) { b.is("fail", true)(b.q.Fail(b.t.Context(), l, "no\x00 luck")) }, "no luck"},
		{"lost each time", func(b bench, l work.Leased) {
			b.lose(l.ID)
			if _, err := work.Sweep(b.t.Context(), b.db); err != nil {
				b.t.Fatal(err)
			}
		}, "the worker was lost during the last attempt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, postgrestest.New(t))
			id := b.queued(ask("hello")).ID
			for range work.MaxAttempts {
				b.due(id)
				c.end(b, b.claim())
			}
			b.want(id, row{State: "dead", Error: c.want, Attempts: work.MaxAttempts})
		})
	}
}

func TestNotDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, prepare string }{
		{"later", `update work set run_at = now() + interval '1 minute'`},
		{"the doer is paused", `update agents set state = 'paused' where id = 'bob'`},
		{"the doer is stopped", `insert into stops (agent_id, stopped_by) values ('bob', 'test')`},
		{"the asker is stopped", `insert into stops (agent_id, stopped_by) values ('alice', 'test')`},
		{"a stop came over it and is lifted", `insert into stops (stopped_by, stopped_at, resumed_at) values ('test', clock_timestamp(), clock_timestamp())`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, postgrestest.New(t))
			b.queued(ask("hello"))
			b.exec(c.prepare)
			if leased, err := b.q.Claim(t.Context(), 1); err != nil || len(leased) != 0 {
				t.Errorf("claimed %v, %v", leased, err)
			}
		})
	}
}

// TestStopEndsWork: also what slipped in while the stop was made, and also after
// the stop was lifted.
func TestStopEndsWork(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	waiting, running := b.queued(ask("waiting")).ID, b.queued(ask("running"))
	lease := b.claim(running.ID)
	b.exec(`insert into stops (agent_id, stopped_by, stopped_at, resumed_at) values ('alice', 'test', clock_timestamp(), clock_timestamp())`)
	if swept, err := work.Sweep(t.Context(), b.db); err != nil || swept.Cancelled != 2 {
		t.Fatalf("swept %+v, %v", swept, err)
	}
	b.want(waiting, row{State: "cancelled", Error: "an emergency stop"})
	b.is("extend", false)(b.q.Extend(t.Context(), lease))
	b.is("result", false)(b.q.Done(t.Context(), lease, "too late"))
}

// TestEphemeralsGo: an hour after its work, and not before.
func TestEphemeralsGo(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	b.exec(`insert into agents (id, reports_to, ephemeral, created_at) values
		('eph-done', 'alice', true, now() - interval '3 hours'), ('eph-just', 'alice', true, now() - interval '3 hours'),
		('eph-busy', 'alice', true, now() - interval '3 hours'), ('eph-new', 'alice', true, now())`)
	b.exec(`insert into work (id, kind, source, agent_id, from_agent, payload, root_id, state, finished_at)
		select gen_random_uuid(), 'prompt', 'spawn_ephemeral', a, 'alice', '{}', gen_random_uuid(), s, f
		from (values ('eph-done', 'done', now() - interval '2 hours'), ('eph-just', 'dead', now()), ('eph-busy', 'queued', null)) v (a, s, f)`)
	if swept, err := work.Sweep(t.Context(), b.db); err != nil || swept.Archived != 1 {
		t.Fatalf("swept %+v, %v", swept, err)
	}
	left, err := postgres.One[struct{ Gone string }](t.Context(), b.db, `select string_agg(id, ' ') as gone from agents where archived_at is not null and state = 'archived'`, nil)
	if err != nil || left.Gone != "eph-done" {
		t.Errorf("archived %q, %v", left.Gone, err)
	}
}

func TestNotice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		end  func(b bench, l work.Leased)
		want string
	}{
		{"of a result", func(b bench, l work.Leased) { b.is("done", true)(b.q.Done(b.t.Context(), l, "42")) }, `42`},
		{"in a topic", func(b bench, l work.Leased) {
			b.exec(`update work set notify = notify || '{"thread_id":"5"}'`)
			b.is("done", true)(b.q.Done(b.t.Context(), l, "42"))
		}, `42`},
		{"of a failure", func(b bench, l work.Leased) { b.is("bury", true)(b.q.Bury(b.t.Context(), l, "no model")) }, `Could not be done: no model`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, postgrestest.New(t))
			item := ask("question")
			item.Notify = &work.Notify{Channel: "telegram", ChatID: "77"}
			b.queued(item)
			c.end(b, b.claim())
			notice := b.claim()
			call, err := notice.Call()
			want := work.Call{Tool: "send_message", Arguments: map[string]any{"channel": "telegram", "chat_id": map[bool]string{true: "77/5", false: "77"}[c.name == "in a topic"], "text": c.want}}
			if diff := cmp.Diff(want, call); err != nil || diff != "" || notice.Agent != "alice" {
				t.Errorf("the notice of %s, %v (-want +got):\n%s", notice.Agent, err, diff)
			}
			b.is("done", true)(b.q.Done(t.Context(), notice, "sent"))
			if more, err := b.q.Claim(t.Context(), 1); err != nil || len(more) != 0 {
				t.Errorf("a notice of the notice: %v, %v", more, err)
			}
		})
	}
}

// TestNoticeIsBounded: agents that bound a run bound what is told of it, save the
// one that tells it: nobody sends by the hand of another.
func TestNoticeIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	item := ask("question")
	item.Notify, item.NarrowedBy = &work.Notify{Channel: "telegram", ChatID: "77"}, []string{"alice", "carol"}
	b.queued(item)
	b.is("done", true)(b.q.Done(t.Context(), b.claim(), "42"))
	if notice := b.claim(); notice.Source != "notice" || !slices.Equal(notice.NarrowedBy, []string{"carol"}) {
		t.Errorf("%s is narrowed by %v", notice.Source, notice.NarrowedBy)
	}
}

// sender keeps what it was told and refuses some of it.
type sender struct {
	told   []string
	refuse map[string]bool
	err    error
}

func (s *sender) Send(_ context.Context, ids []string) (refused []string, err error) {
	if s.err != nil {
		return nil, s.err
	}
	for _, id := range ids {
		if s.refuse[id] {
			refused = append(refused, id)
			continue
		}
		s.told = append(s.told, id)
	}
	return refused, nil
}

func TestDispatch(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	var ids []string
	for n := range 12 {
		ids = append(ids, b.queued(ask(fmt.Sprint(n))).ID.String())
	}
	away := &sender{err: errors.New("SQS is away")}
	if _, err := work.Dispatch(t.Context(), b.db, away); err == nil {
		t.Error("an outage of SQS was not reported")
	}
	picky := &sender{refuse: map[string]bool{ids[3]: true}}
	if sent, err := work.Dispatch(t.Context(), b.db, picky); err != nil || sent != 9 {
		t.Errorf("sent %d, %v", sent, err)
	}
	rest := &sender{}
	if sent, err := work.Dispatch(t.Context(), b.db, rest); err != nil || sent != 3 {
		t.Errorf("sent %d, %v", sent, err)
	}
	slices.Sort(rest.told)
	if diff := cmp.Diff(slices.Sorted(slices.Values([]string{ids[3], ids[10], ids[11]})), rest.told); diff != "" {
		t.Errorf("told in the end (-want +got):\n%s", diff)
	}
	// Told of, and never claimed: the message may be lost.
	b.exec(`update work set sent_at = now() - interval '2 hours', run_at = now() - interval '2 hours' where id = $1`, ids[0])
	if swept, err := work.Sweep(t.Context(), b.db); err != nil || swept.Unheard != 1 {
		t.Errorf("swept %+v, %v", swept, err)
	}
	if sent, err := work.Dispatch(t.Context(), b.db, rest); err != nil || sent != 1 {
		t.Errorf("sent %d again, %v", sent, err)
	}
}

// TestDispatchNothingThatCannotRun: what a worker would not take, SQS is not told
// of; else the two would pass it to and fro.
func TestDispatchNothingThatCannotRun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"the doer is paused":                `update agents set state = 'paused' where id = 'bob'`,
		"the asker is stopped":              `insert into stops (agent_id, stopped_by) values ('alice', 'test')`,
		"a stop came over it and is lifted": `insert into stops (stopped_by, stopped_at, resumed_at) values ('test', clock_timestamp(), clock_timestamp())`,
		"it is for later":                   `update work set run_at = clock_timestamp() + interval '1 minute'`,
		"there is no place":                 `update agents set max_concurrent = 1; insert into work (id, kind, source, agent_id, from_agent, payload, root_id, state, lease_until) values (gen_random_uuid(), 'prompt', 'x', 'bob', 'alice', '{}', gen_random_uuid(), 'running', now() + interval '1 minute')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, postgrestest.New(t))
			id := b.queued(ask("x")).ID
			b.exec(change)
			if sent, err := work.Dispatch(t.Context(), b.db, &sender{}); err != nil || sent != 0 {
				t.Errorf("told of %d, %v", sent, err)
			}
			if leased, err := b.q.Claim(t.Context(), 1, id); err != nil || len(leased) != 0 {
				t.Errorf("claimed %d, %v", len(leased), err)
			}
		})
	}
}

// asking is a sender that is still at it when a test looks around.
type asking struct {
	during func(ctx context.Context, ids []string)
}

func (a asking) Send(ctx context.Context, ids []string) ([]string, error) {
	a.during(ctx, ids)
	return nil, ctx.Err()
}

// TestDispatchHoldsNothing: while SQS takes its time, what it is told of can be
// claimed, nobody tells of it again, and nothing waits.
func TestDispatchHoldsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.Clone(t))
	id := b.queued(ask("x")).ID
	slow := asking{during: func(ctx context.Context, ids []string) {
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > 30*time.Second || len(ids) != 1 {
			t.Errorf("%d items, until %v (%v)", len(ids), end, ok)
		}
		if sent, err := work.Dispatch(t.Context(), b.db, &sender{}); err != nil || sent != 0 {
			t.Errorf("another told of %d, %v", sent, err)
		}
		l := b.claim(id) // SQS was quicker with the message than with its answer
		b.is("fail", true)(b.q.Fail(t.Context(), l, "away"))
		b.due(id)
	}}
	if sent, err := work.Dispatch(t.Context(), b.db, slow); err != nil || sent != 1 {
		t.Errorf("sent %d, %v", sent, err)
	}
	// The late answer was about the first attempt: the second is told of too.
	if sent, err := work.Dispatch(t.Context(), b.db, &sender{}); err != nil || sent != 1 {
		t.Errorf("the next attempt: told of %d, %v", sent, err)
	}
	b.is("done", true)(b.q.Done(t.Context(), b.claim(id), "42"))
}

// TestDispatchGivenUp: a caller that waits no longer leaves the items to the next.
func TestDispatchGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.Clone(t))
	b.queued(ask("x"))
	ctx, giveUp := context.WithCancel(t.Context())
	if sent, err := work.Dispatch(ctx, b.db, asking{during: func(context.Context, []string) { giveUp() }}); err == nil || sent != 0 {
		t.Errorf("sent %d, %v", sent, err)
	}
	if sent, err := work.Dispatch(t.Context(), b.db, &sender{}); err != nil || sent != 1 {
		t.Errorf("then: told of %d, %v", sent, err)
	}
}

// TestDispatchKilled: who dies while telling holds an item for seconds, and what
// SQS was really told of is not told of again.
func TestDispatchKilled(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.New(t))
	told, dying := b.queued(ask("told")).ID, uuid.UUID{}
	if sent, err := work.Dispatch(t.Context(), b.db, &sender{}); err != nil || sent != 1 {
		t.Fatalf("sent %d, %v", sent, err)
	}
	dying = b.queued(ask("dying")).ID
	b.exec(`update work set sent_at = clock_timestamp(), telling_until = clock_timestamp() + interval '30 seconds' where id = $1`, dying)
	next := &sender{}
	if sent, err := work.Dispatch(t.Context(), b.db, next); err != nil || sent != 0 {
		t.Errorf("at once: told of %d, %v", sent, err)
	}
	b.exec(`update work set telling_until = telling_until - interval '1 minute'`)
	if sent, err := work.Dispatch(t.Context(), b.db, next); err != nil || !slices.Equal(next.told, []string{dying.String()}) {
		t.Errorf("later: told of %v (%d), %v; %s was told of before", next.told, sent, err, told)
	}
}

// TestPooled: behind a transaction pooler the types of arguments are not asked
// for, so every statement must make do without.
func TestPooled(t *testing.T) {
	t.Parallel()
	b := setup(t, postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), Pooled: true, MaxConns: 4}))
	item := ask("hello")
	item.Notify, item.Key, item.NarrowedBy = &work.Notify{Channel: "line", ChatID: "8"}, "k", []string{"alice"}
	id := b.queued(item).ID
	if sent, err := work.Dispatch(t.Context(), b.db, &sender{refuse: map[string]bool{id.String(): true}}); err != nil || sent != 0 {
		t.Errorf("sent %d, %v", sent, err)
	}
	l := b.claim(id)
	b.is("extend", true)(b.q.Extend(t.Context(), l))
	b.is("fail", true)(b.q.Fail(t.Context(), l, "away"))
	b.due(id)
	l = b.claim()
	if err := b.q.Release(t.Context(), l); err != nil {
		t.Error(err)
	}
	if err := b.q.Unheard(t.Context(), id); err != nil {
		t.Error(err)
	}
	b.is("done", true)(b.q.Done(t.Context(), b.claim(), "42"))
	if _, err := work.Sweep(t.Context(), b.db); err != nil {
		t.Error(err)
	}
	b.want(id, row{State: "done", Result: "42", Attempts: 2})
}
