package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/client/chat"
	"pawgate/internal/fault"
	"pawgate/internal/loop"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/router"
	"pawgate/internal/tool"
	"pawgate/internal/work"
	"pawgate/internal/worker"
)

type sendArgs struct {
	Channel string `json:"channel" doc:"Channel"`
	ChatID  string `json:"chat_id" doc:"Chat"`
	Text    string `json:"text" doc:"Text"`
	Key     string `json:"idempotency_key,omitempty" doc:"Key"`
}

type sendResult struct {
	Sent bool `json:"sent"`
}

// stage is a worker over a real queue and a real gate; messages go to a list, and
// the model is a function.
type stage struct {
	t      *testing.T
	db     *pgxpool.Pool
	worker worker.Worker
	model  func(ctx context.Context, gate loop.Gate, q loop.Request) (loop.Result, error)

	mu   sync.Mutex
	sent []string
	keys []string // of send_message, which knows a repetition by its key
	fail *fault.Fault
}

func newStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	s := &stage{t: t, db: postgrestest.Clone(t)}
	category := tool.Category{Name: "send", Tools: []tool.Tool{
		tool.Write("send_message", "Send.", func(_ context.Context, who caller.Caller, a sendArgs) (sendResult, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.fail != nil {
				return sendResult{}, s.fail
			}
			if slices.Contains(s.keys, a.Key) {
				return sendResult{true}, nil
			}
			s.keys = append(s.keys, a.Key)
			s.sent = append(s.sent, who.Agent+" "+a.ChatID+" "+a.Text)
			return sendResult{true}, nil
		}),
		tool.Write("send_photo", "Send, without a key.", func(_ context.Context, who caller.Caller, a sendArgs) (sendResult, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sent = append(s.sent, who.Agent+" "+a.ChatID+" "+a.Text)
			return sendResult{true}, nil
		}),
		tool.Read("send_look", "Look.", func(context.Context, caller.Caller, struct{}) (sendResult, error) { return sendResult{}, nil }),
	}}
	tools, err := catalog.Of(category)
	if err != nil {
		t.Fatal(err)
	}
	s.exec(`insert into agents (id, reports_to, allowed_tools, model) values ('alice', null, '{send_*}', 'm'), ('bob', 'alice', '{*}', 'm')`)
	gate := router.New(router.Config{Version: "test", Catalog: tools, DB: s.db, Now: time.Now, Timeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
		Backends: map[string]router.Backend{"send": router.InProcess{Table: tool.Assemble(category)}}})
	s.worker = worker.New(gate, chat.Config{}, worker.Models{Cheap: "small"}, "test")
	s.worker.Runner = func(gate loop.Gate) (worker.Runner, error) { return scripted{s, gate}, nil }
	s.model = func(context.Context, loop.Gate, loop.Request) (loop.Result, error) {
		return loop.Result{End: loop.Answered, Answer: "42"}, nil
	}
	return s
}

type scripted struct {
	s    *stage
	gate loop.Gate
}

func (r scripted) Run(ctx context.Context, q loop.Request) (loop.Result, error) {
	return r.s.model(ctx, r.gate, q)
}

func (s *stage) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

