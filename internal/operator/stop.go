package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/category/control"
	"pawgate/internal/tool"
)

type stopArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Which agent; left out: all of them" maxlen:"64"`
	Reason  string `json:"reason,omitempty" doc:"Why, for those who read it later" maxlen:"500"`
}

type whichArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Which agent; left out: the stop of all of them" maxlen:"64"`
}

type stopResult struct {
	State   string        `json:"state"`
	Target  string        `json:"target"`
	Changed bool          `json:"changed"`
	Stops   []stopInForce `json:"stops"`
	// Cancelled counts the pending approvals that the stop ended.
	Cancelled int `json:"approvals_cancelled,omitzero"`
	// Killed counts the pieces of work, queued and running, that the stop ended.
	Killed int    `json:"work_cancelled,omitzero"`
	Note   string `json:"note,omitzero"`
}

type stopInForce struct {
	Scope     string    `json:"scope"`
	AgentID   string    `json:"agent_id,omitzero"`
	Reason    string    `json:"reason,omitzero"`
	StoppedBy string    `json:"stopped_by"`
	Since     time.Time `json:"since"`
}

func (s *session) stop(ctx context.Context, who caller.Caller, a stopArgs) (stopResult, error) {
	return s.emergencyStop(ctx, who, "stop", a)
}

func (s *session) resume(ctx context.Context, who caller.Caller, a whichArgs) (stopResult, error) {
	return s.emergencyStop(ctx, who, "resume", stopArgs{AgentID: a.AgentID})
}

func (s *session) status(ctx context.Context, who caller.Caller, a whichArgs) (stopResult, error) {
	return s.emergencyStop(ctx, who, "status", stopArgs{AgentID: a.AgentID})
}

// emergencyStop calls the agents' own tool with an operator's rights, so that
// a stop is one thing whoever makes it.
func (s *session) emergencyStop(ctx context.Context, who caller.Caller, action string, a stopArgs) (stopResult, error) {
	s.about = a.AgentID
	return ask[stopResult](ctx, s, who, "emergency_stop", map[string]string{"action": action, "agent_id": a.AgentID, "reason": a.Reason})
}

// ask calls a tool of the category control with an operator's rights.
func ask[R any](ctx context.Context, s *session, who caller.Caller, name string, args any) (R, error) {
	var r R
	arguments, err := json.Marshal(args)
	if err != nil {
		return r, fmt.Errorf("encode arguments: %w", err)
	}
	tools := func() (*catalog.Catalog, error) { return s.Catalog, nil }
	out := tool.Assemble(control.With(s.db, s.Now, control.Options{Catalog: tools, Edition: s.Licence.EditionAt})).Call(ctx, who, name, arguments)
	if out.OK == nil {
		return r, failure(out)
	}
	if err := json.Unmarshal(out.OK, &r); err != nil {
		return r, fmt.Errorf("read result: %w", err)
	}
	return r, nil
}
