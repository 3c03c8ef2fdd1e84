package agent

import (
	"context"
	"strings"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/work"
)

type spawnAgentArgs struct {
	AgentID    string `json:"agent_id" doc:"A report of yours" maxlen:"64"`
	Task       string `json:"task" doc:"Prompt" maxlen:"100000"`
	SessionKey string `json:"session_key,omitempty" doc:"Goes on with its earlier tasks" maxlen:"100"`
	notifyArgs
}

// Validate checks what needs no database.
func (a spawnAgentArgs) Validate() error {
	if strings.TrimSpace(a.Task) == "" {
		return fault.Invalid("task", "task must not be empty")
	}
	return a.check()
}

// spawnAgent queues a task. Its run may call what both the other agent and the
// caller may: nobody gets at a tool by sending somebody else.
func (c agent) spawnAgent(ctx context.Context, who caller.Caller, a spawnAgentArgs) (queuedResult, error) {
	return c.give(ctx, who, delegate{below: true, item: work.Item{
		Source: "spawn_agent", Agent: a.AgentID, Payload: work.Prompt{Prompt: a.Task},
		Session: a.SessionKey, NarrowedBy: []string{who.Agent}, Notify: a.place(),
	}})
}
