package memory

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

var (
	//go:embed invalidate_count.sql
	invalidateCountSQL string
	//go:embed invalidate.sql
	invalidateSQL string
	//go:embed restore.sql
	restoreSQL string
	//go:embed distrust.sql
	distrustSQL string
)

// distrust is what conclusions from an invalidated memory are trusted at most.
const distrust = 0.1

type invalidateByOriginArgs struct {
	Origin string `json:"origin" doc:"Exactly as stored" maxlen:"64"`
	Since  string `json:"since,omitempty" doc:"Date or time"`
	DryRun bool   `json:"dry_run,omitempty" doc:"-"`
}

func (a invalidateByOriginArgs) Validate() error {
	_, err := a.since()
	return err
}

func (a invalidateByOriginArgs) since() (time.Time, error) {
	if a.Since == "" {
		return always, nil
	}
	since, _, err := parseTime("since", a.Since, time.UTC)
	return since, err
}

type invalidateByOriginResult struct {
	Origin string `json:"origin"`
	DryRun bool   `json:"dry_run,omitzero"`
	// Invalidated memories are kept for the record and found by no tool.
	Invalidated int `json:"invalidated"`
	// Distrusted are memories concluded from them, through any number of
	// steps.
	Distrusted int `json:"distrusted"`
	// Restored memories and facts were superseded by invalidated ones, and
	// stand again as if those had never been. A dry run does not count them.
	Restored int `json:"restored"`
}

// invalidateByOrigin takes back everything that came from a source that
// turned out to be wrong.
func (m memory) invalidateByOrigin(ctx context.Context, who caller.Caller, a invalidateByOriginArgs) (invalidateByOriginResult, error) {
	result := invalidateByOriginResult{Origin: a.Origin, DryRun: a.DryRun}
	since, err := a.since()
	if err != nil {
		return result, err
	}
	args := pgx.StrictNamedArgs{"agent": who.Agent, "origin": a.Origin, "since": since}
	counted, err := postgres.One[struct{ Invalidated, Distrusted int }](ctx, m.db, invalidateCountSQL, args)
	if err != nil {
		return result, fmt.Errorf("count memories by origin: %w", err)
	}
	result.Invalidated, result.Distrusted = counted.Invalidated, counted.Distrusted
	if a.DryRun {
		return result, nil
	}
	err = postgres.InTx(ctx, m.db, func(tx pgx.Tx) error {
		distrusted := pgx.StrictNamedArgs{"agent": who.Agent, "origin": a.Origin, "since": since, "trust": distrust}
		n, err := postgres.Exec(ctx, tx, distrustSQL, distrusted)
		if err != nil {
			return fmt.Errorf("distrust conclusions: %w", err)
		}
		result.Distrusted = int(n)
		n, err = postgres.Exec(ctx, tx, invalidateSQL, pgx.StrictNamedArgs{
			"agent": who.Agent, "origin": a.Origin, "since": since, "now": m.now(), "by": "origin " + a.Origin + " by " + who.Credential,
		})
		if err != nil {
			return fmt.Errorf("invalidate memories: %w", err)
		}
		result.Invalidated = int(n)
		n, err = postgres.Exec(ctx, tx, restoreSQL, pgx.StrictNamedArgs{"agent": who.Agent, "origin": a.Origin, "since": since, "now": m.now()})
		if err != nil {
			return fmt.Errorf("restore what was superseded: %w", err)
		}
		result.Restored = int(n)
		return nil
	})
	return result, err
}
