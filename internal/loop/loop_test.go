package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/client/chat"
	"pawgate/internal/loop"
)

// model gives its turns in order; a turn is a completion or an error. The
// last one is given for ever.
type model struct {
	turns []any
	asked []chat.Request
}

func (m *model) Provider() string { return "fake" }

func (m *model) Complete(ctx context.Context, q chat.Request) (chat.Completion, error) {
	m.asked = append(m.asked, q)
	turn := m.turns[min(len(m.asked), len(m.turns))-1]
	switch turn := turn.(type) {
	case error:
		return chat.Completion{}, turn
	case func(context.Context) error:
		return chat.Completion{}, turn(ctx)
	}
	return turn.(chat.Completion), nil
}

func words(text string) chat.Completion {
	return chat.Completion{Message: chat.Message{Role: chat.Assistant, Text: text}, Stop: chat.Done, Usage: chat.Usage{Input: 100, Output: 10}}
}

// asks is a turn that calls tool "t" with each of the arguments.
func asks(arguments ...string) chat.Completion {
	c := chat.Completion{Message: chat.Message{Role: chat.Assistant}, Stop: chat.Calls, Usage: chat.Usage{Input: 100, Output: 10}}
	for i, a := range arguments {
		c.Calls = append(c.Calls, chat.Call{ID: fmt.Sprint("c", i), Name: "t", Arguments: a, Broken: !json.Valid([]byte(a))})
	}
	return c
}

// door is a gate of one tool.
type door struct {
	call func(ctx context.Context, arguments string) (string, bool)
	mu   sync.Mutex
	keys []string
}

func (d *door) List(context.Context) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(`{"name":"t","description":"A tool.","inputSchema":{"type":"object"}}`)}, nil
}

func (d *door) Call(ctx context.Context, _ string, arguments []byte, key string) ([]byte, bool) {
	d.mu.Lock()
	d.keys = append(d.keys, key)
	d.mu.Unlock()
	text, failed := d.call(ctx, string(arguments))
	return []byte(text), failed
}

func echo(_ context.Context, arguments string) (string, bool) { return arguments, false }

// play runs a script to its end.
func play(t *testing.T, ctx context.Context, d *door, m *model, q loop.Request, options ...func(*loop.Options)) (loop.Result, error) {
	t.Helper()
	if d == nil {
		d = &door{call: echo}
	}
	o := loop.Options{Gate: d, Model: m, Meter: &meter{price: 1}}
	for _, option := range options {
		option(&o)
	}
	q.Agent, q.Model = "a", "m"
	if q.Prompt == "" {
		q.Prompt = "go"
	}
	return loop.New(o).Run(ctx, q)
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits loop.Limits
		turns  []any
		end    loop.End
		rounds int
		calls  int
	}{
		"rounds":                    {loop.Limits{Rounds: 3}, []any{asks(`{}`)}, loop.Rounds, 3, 2},
		"rounds by default":         {loop.Limits{}, []any{asks(`{}`)}, loop.Rounds, 20, 19},
		"tokens, before the spent":  {loop.Limits{Tokens: 300}, []any{asks(`{}`)}, loop.Tokens, 2, 2},
		"money":                     {loop.Limits{Micros: 250}, []any{asks(`{}`)}, loop.Money, 3, 3},
		"an answer in the last one": {loop.Limits{Rounds: 1}, []any{words("yes")}, loop.Answered, 1, 0},
		"cut":                       {loop.Limits{}, []any{chat.Completion{Message: chat.Message{Text: "hal"}, Stop: chat.Length}}, loop.Cut, 1, 0},
		"filtered":                  {loop.Limits{}, []any{chat.Completion{Stop: chat.Filtered}}, loop.Filtered, 1, 0},
		"nothing said":              {loop.Limits{}, []any{chat.Completion{Stop: chat.Done}}, loop.Answered, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &model{turns: c.turns}
			got, err := play(t, t.Context(), nil, m, loop.Request{Limits: c.limits})
			if err != nil || got.End != c.end || got.Rounds != c.rounds || got.Calls != c.calls || len(m.asked) != c.rounds {
				t.Errorf("%+v, %v, asked %d times", got, err, len(m.asked))
			}
			if got := m.asked[len(m.asked)-1].NoCalls; got != (c.rounds == max(c.limits.Rounds, 20*min(1, c.rounds/20))) {
				t.Errorf("the last round may call: %v", !got)
			}
		})
	}
}

