package operator

import (
	"context"
	"fmt"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres/migrate"
)

const migrateCommand = "migrate"

type noArgs struct{}

type migrateResult struct {
	Applied []migrate.Applied `json:"applied"`
}

// migrate applies what is missing. The migrations have connections and
// transactions of their own, so this is the one command whose record is
// written after the fact.
func (s *session) migrate(ctx context.Context, _ caller.Caller, _ noArgs) (migrateResult, error) {
	if s.Migrate == nil {
		return migrateResult{}, fault.New(fault.NotConfigured, "this host cannot migrate its database")
	}
	applied, err := s.Migrate(ctx)
	if err != nil {
		return migrateResult{}, fmt.Errorf("migrate: %w", err)
	}
	return migrateResult{Applied: applied}, nil
}