// enqueue adds work for bob, asked for by alice.
func (s *stage) enqueue(change func(*work.Item)) uuid.UUID {
	s.t.Helper()
	item := work.Item{Kind: work.KindPrompt, Source: "spawn_agent", Agent: "bob", From: "alice", Payload: work.Prompt{Prompt: "what is it?"}, Scopes: []string{"*"}}
	if change != nil {
		change(&item)
	}
	var queued work.Queued
	err := postgres.InTx(s.t.Context(), s.db, func(tx pgx.Tx) error {
		var err error
		queued, err = work.Enqueue(s.t.Context(), tx, item)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return queued.ID
}

func message(i *work.Item) {
	i.Kind, i.Source, i.Agent, i.From = work.KindCall, "reminder", "bob", "bob"
	i.Payload = work.Call{Tool: "send_message", Arguments: map[string]any{"channel": "line", "chat_id": "8", "text": "stand up"}}
}

// do claims one item and does it.
func (s *stage) do() {
	s.t.Helper()
	s.exec(`update work set run_at = now() where state = 'queued'`)
	leased, err := s.worker.Queue.Claim(s.t.Context(), 1)
	if err != nil || len(leased) != 1 {
		s.t.Fatalf("claimed %d, %v", len(leased), err)
	}
	if err := s.worker.Do(s.t.Context(), leased[0]); err != nil {
		s.t.Fatal(err)
	}
}

type row struct {
	State, Result, Error string
	Attempts             int
}

func (s *stage) row(id uuid.UUID) row {
	s.t.Helper()
	r, err := postgres.One[row](s.t.Context(), s.db, `select state, result, error, attempts from work where id = @id`, pgx.StrictNamedArgs{"id": id})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *stage) want(id uuid.UUID, want row) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.row(id)); diff != "" {
		s.t.Errorf("item (-want +got):\n%s", diff)
	}
}

func TestPrompt(t *testing.T) {
	s := newStage(t)
	s.exec(`insert into agent_souls (agent_id, version, content, written_by) values ('bob', 1, 'You were bob.', 'test'), ('bob', 2, 'You are bob.', 'test')`)
	var got loop.Request
	s.model = func(_ context.Context, _ loop.Gate, q loop.Request) (loop.Result, error) {
		got = q
		return loop.Result{End: loop.Answered, Answer: "42"}, nil
	}
	id := s.enqueue(nil)
	s.do()
	s.want(id, row{State: "done", Result: "42", Attempts: 1})
	want := loop.Request{Agent: "bob", Session: id.String(), Task: id.String(), Type: "dispatch", Model: "m", System: "You are bob.", Prompt: "what is it?"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run (-want +got):\n%s", diff)
	}
}

// TestPayer: what an ephemeral agent costs counts against its maker.
func TestPayer(t *testing.T) {
	s := newStage(t)
	s.exec(`insert into agents (id, reports_to, ephemeral, allowed_tools, model) values ('eph-1', 'bob', true, '{send_look}', 'm'), ('eph-2', 'eph-1', true, '{send_look}', 'm')`)
	var payer string
	s.model = func(ctx context.Context, gate loop.Gate, q loop.Request) (loop.Result, error) {
		payer = q.Agent
		listed, err := gate.List(ctx)
		if len(listed) != 1 {
			t.Errorf("it acts as itself, and lists %d tools", len(listed))
		}
		return loop.Result{End: loop.Answered, Answer: "42"}, err
	}
	s.enqueue(func(i *work.Item) { i.Agent = "eph-2" })
	s.do()
	if payer != "bob" {
		t.Errorf("%s pays", payer)
	}
}

func TestTierAndSession(t *testing.T) {
	s := newStage(t)
	session := func(prompt string) func(*work.Item) {
		return func(i *work.Item) {
			i.Session, i.Payload = "s", work.Prompt{Prompt: prompt, Tier: "cheap", System: "Be brief."}
		}
	}
	var last loop.Request
	s.model = func(_ context.Context, _ loop.Gate, q loop.Request) (loop.Result, error) {
		last = q
		return loop.Result{End: loop.Answered, Answer: "re " + q.Prompt}, nil
	}
	for _, prompt := range []string{"one", "two", "three"} {
		s.enqueue(session(prompt))
		s.do()
	}
	want := []chat.Message{{Role: chat.User, Text: "one"}, {Role: chat.Assistant, Text: "re one"}, {Role: chat.User, Text: "two"}, {Role: chat.Assistant, Text: "re two"}}
	if diff := cmp.Diff(want, last.History); diff != "" || last.Model != "small" || last.System != "Be brief." {
		t.Errorf("model %s, system %q, history (-want +got):\n%s", last.Model, last.System, diff)
	}
}

