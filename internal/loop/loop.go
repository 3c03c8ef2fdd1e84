// Package loop lets a model use the tools: rounds of one completion and the
// calls that it asks for, until it answers in words.
//
// Every call goes through the gate, like any other door's: what the model is
// told of is what it may call at that moment, and a name that it was not told
// of is refused there. What a call comes to goes back to the model, refusals and
// errors too; only the end of the time, a stop of the agent and a provider that
// keeps failing end a run.
//
// A run keeps its state in memory. Whoever needs one to outlive the process
// keeps the Messages of its Result and starts another with them.
package loop

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"pawgate/internal/client/chat"
	"pawgate/internal/fault"
)

// Gate is where the tools are called: router.LoopDoor.
type Gate interface {
	// List gives what may be called now, as elements of MCP's tools/list. It
	// fails when the agent may call nothing at all: stopped, paused, unknown.
	List(ctx context.Context) ([]json.RawMessage, error)
	// Call runs one call with arguments that are a JSON object. Repeated with
	// the same key, a write gives its first outcome. It always comes to an
	// answer: a JSON object that begins with its status.
	Call(ctx context.Context, name string, arguments []byte, key string) (answer []byte, failed bool)
}

// Meter keeps what completions took: Ledger.
type Meter interface {
	// Priced tells whether a model's completions have a price.
	Priced(ctx context.Context, provider, model string) (bool, error)
	// Hold keeps money back for a completion that takes at most so much, in
	// every budget that covers it. It fails with fault.BudgetExceeded where one
	// has no room.
	Hold(ctx context.Context, most Spent) (hold string, err error)
	// Release lets go what was held for a completion that was not to be had.
	Release(ctx context.Context, hold string) error
	// Record keeps one completion's usage and lets go what was held for it.
	// priced says that micros is what it cost, in micro-dollars.
	Record(ctx context.Context, s Spent) (micros int64, priced bool, err error)
}

// Spent is one completion, as the meter keeps it.
type Spent struct {
	ID       string // the same again is the same completion
	At       time.Time
	Request  *Request
	Provider string
	Model    string // the one that served
	Usage    chat.Usage
	Hold     string // what was held for it; "": nothing
}

