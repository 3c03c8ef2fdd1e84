package operator

import (
	"context"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/roster"
)

// archived is the state of an agent that was put away.
const archived = "archived"

// checkAgentLimit refuses another agent when the licence has no room for it.
// The caller holds the lock.
func (s *session) checkAgentLimit(ctx context.Context) error {
	return roster.CheckLimit(ctx, s.db, s.Licence, s.LicenceError, s.Now())
}

type removed struct {
	AgentID string `json:"agent_id"`
	State   string `json:"state"`
	roster.Removal
	Note string `json:"note"`
}

// agentArchive does what the tool agent_remove does.
func (s *session) agentArchive(ctx context.Context, _ caller.Caller, a agentArgs) (removed, error) {
	if err := s.lock(ctx); err != nil {
		return removed{}, err
	}
	row, err := s.read(ctx, a.AgentID)
	if err != nil {
		return removed{}, err
	}
	if row.State == archived {
		return removed{}, fault.New(fault.Conflict, "agent %s is archived already; pawgate agent restore %s brings it back", a.AgentID, a.AgentID)
	}
	done, err := roster.Archive(ctx, s.db, a.AgentID, s.By, s.Now())
	return removed{AgentID: a.AgentID, State: archived, Removal: done, Note: "nothing was deleted; pawgate agent restore " + a.AgentID + " brings it back"}, err
}

// agentRestore brings an archived agent back. It fails with fault.Edition when
// the licence has no room for it.
func (s *session) agentRestore(ctx context.Context, _ caller.Caller, a agentArgs) (roster.Restored, error) {
	if err := s.lock(ctx); err != nil {
		return roster.Restored{}, err
	}
	row, err := s.read(ctx, a.AgentID)
	if err != nil {
		return roster.Restored{}, err
	}
	if row.State != archived {
		return roster.Restored{}, fault.New(fault.Conflict, "agent %s is %s, not archived", a.AgentID, row.State)
	}
	if err := s.checkAgentLimit(ctx); err != nil {
		return roster.Restored{}, err
	}
	return roster.Restore(ctx, s.db, a.AgentID, s.Now())
}