// TestEnds: what a run comes to, and whether it is tried again.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		result loop.Result
		err    error
		want   row
	}{
		{"cut", loop.Result{End: loop.Cut, Answer: "4"}, nil, row{State: "done", Result: "4\n[cut: the answer is longer than one completion may be]", Attempts: 1}},
		{"out of rounds", loop.Result{End: loop.Rounds, Answer: "still looking"}, nil, row{State: "dead", Error: "the run had as many rounds as it may have; its last words: still looking", Attempts: 1}},
		{"a fault that stays", loop.Result{End: loop.Failed}, fault.New("unpriced", "no price"), row{State: "dead", Error: "no price", Attempts: 1}},
		{"a fault that passes", loop.Result{End: loop.Failed}, fault.New(fault.Unavailable, "away"), row{State: "queued", Error: "away", Attempts: 1}},
		{"an accident", loop.Result{End: loop.Failed}, errors.New("dial tcp 10.0.0.7: secret"), row{State: "queued", Error: "internal error; the operator finds it in the log", Attempts: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.model = func(context.Context, loop.Gate, loop.Request) (loop.Result, error) { return c.result, c.err }
			id := s.enqueue(nil)
			s.do()
			s.want(id, c.want)
		})
	}
}

func TestPanic(t *testing.T) {
	s := newStage(t)
	s.model = func(context.Context, loop.Gate, loop.Request) (loop.Result, error) { panic("secret") }
	id := s.enqueue(nil)
	for range work.MaxAttempts {
		s.do()
	}
	s.want(id, row{State: "dead", Error: "internal error; the operator finds it in the log", Attempts: 3})
}

func TestNoModel(t *testing.T) {
	s := newStage(t)
	s.worker.Runner = worker.New(&router.Router{Config: router.Config{DB: s.db}}, chat.Config{}, worker.Models{}, "").Runner
	id := s.enqueue(nil)
	s.do()
	if r := s.row(id); !strings.Contains(r.Error, "PAWGATE_CHAT_URL") || r.State != "queued" {
		t.Errorf("without a model: %+v", r)
	}
}

// TestRights: a run may call what its agent may and each of those who asked,
// and nothing that they need leave for.
func TestRights(t *testing.T) {
	for _, c := range []struct {
		name, prepare string
		change        func(*work.Item)
		want          []string
	}{
		{"its own", ``, nil, []string{"send_message", "send_look"}},
		{"both may", ``, func(i *work.Item) { i.NarrowedBy = []string{"alice"} }, []string{"send_message", "send_look"}},
		{"the asker may not", `update agents set allowed_tools = '{send_look}' where id = 'alice'`, func(i *work.Item) { i.NarrowedBy = []string{"alice"} }, []string{"send_look"}},
		{"the asker is denied", `update agents set denied_tools = '{send_m*}' where id = 'alice'`, func(i *work.Item) { i.NarrowedBy = []string{"alice"} }, []string{"send_look"}},
		{"the asker needs an approval", `update agents set approval_required_tools = '{send_message}' where id = 'alice'`, func(i *work.Item) { i.NarrowedBy = []string{"alice"} }, []string{"send_look"}},
		{"the asker needs a grant", `update agents set scoped_tools = '{send_message}' where id = 'alice'`, func(i *work.Item) { i.NarrowedBy = []string{"alice"} }, []string{"send_look"}},
		{"the asker has rules", `update agents set rules = '[{"tool":"send_message","effect":"forbid"}]' where id = 'alice'`, func(i *work.Item) { i.NarrowedBy = []string{"alice"} }, []string{"send_look"}},
		{"the asker may nothing", `update agents set allowed_tools = '{}' where id = 'alice'`, func(i *work.Item) { i.NarrowedBy = []string{"alice"} }, nil},
		{"the asker had a narrow scope", ``, func(i *work.Item) { i.Scopes = []string{"send:read"} }, []string{"send_look"}},
		{"the asker had no scope", ``, func(i *work.Item) { i.Scopes = nil }, nil},
		{"asked from below", ``, func(i *work.Item) { i.NarrowedBy, i.Source = []string{"alice"}, work.Upwards }, nil},
		{"an ephemeral agent has the approvals itself", `update agents set approval_required_tools = '{send_message}' where id = 'alice'`,
			func(i *work.Item) { i.NarrowedBy, i.Source = []string{"alice"}, "spawn_ephemeral" }, []string{"send_message", "send_look"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			var listed []string
			s.model = func(ctx context.Context, gate loop.Gate, _ loop.Request) (loop.Result, error) {
				tools, err := gate.List(ctx)
				for _, tool := range tools {
					for _, name := range []string{"send_message", "send_look"} {
						if strings.Contains(string(tool), `"`+name+`"`) {
							listed = append(listed, name)
						}
					}
				}
				answer, failed := gate.Call(ctx, "send_message", []byte(`{"channel":"line","chat_id":"8","text":"x"}`), "k")
				if may := slices.Contains(c.want, "send_message"); failed == may {
					t.Errorf("send_message: %s", answer)
				}
				return loop.Result{End: loop.Answered}, err
			}
			id := s.enqueue(c.change)
			if c.prepare != "" {
				s.exec(c.prepare)
			}
			s.do()
			if diff := cmp.Diff(c.want, listed); diff != "" || s.row(id).State != "done" {
				t.Errorf("%+v, tools (-want +got):\n%s", s.row(id), diff)
			}
		})
	}
}

