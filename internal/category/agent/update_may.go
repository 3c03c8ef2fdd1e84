package agent

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/roster"
)

// mainRole is the role of the agent that stands for the installation. It is
// given and taken by operators only, and protects from agent_remove.
const mainRole = "main"

// mayUpdate refuses what is not the caller's to change.
func mayUpdate(ctx context.Context, tx pgx.Tx, who caller.Caller, before target, a updateArgs) error {
	if a.IfVersion != nil && *a.IfVersion != before.Version {
		return fault.New(fault.Conflict, "agent %s has version %d by now, not %d: somebody changed it; look at it with agent_status and decide again",
			a.AgentID, before.Version, *a.IfVersion).With("version", before.Version)
	}
	if who.Operator() {
		return moves(ctx, tx, who, a)
	}
	switch {
	case a.BudgetCents != nil:
		return fault.New(fault.Denied, "only an operator can set budget_cents; leave it out, and ask a person")
	case a.AgentID == who.Agent && !a.own():
		return fault.New(fault.Denied, "of yourself you can change display_name, icon and trigger; the rest is for those you report to, or an operator")
	case a.Role != nil && (*a.Role == mainRole) != (before.Role == mainRole):
		return fault.New(fault.Denied, "only an operator can give or take the role main")
	}
	return moves(ctx, tx, who, a)
}

// own reports whether a change has nothing but what an agent may change of
// itself. An argument that is added later is not among it.
func (a updateArgs) own() bool {
	return a == updateArgs{AgentID: a.AgentID, IfVersion: a.IfVersion, DisplayName: a.DisplayName, Icon: a.Icon, Trigger: a.Trigger}
}

// moves refuses a new superior that the caller may not see, that is archived,
// or that would close a circle. Nobody but an operator takes an agent out of
// everyone's reach.
func moves(ctx context.Context, tx pgx.Tx, who caller.Caller, a updateArgs) error {
	switch {
	case a.ReportsTo == nil:
		return nil
	case strings.TrimSpace(*a.ReportsTo) == "" && who.Operator():
		return nil
	case strings.TrimSpace(*a.ReportsTo) == "":
		return fault.New(fault.Denied, "only an operator can let an agent report to nobody; name yourself or an agent that reports to you")
	}
	if _, err := findLive(ctx, tx, who, *a.ReportsTo); err != nil {
		return err
	}
	return roster.CheckSuperior(ctx, tx, a.AgentID, *a.ReportsTo)
}

// trigger is the one to set, nil for none: the one wished for, if no other agent
// has it, or the usual one of a new name where the old one was the usual.
func trigger(ctx context.Context, tx pgx.Tx, before target, a updateArgs) (*string, error) {
	wanted := a.Trigger
	if wanted == nil && a.DisplayName != nil && before.Trigger == "@"+before.DisplayName {
		usual := "@" + *a.DisplayName
		wanted = &usual
	}
	if wanted == nil {
		return nil, nil
	}
	taken, err := roster.TriggerTaken(ctx, tx, a.AgentID, *wanted)
	switch {
	case err != nil:
		return nil, err
	case taken && a.Trigger != nil:
		return nil, triggerTaken(*wanted)
	case taken:
		return nil, nil
	}
	return wanted, nil
}

func triggerTaken(trigger string) error {
	return fault.New(fault.Conflict, "another agent is addressed by %s; choose another trigger", trigger)
}
