package worker

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/client/chat"
	"pawgate/internal/fault"
	"pawgate/internal/loop"
	"pawgate/internal/postgres"
	"pawgate/internal/router"
	"pawgate/internal/usage"
	"pawgate/internal/work"
)

var (
	//go:embed agent.sql
	agentSQL string
	//go:embed history.sql
	historySQL string
)

// errInternal is all that is said of an accident; the log has its cause.
var errInternal = errors.New("internal error; the operator finds it in the log")

// maxHistory is how many earlier tasks of a session a run is told of.
const maxHistory = 10

// ends says why a run without an answer ended.
var ends = map[loop.End]string{
	loop.Rounds: "the run had as many rounds as it may have", loop.Tokens: "the run had as many tokens as it may have",
	loop.Money: "the run spent what it may", loop.Time: "the run's time was up", loop.Filtered: "the model or its provider would not answer",
}

// prompt has a model answer.
func (w Worker) prompt(ctx context.Context, l work.Leased, gate loop.Gate) outcome {
	runner, err := w.Runner(gate)
	if err != nil {
		return outcome{err: fault.New(fault.NotConfigured, "no model is configured for agents that run by themselves: %s", err)}
	}
	q, err := w.request(ctx, l)
	if err != nil {
		return outcome{err: err}
	}
	result, err := runner.Run(ctx, q)
	switch {
	case err != nil:
		return outcome{err: err, final: permanent(err)}
	case result.End == loop.Answered:
		return outcome{answer: result.Answer}
	case result.End == loop.Cut:
		return outcome{answer: result.Answer + "\n[cut: the answer is longer than one completion may be]"}
	}
	why := cmp.Or(ends[result.End], "the run ended: "+string(result.End))
	if result.Answer != "" {
		why += "; its last words: " + result.Answer
	}
	return outcome{err: fault.New("run_ended", "%s", why), final: true} // another one would cost the same again
}

// request is the run of an item.
func (w Worker) request(ctx context.Context, l work.Leased) (loop.Request, error) {
	p, err := l.Prompt()
	if err != nil {
		return loop.Request{}, err
	}
	agent, err := postgres.One[struct{ Model, Soul, Payer string }](ctx, w.Queue.DB, agentSQL, pgx.StrictNamedArgs{"agent": l.Agent})
	if err != nil {
		return loop.Request{}, fmt.Errorf("read agent: %w", err)
	}
	q := loop.Request{Agent: agent.Payer, Session: cmp.Or(l.Session, l.RootID.String()), Task: l.ID.String(), Type: string(usage.Dispatch), Prompt: p.Prompt,
		System: cmp.Or(p.System, agent.Soul, fmt.Sprintf("You are agent %s. %s", l.Agent, router.Instructions))}
	if l.Source == "schedule" || l.Source == "reminder" {
		q.Type = string(usage.Cron)
	}
	tier := map[string]string{"cheap": w.Models.Cheap, "preferred": w.Models.Preferred}[p.Tier]
	if q.Model = cmp.Or(tier, agent.Model, w.Models.Default); q.Model == "" {
		return q, fault.New(fault.NotConfigured, "agent %s names no model and PAWGATE_CHAT_MODEL is not set", l.Agent)
	}
	q.History, err = w.history(ctx, l)
	return q, err
}

// history are the earlier tasks of the item's session, by the same asker.
func (w Worker) history(ctx context.Context, l work.Leased) ([]chat.Message, error) {
	if l.Session == "" {
		return nil, nil
	}
	earlier, err := postgres.All[struct{ Prompt, Result string }](ctx, w.Queue.DB, historySQL, pgx.StrictNamedArgs{
		"agent": l.Agent, "from": l.From, "session": l.Session, "id": l.ID, "before": l.CreatedAt, "limit": maxHistory})
	if err != nil {
		return nil, fmt.Errorf("read session: %w", err)
	}
	var messages []chat.Message
	for _, e := range earlier {
		messages = append(messages, chat.Message{Role: chat.User, Text: e.Prompt}, chat.Message{Role: chat.Assistant, Text: e.Result})
	}
	return messages, nil
}

// call makes one tool call. Its key is the item's, so it is done once, whatever
// becomes of the attempts. send_message takes such a key itself and goes on with
// a message of which some parts were sent, which the gate could only refuse; so
// there each attempt is a call of its own.
func (w Worker) call(ctx context.Context, l work.Leased, gate loop.Gate) outcome {
	c, err := l.Call()
	if err != nil || c.Arguments == nil {
		return outcome{err: cmp.Or(err, errInternal), final: true}
	}
	key := "work/" + l.ID.String()
	gateKey := key
	if c.Tool == "send_message" {
		c.Arguments["idempotency_key"] = key
		gateKey = fmt.Sprintf("%s/%d", key, l.Fence)
	}
	arguments, err := json.Marshal(c.Arguments)
	if err != nil {
		return outcome{err: err, final: true}
	}
	answer, failed := gate.Call(ctx, c.Tool, arguments, gateKey)
	if !failed {
		return outcome{answer: string(answer)}
	}
	f := new(fault.Fault)
	if err := json.Unmarshal(answer, f); err != nil {
		return outcome{err: errInternal}
	}
	return outcome{err: f, final: permanent(f)}
}

// passing are the reasons that go away by waiting, or where a repetition with
// the same key tells what became of the first attempt.
var passing = map[fault.Reason]bool{
	fault.Unavailable: true, fault.RateLimited: true, fault.InProgress: true, fault.DeadlineExceeded: true, fault.Cancelled: true,
	fault.OutcomeUnknown: true, fault.SidecarUnreachable: true, fault.FunctionFailed: true, fault.Internal: true, fault.Stopped: true,
}

// permanent reports whether another attempt would fail alike.
func permanent(err error) bool {
	f, ok := fault.Of(err)
	return ok && !passing[f.Reason] && f.RetryAfter == 0
}

// shown is what people see of an error: a fault's own words, and of an accident
// only that there was one.
func shown(err error) string {
	if f, ok := fault.Of(err); ok {
		return f.Message
	}
	var said *chat.Error
	if errors.As(err, &said) {
		return said.Error()
	}
	return errInternal.Error()
}