// The answer's room shrinks with the tokens that are left.
func TestRoomShrinks(t *testing.T) {
	t.Parallel()
	m := &model{turns: []any{asks(`{}`), words("ok")}}
	if _, err := play(t, t.Context(), nil, m, loop.Request{Limits: loop.Limits{Tokens: 250, Output: 200}}); err != nil {
		t.Fatal(err)
	}
	if m.asked[0].MaxTokens != 200 || m.asked[1].MaxTokens != 250-110-110 {
		t.Errorf("room %d, then %d", m.asked[0].MaxTokens, m.asked[1].MaxTokens)
	}
}

// A server that tells no usage is charged by an estimate, so limits hold.
func TestUsageNotTold(t *testing.T) {
	t.Parallel()
	turn := asks(`{}`)
	turn.Usage = chat.Usage{}
	got, err := play(t, t.Context(), nil, &model{turns: []any{turn}}, loop.Request{Prompt: strings.Repeat("long ", 300), Limits: loop.Limits{Tokens: 2000}})
	if err != nil || got.End != loop.Tokens || got.Usage.Input < 500 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestResultsAreCut(t *testing.T) {
	t.Parallel()
	const most = 200
	for name, text := range map[string]string{"plain": strings.Repeat("x", 999), "three bytes a character": strings.Repeat("備", 333), "short": "備份", "just fits": strings.Repeat("x", most)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &model{turns: []any{asks(`{}`), words("ok")}}
			d := &door{call: func(context.Context, string) (string, bool) { return text, false }}
			if _, err := play(t, t.Context(), d, m, loop.Request{Limits: loop.Limits{Result: most}}); err != nil {
				t.Fatal(err)
			}
			got := m.asked[1].Messages[2].Results[0].Text
			if len(got) > most || !utf8.ValidString(got) {
				t.Errorf("%d bytes: %q", len(got), got)
			}
			if whole := len(text) <= most; whole != (got == text) || !whole && !strings.Contains(got, fmt.Sprintf("beginning of %d bytes", len(text))) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Calls of one turn run at once, up to the limit, and their results keep their
// order.
func TestCallsAreParallel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		d := &door{call: func(_ context.Context, arguments string) (string, bool) {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return arguments, false
		}}
		m := &model{turns: []any{asks(`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`), words("ok")}}
		started := time.Now()
		if _, err := play(t, t.Context(), d, m, loop.Request{Limits: loop.Limits{Parallel: 4}}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(started); took != 2*time.Second || most != 4 {
			t.Errorf("took %s, %d at once", took, most)
		}
		for i, r := range m.asked[1].Messages[2].Results {
			if r.Text != fmt.Sprintf(`{"n":%d}`, i) || r.ID != fmt.Sprint("c", i) {
				t.Errorf("result %d: %+v", i, r)
			}
		}
		if len(d.keys) != 5 || d.keys[0] == d.keys[1] {
			t.Errorf("keys %q", d.keys)
		}
	})
}

func TestUnfitCallsGoBack(t *testing.T) {
	t.Parallel()
	many := make([]string, 70)
	for i := range many {
		many[i] = `{}`
	}
	cut := asks(`{"to":"everybody"}`)
	cut.Stop = chat.Length
	for name, c := range map[string]struct {
		turn chat.Completion
		at   int
		want string
		ran  int
	}{
		"broken arguments":      {asks(`{"text":`, `{}`), 0, `were: {"text":","reason":"invalid_argument","status":"error"}`, 1},
		"a turn that was cut":   {cut, 0, `"reason":"cut_off"`, 0},
		"more than can be run":  {asks(many...), 69, `"reason":"too_many_calls"`, 64},
		"long broken arguments": {asks(`{"text":"` + strings.Repeat("備", 500)), 0, `beginning of 1509 bytes`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, m := &door{call: echo}, &model{turns: []any{c.turn, words("ok")}}
			got, err := play(t, t.Context(), d, m, loop.Request{})
			if err != nil || got.Calls != c.ran || len(d.keys) != c.ran {
				t.Errorf("%+v, %v, %d ran", got, err, len(d.keys))
			}
			results := m.asked[1].Messages[2].Results
			if r := results[c.at]; !r.Failed || !strings.Contains(strings.ReplaceAll(r.Text, `\"`, `"`), c.want) || len(r.Text) > 2000 {
				t.Errorf("the model saw %q", r.Text)
			}
			if len(results) != len(c.turn.Calls) {
				t.Errorf("%d results for %d calls", len(results), len(c.turn.Calls))
			}
		})
	}
}