// Options are what runs are made of. Gate, Model and Meter are required.
type Options struct {
	Gate  Gate
	Model chat.Model
	Meter Meter
	// Notify is told what happens, from one goroutine at a time; nil: nobody is.
	Notify func(Event)
	Now    func() time.Time
	// Sleep waits between two attempts at a completion; nil: it really waits.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Request is one run.
type Request struct {
	Agent   string // in whose name; the gate's agent
	Session string // ties runs together in usage rows; "" is the run's own id
	User    string // for whom, in usage rows
	Task    string // of which task, in usage rows
	Type    string // what for: chat, dispatch or cron; "" is chat

	Model  string // what the provider calls it
	System string
	// History is an earlier run's Messages; Prompt is the user's next turn.
	History []chat.Message
	Prompt  string
	Limits  Limits
}

// End is why a run ended.
type End string

// The ends of a run. All but Answered leave the answer unfinished.
const (
	Answered  End = "answered"
	Cut       End = "cut"      // the last answer reached the most tokens of one completion
	Filtered  End = "filtered" // the model or its provider would not answer
	Rounds    End = "rounds"
	Tokens    End = "tokens"
	Money     End = "money"
	Time      End = "time"
	Failed    End = "failed" // with Run's error
	Cancelled End = "cancelled"
)

// Result is what a run came to. It is filled as far as the run went, also
// beside an error.
type Result struct {
	ID       string         `json:"id"`
	Answer   string         `json:"answer"` // the model's last words
	End      End            `json:"end"`
	Rounds   int            `json:"rounds"` // completions
	Calls    int            `json:"calls"`  // tool calls that were sent to the gate
	Usage    chat.Usage     `json:"usage"`
	Micros   int64          `json:"cost_micros"` // micro-dollars, of the completions that have a price
	Unpriced int            `json:"unpriced"`    // completions without a price
	Messages []chat.Message `json:"-"`
}

// Loop runs requests. It is safe for concurrent use, except that Notify is then
// told of all runs at once.
type Loop struct{ Options }

// New is a loop. It does no I/O.
func New(o Options) *Loop {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Notify == nil {
		o.Notify = func(Event) {}
	}
	return &Loop{o}
}

// run is one run on its way.
type run struct {
	*Loop
	request *Request
	limits  Limits
	result  *Result
	last    int64 // tokens that the last prompt had
}

// errTime ends a run whose wall clock is up.
var errTime = errors.New("the time of this run is up")

// Run runs a request to its end. A limit that is reached is no error: it is the
// End of the result. An error is a provider that kept failing, an agent that
// may not act, usage that could not be recorded, the end of ctx, or a budget of
// the agent or the user that is spent (fault.BudgetExceeded, with the end Money).
func (l *Loop) Run(ctx context.Context, q Request) (Result, error) {
	r := &run{Loop: l, request: &q, limits: q.Limits.orDefaults(), result: &Result{ID: strings.ToLower(rand.Text()[:20])}}
	r.result.Messages = append(r.result.Messages, q.History...)
	if q.Prompt != "" {
		r.result.Messages = append(r.result.Messages, chat.Message{Role: chat.User, Text: q.Prompt})
	}
	if q.Session == "" {
		q.Session = r.result.ID
	}
	if len(r.result.Messages) == 0 {
		r.result.End = Failed
		return *r.result, errors.New("there is nothing to answer: the prompt is empty")
	}
	if err := r.affordable(ctx); err != nil {
		r.result.End = Failed
		return *r.result, err
	}
	inside, cancel := context.WithTimeoutCause(ctx, r.limits.Wall, errTime)
	defer cancel()
	end, err := r.rounds(inside)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		end, err = Cancelled, context.Cause(ctx)
	case errors.Is(context.Cause(inside), errTime):
		end, err = Time, nil
	case overBudget(err):
		end = Money
	default:
		end = Failed
	}
	r.result.End = end
	return *r.result, err
}

func overBudget(err error) bool {
	f, ok := fault.Of(err)
	return ok && f.Reason == fault.BudgetExceeded
}

// rounds is the loop itself.
func (r *run) rounds(ctx context.Context) (End, error) {
	for {
		if end := r.exhausted(); end != "" {
			return end, nil
		}
		tools, err := r.tools(ctx)
		if err != nil {
			return Failed, err
		}
		last := r.result.Rounds+1 >= r.limits.Rounds
		turn, err := r.complete(ctx, tools, last)
		if err != nil {
			return Failed, err
		}
		r.result.Messages = append(r.result.Messages, turn.Message)
		if turn.Text != "" {
			r.result.Answer = turn.Text
			if len(turn.Calls) > 0 { // else it is the answer, which Run gives
				r.Notify(Event{Kind: Said, Round: r.result.Rounds, Text: turn.Text})
			}
		}
		switch {
		case len(turn.Calls) == 0:
			return map[chat.Stop]End{chat.Length: Cut, chat.Filtered: Filtered}[turn.Stop].or(Answered), nil
		case last: // nobody would read what they come to
			return Rounds, nil
		}
		r.result.Messages = append(r.result.Messages, chat.Message{Role: chat.User, Results: r.calls(ctx, turn)})
		if ctx.Err() != nil {
			return Failed, ctx.Err()
		}
	}
}

func (e End) or(other End) End {
	if e == "" {
		return other
	}
	return e
}

// tools is what the model is told of.
func (r *run) tools(ctx context.Context) ([]chat.Tool, error) {
	listed, err := r.Gate.List(ctx)
	if err != nil {
		return nil, err
	}
	tools := make([]chat.Tool, len(listed))
	for i, raw := range listed {
		var t struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, fmt.Errorf("read listed tool: %w", err)
		}
		tools[i] = chat.Tool{Name: t.Name, About: t.Description, Schema: t.InputSchema}
	}
	return tools, nil
}
