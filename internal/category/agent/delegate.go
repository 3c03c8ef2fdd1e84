package agent

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/work"
)

//go:embed delegate.sql
var delegateSQL string

// notifyArgs say where a result is told besides check_responses.
type notifyArgs struct {
	Channel string `json:"notify_channel,omitempty" doc:"-" maxlen:"32"`
	ChatID  string `json:"notify_chat_id,omitempty" doc:"-" maxlen:"200"`
}

func (a notifyArgs) check() error {
	return work.CheckNotify(work.Notify{Channel: a.Channel, ChatID: a.ChatID})
}

func (a notifyArgs) place() *work.Notify {
	if a.Channel == "" {
		return nil
	}
	return &work.Notify{Channel: a.Channel, ChatID: a.ChatID}
}

// queuedResult is the receipt of work that was given to an agent.
type queuedResult struct {
	MessageID string `json:"message_id"`
	AgentID   string `json:"agent_id"`
	State     string `json:"state"` // queued
	Depth     int    `json:"depth"` // hops from the first request
	Note      string `json:"note"`
}

// delegate is one piece of work for another agent, not yet checked.
type delegate struct {
	item work.Item
	// below asks for an agent that reports to the caller; otherwise one above
	// will do.
	below bool
}

// give checks that the caller may ask the agent, and queues the work. It fails
// with fault.NotFound alike for an agent that does not exist and one that the
// caller may not ask, with fault.Conflict for the caller itself or an agent that
// is not at work, and as work.Enqueue does.
func (c agent) give(ctx context.Context, who caller.Caller, d delegate) (queuedResult, error) {
	var queued work.Queued
	err := postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		above, err := mayAsk(ctx, tx, who, d.item.Agent, d.below)
		if err != nil {
			return err
		}
		if above { // its run answers, and calls nothing on the words of one below it
			d.item.Source, d.item.NarrowedBy = work.Upwards, []string{who.Agent}
		}
		queued, err = enqueue(ctx, tx, who, d.item)
		return err
	})
	if err != nil {
		return queuedResult{}, err
	}
	c.tell(ctx)
	r := receipt(queued, d.item.Agent)
	if d.item.Source == work.Upwards {
		r.Note += ". " + upwardsNote
	}
	return r, nil
}

func enqueue(ctx context.Context, tx pgx.Tx, who caller.Caller, item work.Item) (work.Queued, error) {
	item.Kind, item.From, item.Scopes, item.Parent = work.KindPrompt, who.Agent, work.Scopes(who), work.Parent(who)
	return work.Enqueue(ctx, tx, item)
}

func receipt(queued work.Queued, agentID string) queuedResult {
	return queuedResult{MessageID: queued.ID.String(), AgentID: agentID, State: "queued", Depth: queued.Depth,
		Note: "the answer is not there yet; check_responses shows it. Do not make one up"}
}

// upwardsNote keeps a report from waiting for what does not come.
const upwardsNote = "Your superior answers without tools, from what you tell it: it looks nothing up, and does nothing, on your words"

// mayAsk applies the rule of delegation: agents ask those that report to them
// and those that they report to, directly or through others, never themselves;
// an operator's credential asks anyone. It tells whether the agent is above.
func mayAsk(ctx context.Context, db postgres.DB, who caller.Caller, agentID string, below bool) (above bool, err error) {
	if agentID == who.Agent {
		return false, fault.New(fault.Conflict, "you cannot give work to yourself; do it, or use spawn_ephemeral")
	}
	found, err := postgres.One[struct {
		State          string
		Stopped, Above bool
	}](ctx, db, delegateSQL, pgx.StrictNamedArgs{"agent": who.Agent, "operator": who.Operator(), "agent_id": agentID})
	switch {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && found.Above && below:
		return false, fault.New(fault.NotFound, "no agent %s that you may give work to; list_agents shows those that report to you", agentID)
	case err != nil:
		return false, fmt.Errorf("look up agent: %w", err)
	case found.State != "active":
		return false, fault.New(fault.Conflict, "agent %s is %s and does no work; nothing was queued", agentID, found.State)
	case found.Stopped:
		return false, fault.New(fault.Conflict, "an emergency stop covers agent %s; nothing was queued", agentID)
	}
	return found.Above, nil
}

func (c agent) tell(ctx context.Context) {
	if c.Tell != nil {
		c.Tell(ctx)
	}
}
