package operator

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/category/control"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed approval_list.sql
var approvalListSQL string

type approvalListArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only of this agent" maxlen:"64"`
	State   string `json:"state,omitempty" doc:"pending if left out" enum:"pending,approved,denied,expired,used,cancelled,revoked,all"`
	Limit   int    `json:"limit,omitempty" doc:"Most to show; 50 if left out" min:"1" max:"500"`
	After   string `json:"after,omitempty" doc:"Go on after this one" maxlen:"64"`
}

type approvalListResult struct {
	Approvals []control.Approval `json:"approvals"`
	Next      string             `json:"next_after,omitzero"`
}

// approvalList shows the oldest pending request first, because it expires
// first; decided ones newest first.
func (s *session) approvalList(ctx context.Context, _ caller.Caller, a approvalListArgs) (approvalListResult, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return approvalListResult{}, err
	}
	limit := cmp.Or(a.Limit, 50)
	lines, err := postgres.All[control.Approval](ctx, s.db, approvalListSQL, pgx.StrictNamedArgs{
		"agent_id": a.AgentID, "state": cmp.Or(a.State, "pending"), "after": a.After, "limit": limit + 1,
	})
	switch {
	case err != nil:
		return approvalListResult{}, fmt.Errorf("list approvals: %w", err)
	case len(lines) <= limit:
		return approvalListResult{Approvals: lines}, nil
	}
	return approvalListResult{Approvals: lines[:limit], Next: lines[limit-1].ApprovalID}, nil
}

type approveArgs struct {
	ApprovalID string   `json:"approval_id" doc:"Its id, or the first characters if unique" maxlen:"64"`
	Reason     string   `json:"reason,omitempty" doc:"Why, for the record" maxlen:"500"`
	ForMinutes int      `json:"for_minutes,omitempty" doc:"Approve such calls for so long, not this one alone" min:"1" max:"60"`
	Same       []string `json:"same,omitempty" doc:"With --for-minutes: the arguments that must stay equal"`
	Any        bool     `json:"any,omitempty" doc:"With --for-minutes: whatever the arguments"`
}

// Validate asks for what a durable approval covers.
func (a approveArgs) Validate() error {
	if a.Any && len(a.Same) > 0 {
		return fault.Invalid("any", "any and same exclude each other")
	}
	return nil
}

type denyArgs struct {
	ApprovalID string `json:"approval_id" doc:"Its id, or the first characters if unique" maxlen:"64"`
	Reason     string `json:"reason,omitempty" doc:"Why; the agent is told" maxlen:"500"`
}

type decision struct {
	control.Approval
	Changed bool   `json:"changed"` // false: it was decided so before
	Note    string `json:"note,omitzero"`
}

func (s *session) approve(ctx context.Context, who caller.Caller, a approveArgs) (decision, error) {
	args := map[string]any{"approval_id": a.ApprovalID, "decision": "approve", "reason": a.Reason}
	if a.ForMinutes > 0 {
		args["for_minutes"] = a.ForMinutes
	}
	switch {
	case a.Any:
		args["same"] = []string{}
	case len(a.Same) > 0:
		args["same"] = a.Same
	}
	d, err := s.decide(ctx, who, args)
	if e, ok := fault.InvalidOf(err); ok && e.Parameter == "same" && !a.Any && len(a.Same) == 0 {
		return d, fault.Invalid("same", "for_minutes needs same: the arguments that must stay equal, or any")
	}
	return d, err
}

func (s *session) deny(ctx context.Context, who caller.Caller, a denyArgs) (decision, error) {
	return s.decide(ctx, who, map[string]any{"approval_id": a.ApprovalID, "decision": "deny", "reason": a.Reason})
}

// decide calls the tool that a person with an MCP client has.
func (s *session) decide(ctx context.Context, who caller.Caller, args map[string]any) (decision, error) {
	d, err := ask[decision](ctx, s, who, "tool_approve", args)
	if err != nil {
		return decision{}, err
	}
	s.about = d.AgentID
	if d.Arguments == nil {
		d.Arguments = json.RawMessage(`{}`)
	}
	return d, nil
}