func TestProviderErrors(t *testing.T) {
	t.Parallel()
	again := &chat.Error{Status: 503, Text: "busy", Again: true}
	for name, c := range map[string]struct {
		turns  []any
		limits loop.Limits
		want   string // of the error
		asked  int
		least  time.Duration
		most   time.Duration
	}{
		"passes":                        {[]any{again, again, words("ok")}, loop.Limits{}, "", 3, 1500 * time.Millisecond, 3 * time.Second},
		"retry-after is kept":           {[]any{&chat.Error{Text: "limit", Again: true, After: 40 * time.Second}, words("ok")}, loop.Limits{}, "", 2, 40 * time.Second, 40 * time.Second},
		"does not pass":                 {[]any{again}, loop.Limits{Attempts: 3}, "busy", 3, time.Second, 3 * time.Second},
		"asking again would not help":   {[]any{&chat.Error{Status: 400, Text: "bad"}}, loop.Limits{}, "bad", 1, 0, 0},
		"the pause would outlast a run": {[]any{&chat.Error{Text: "limit", Again: true, After: time.Hour}}, loop.Limits{}, "limit; to wait 1h0m0s for it would outlast the run", 1, 0, 0},
		"not the provider's":            {[]any{errors.New("encode")}, loop.Limits{}, "encode", 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &model{turns: c.turns}
				var waits int
				started := time.Now()
				got, err := play(t, t.Context(), nil, m, loop.Request{Limits: c.limits}, func(o *loop.Options) {
					o.Notify = func(e loop.Event) {
						if e.Kind == loop.Waited {
							waits++
						}
					}
				})
				took := time.Since(started)
				if c.want == "" && (err != nil || got.End != loop.Answered) || c.want != "" && (err == nil || err.Error() != c.want || got.End != loop.Failed) {
					t.Errorf("%+v, %v", got, err)
				}
				if len(m.asked) != c.asked || waits != c.asked-1 || took < c.least || took > c.most {
					t.Errorf("asked %d times, %d pauses, took %s", len(m.asked), waits, took)
				}
			})
		})
	}
}

func TestTimeAndCancellation(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	stuck := func() *door {
		return &door{call: func(ctx context.Context, _ string) (string, bool) {
			<-ctx.Done()
			return `{"status":"error","reason":"deadline_exceeded"}`, true
		}}
	}
	for name, c := range map[string]struct {
		turns  []any
		cancel bool
		end    loop.End
	}{
		"time is up at the provider":   {[]any{hang}, false, loop.Time},
		"time is up in a call":         {[]any{asks(`{}`)}, false, loop.Time},
		"time is up in a pause":        {[]any{&chat.Error{Again: true, After: 50 * time.Second, Text: "busy"}, hang}, false, loop.Time},
		"cancelled at the provider":    {[]any{hang}, true, loop.Cancelled},
		"cancelled in a call":          {[]any{asks(`{}`)}, true, loop.Cancelled},
		"cancelled in a pause":         {[]any{&chat.Error{Again: true, After: 50 * time.Second, Text: "busy"}}, true, loop.Cancelled},
		"cancelled after the answer":   {[]any{words("ok")}, true, loop.Answered},
		"cancelled between two rounds": {[]any{asks(`{}`), hang}, true, loop.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel {
					time.AfterFunc(20*time.Second, cancel)
				}
				got, err := play(t, ctx, stuck(), &model{turns: c.turns}, loop.Request{Limits: loop.Limits{Wall: time.Minute}})
				if got.End != c.end || (c.end == loop.Cancelled) != errors.Is(err, context.Canceled) || c.end != loop.Cancelled && err != nil {
					t.Errorf("%+v, %v", got, err)
				}
			})
		})
	}
}

