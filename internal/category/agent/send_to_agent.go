package agent

import (
	"context"
	"strings"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/work"
)

type sendToAgentArgs struct {
	AgentID string `json:"agent_id" doc:"A report or superior of yours" maxlen:"64"`
	Prompt  string `json:"prompt" doc:"-" maxlen:"100000"`
	notifyArgs
}

// Validate checks what needs no database.
func (a sendToAgentArgs) Validate() error {
	if strings.TrimSpace(a.Prompt) == "" {
		return fault.Invalid("prompt", "prompt must not be empty")
	}
	return a.check()
}

// sendToAgent queues a message. A report answers it with its own rights: who is
// above it may change its persona anyway. A superior does not lend its rights to
// those below: see work.Upwards.
func (c agent) sendToAgent(ctx context.Context, who caller.Caller, a sendToAgentArgs) (queuedResult, error) {
	return c.give(ctx, who, delegate{item: work.Item{
		Source: "send_to_agent", Agent: a.AgentID, Payload: work.Prompt{Prompt: a.Prompt}, Notify: a.place(),
	}})
}