func TestCall(t *testing.T) {
	for _, c := range []struct {
		name, prepare string
		fail          *fault.Fault
		want          row
		sent          int
	}{
		{"sent", ``, nil, row{State: "done", Result: `{"status":"ok","sent":true}`, Attempts: 1}, 1},
		{"not allowed", `update agents set allowed_tools = '{}' where id = 'bob'`, nil, row{State: "dead", Error: "unknown tool: send_message", Attempts: 1}, 0},
		{"refused for good", ``, fault.New(fault.Denied, "blocked by the user"), row{State: "dead", Error: "blocked by the user", Attempts: 1}, 0},
		{"refused for now", ``, fault.Retry(fault.RateLimited, time.Second, "slow down"), row{State: "queued", Error: "slow down", Attempts: 1}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.fail = c.fail
			id := s.enqueue(message)
			if c.prepare != "" {
				s.exec(c.prepare)
			}
			s.do()
			s.want(id, c.want)
			if len(s.sent) != c.sent {
				t.Errorf("sent %v", s.sent)
			}
		})
	}
}

// forgetful is a database that loses the record of a result.
type forgetful struct{ postgres.DB }

func (f forgetful) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "finished_at = clock_timestamp()") {
		return nil, &pgconn.PgError{Code: "57P01", Message: "terminating connection"}
	}
	return f.DB.Query(ctx, sql, args...)
}

// TestLAM06: the message was sent and then the handler failed; the two retries
// of the platform send nothing.
func TestLAM06(t *testing.T) {
	for _, c := range []struct{ name, tool string }{{"the tool knows the key", "send_message"}, {"the gate knows it", "send_photo"}} {
		t.Run(c.name, func(t *testing.T) { lam06(t, c.tool) })
	}
}