// Usage is on record before anything else happens with a turn, and a run whose
// usage cannot be kept spends no more.
func TestUsageIsKept(t *testing.T) {
	t.Parallel()
	t.Run("when the run is cancelled at that moment", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		kept := &meter{price: 1}
		m := &model{turns: []any{asks(`{}`)}}
		d := &door{call: func(context.Context, string) (string, bool) { cancel(); return `{}`, false }}
		got, err := play(t, ctx, d, m, loop.Request{}, func(o *loop.Options) { o.Meter = kept })
		if !errors.Is(err, context.Canceled) || len(kept.spent) != 1 || got.Usage.Total() != 110 {
			t.Errorf("%+v, %v, %d kept", got, err, len(kept.spent))
		}
	})
	t.Run("or the run ends", func(t *testing.T) {
		t.Parallel()
		m := &model{turns: []any{asks(`{}`)}}
		got, err := play(t, t.Context(), nil, m, loop.Request{}, func(o *loop.Options) { o.Meter = &meter{err: errors.New("no database")} })
		if err == nil || got.End != loop.Failed || len(m.asked) != 1 || got.Calls != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("a limit of money needs a price", func(t *testing.T) {
		t.Parallel()
		m := &model{turns: []any{words("ok")}}
		got, err := play(t, t.Context(), nil, m, loop.Request{Limits: loop.Limits{Micros: 5}}, func(o *loop.Options) { o.Meter = &meter{} })
		if err == nil || !strings.Contains(err.Error(), "has no price") || len(m.asked) != 0 || got.End != loop.Failed {
			t.Errorf("%+v, %v, asked %d times", got, err, len(m.asked))
		}
	})
	t.Run("without a price it is counted as unpriced", func(t *testing.T) {
		t.Parallel()
		got, err := play(t, t.Context(), nil, &model{turns: []any{words("ok")}}, loop.Request{}, func(o *loop.Options) { o.Meter = &meter{} })
		if err != nil || got.Unpriced != 1 || got.Micros != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A run goes on where another ended.
func TestHistory(t *testing.T) {
	t.Parallel()
	first, err := play(t, t.Context(), nil, &model{turns: []any{asks(`{}`), words("one")}}, loop.Request{Prompt: "first"})
	if err != nil {
		t.Fatal(err)
	}
	m := &model{turns: []any{words("two")}}
	if _, err := play(t, t.Context(), nil, m, loop.Request{Prompt: "second", History: first.Messages}); err != nil {
		t.Fatal(err)
	}
	want := append(append([]chat.Message{}, first.Messages...), chat.Message{Role: chat.User, Text: "second"})
	if diff := cmp.Diff(want, m.asked[0].Messages); diff != "" || len(want) != 5 {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	empty := &model{turns: []any{words("x")}}
	if _, err := loop.New(loop.Options{Gate: &door{call: echo}, Model: empty, Meter: &meter{}}).Run(t.Context(), loop.Request{}); err == nil || len(empty.asked) != 0 {
		t.Errorf("nothing to answer: %v", err)
	}
}

// What happens is told in order, one thing at a time.
func TestEvents(t *testing.T) {
	t.Parallel()
	turn := asks(`{}`, `{`)
	turn.Text = "let me see"
	var got []string
	d := &door{call: func(context.Context, string) (string, bool) { return `{"x":1}`, true }}
	if _, err := play(t, t.Context(), d, &model{turns: []any{turn, words("ok")}}, loop.Request{Limits: loop.Limits{Parallel: 1}}, func(o *loop.Options) {
		o.Notify = func(e loop.Event) { got = append(got, fmt.Sprintf("%d %s %s %v", e.Round, e.Kind, e.Tool, e.Failed)) }
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 completed  false", "1 said  false", "1 called t false", "1 returned t true", "1 returned t true", "2 completed  false"}
	if len(got) == len(want) && got[2] != want[2] { // the broken one may be told of first
		got[2], got[3], got[4] = got[3], got[4], got[2]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
