package operator

import (
	"context"
	_ "embed"
	"fmt"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed agent_count.sql
var agentCountSQL string

// checkAgentLimit refuses another agent when the licence has no room for it.
// The caller holds the lock, so two of them cannot both be the last one.
func (s *session) checkAgentLimit(ctx context.Context) error {
	if s.LicenceError != nil {
		return fault.New(fault.NotConfigured, "no agent can be made while the licence is broken: %s", s.LicenceError.Error())
	}
	most := s.Licence.AgentLimit(s.Now())
	if most == 0 {
		return nil
	}
	have, err := postgres.One[struct{ N int }](ctx, s.db, agentCountSQL, nil)
	if err != nil {
		return fmt.Errorf("count agents: %w", err)
	}
	if have.N >= most {
		return fault.New(fault.Edition, "the licence is for %d agents and there are %d; archive one (agent set AGENT --state archived) or get a larger licence", most, have.N)
	}
	return nil
}