func lam06(t *testing.T, tool string) {
	s := newStage(t)
	id := s.enqueue(func(i *work.Item) {
		message(i)
		i.Payload = work.Call{Tool: tool, Arguments: map[string]any{"channel": "line", "chat_id": "8", "text": "stand up"}}
	})
	good := s.worker.Queue.DB
	s.worker.Queue.DB = forgetful{good}
	leased, err := s.worker.Queue.Claim(t.Context(), 1)
	if err != nil || len(leased) != 1 {
		t.Fatal(err)
	}
	if err := s.worker.Do(t.Context(), leased[0]); err == nil {
		t.Fatal("the result was recorded")
	}
	s.worker.Queue.DB = good
	for range 2 {
		s.exec(`update work set lease_until = now() - interval '1 second' where state = 'running'`)
		if _, err := work.Sweep(t.Context(), s.db); err != nil {
			t.Fatal(err)
		}
		s.exec(`update work set run_at = now() where state = 'queued'`)
		response, err := s.worker.Batch(t.Context(), sqsBatch(id.String()))
		if err != nil || len(response.BatchItemFailures) != 0 {
			t.Fatalf("%+v, %v", response, err)
		}
	}
	s.want(id, row{State: "done", Result: `{"status":"ok","sent":true}`, Attempts: 2})
	if diff := cmp.Diff([]string{"bob 8 stand up"}, s.sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func sqsBatch(bodies ...string) events.SQSEvent {
	var e events.SQSEvent
	for i, body := range bodies {
		e.Records = append(e.Records, events.SQSMessage{MessageId: fmt.Sprint("m", i), Body: body})
	}
	return e
}

// picky is a database that cannot record the result of one item.
type picky struct {
	postgres.DB
	id uuid.UUID
}

func (p picky) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if named, ok := args[0].(pgx.StrictNamedArgs); ok && named["id"] == p.id && strings.Contains(sql, "finished_at = clock_timestamp()") {
		return nil, &pgconn.PgError{Code: "57P01"}
	}
	return p.DB.Query(ctx, sql, args...)
}

// TestLAM07: of a batch of ten the fourth fails; only that one is reported, and
// the other nine are done once, also when the batch comes again.
func TestLAM07(t *testing.T) {
	for _, c := range []struct {
		name    string
		spoil   func(s *stage, ids []string)
		failed  []string
		fourth  string // its state after
		answers int
	}{
		{"a message that is nothing", func(_ *stage, ids []string) { ids[3] = "nonsense" }, []string{"m3"}, "", 9},
		{"a result that cannot be recorded", func(s *stage, ids []string) { s.worker.Queue.DB = picky{s.db, uuid.MustParse(ids[3])} }, []string{"m3"}, "running", 9},
		{"an attempt that fails is recorded and not reported", func(s *stage, ids []string) {
			answered := s.model
			s.model = func(ctx context.Context, gate loop.Gate, q loop.Request) (loop.Result, error) {
				if q.Prompt == "3" {
					return loop.Result{End: loop.Failed}, fault.New(fault.Unavailable, "away")
				}
				return answered(ctx, gate, q)
			}
		}, nil, "queued", 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			var ran sync.Map
			var runs int
			s.model = func(_ context.Context, _ loop.Gate, q loop.Request) (loop.Result, error) {
				s.mu.Lock()
				runs++
				s.mu.Unlock()
				if _, again := ran.LoadOrStore(q.Prompt, true); again {
					t.Errorf("%s ran twice", q.Prompt)
				}
				return loop.Result{End: loop.Answered, Answer: q.Prompt}, nil
			}
			var ids []string
			for n := range 10 {
				ids = append(ids, s.enqueue(func(i *work.Item) { i.Payload = work.Prompt{Prompt: fmt.Sprint(n)} }).String())
			}
			fourth := uuid.MustParse(ids[3])
			c.spoil(s, ids)
			for range 2 {
				response, err := s.worker.Batch(t.Context(), sqsBatch(ids...))
				if err != nil {
					t.Fatal(err)
				}
				var failed []string
				for _, f := range response.BatchItemFailures {
					failed = append(failed, f.ItemIdentifier)
				}
				if diff := cmp.Diff(c.failed, failed); diff != "" {
					t.Errorf("reported (-want +got):\n%s", diff)
				}
				if c.fourth == "running" { // when the batch comes again, its lease still holds
					c.failed = nil
				}
			}
			if c.fourth != "" && s.row(fourth).State != c.fourth {
				t.Errorf("the fourth is %+v", s.row(fourth))
			}
			done, err := postgres.One[struct{ N int }](t.Context(), s.db, `select count(*) as n from work where state = 'done'`, nil)
			if err != nil || done.N != c.answers {
				t.Errorf("%d done, %v", done.N, err)
			}
		})
	}
}

// TestLostLease: a run that a stop comes over is ended, and records nothing.
func TestLostLease(t *testing.T) {
	s := newStage(t)
	s.worker.Queue.Lease = 400 * time.Millisecond
	ended := make(chan error, 1)
	s.model = func(ctx context.Context, _ loop.Gate, _ loop.Request) (loop.Result, error) {
		s.exec(`update work set state = 'cancelled', lease_until = null, finished_at = now(), error = 'an emergency stop'`)
		select {
		case <-ctx.Done():
			ended <- nil
		case <-time.After(20 * time.Second):
			ended <- errors.New("the run goes on")
		}
		return loop.Result{}, ctx.Err()
	}
	id := s.enqueue(nil)
	s.do()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.want(id, row{State: "cancelled", Error: "an emergency stop", Attempts: 1})
}

// TestServe: several items at once, a slow one delays no other, and what is
// under way at the end is given back untried.
func TestServe(t *testing.T) {
	s := newStage(t)
	s.model = func(ctx context.Context, _ loop.Gate, q loop.Request) (loop.Result, error) {
		if q.Prompt == "slow" {
			<-ctx.Done()
			return loop.Result{}, ctx.Err()
		}
		return loop.Result{End: loop.Answered, Answer: q.Prompt}, nil
	}
	slow := s.enqueue(func(i *work.Item) { i.Payload = work.Prompt{Prompt: "slow"} })
	for n := range 10 {
		s.enqueue(func(i *work.Item) { i.Payload = work.Prompt{Prompt: fmt.Sprint(n)} })
	}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { s.worker.Serve(ctx, 2) })
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		done, err := postgres.One[struct{ N int }](t.Context(), s.db, `select count(*) as n from work where state = 'done'`, nil)
		if err != nil || time.Now().After(end) {
			t.Fatalf("%d done, %v", done.N, err)
		}
		if done.N == 10 {
			break
		}
	}
	stop()
	serving.Wait()
	s.want(slow, row{State: "queued", Error: "the worker was stopped", Attempts: 0})
}

func TestUnheard(t *testing.T) {
	s := newStage(t)
	id := s.enqueue(nil)
	s.exec(`update work set sent_at = now()`)
	s.exec(`update agents set state = 'paused' where id = 'bob'`)
	response, err := s.worker.Batch(t.Context(), sqsBatch(id.String(), uuid.NewString()))
	if err != nil || len(response.BatchItemFailures) != 0 {
		t.Fatalf("%+v, %v", response, err)
	}
	s.exec(`update agents set state = 'active'`)
	sent := &told{}
	if n, err := work.Dispatch(t.Context(), s.db, sent); err != nil || n != 1 {
		t.Errorf("%d told again, %v", n, err)
	}
}

// TestTellsOfWhatItMadeDue: the notice of a result does not wait for the clock.
func TestTellsOfWhatItMadeDue(t *testing.T) {
	s := newStage(t)
	var heard heard
	s.worker.Tell = work.Teller(s.db, &heard, true)
	id := s.enqueue(func(i *work.Item) { i.Notify = &work.Notify{Channel: "line", ChatID: "8"} })
	if _, err := s.worker.Batch(t.Context(), sqsBatch(id.String())); err != nil {
		t.Fatal(err)
	}
	notice, err := postgres.One[struct{ ID string }](t.Context(), s.db, `select id::text from work where source = 'notice'`, nil)
	if diff := cmp.Diff([]string{notice.ID}, heard.ids); err != nil || diff != "" {
		t.Errorf("%v, told of (-want +got):\n%s", err, diff)
	}
	if _, err := s.worker.Batch(t.Context(), events.SQSEvent{}); err != nil || len(heard.ids) != 1 {
		t.Errorf("%v, the clock told of %v", err, heard.ids)
	}
}

type heard struct{ ids []string }

func (h *heard) Send(_ context.Context, ids []string) ([]string, error) {
	h.ids = append(h.ids, ids...)
	return nil, nil
}

type told struct{}

func (told) Send(context.Context, []string) ([]string, error) { return nil, nil }
