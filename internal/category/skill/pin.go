package skill

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/skill/store"
)

//go:embed pin.sql
var pinSQL string

type pinArgs struct {
	SkillName string `json:"skill_name" doc:"-" maxlen:"64"`
	Scope     string `json:"scope,omitempty" doc:"Default agent: yours" enum:"agent,global"`
	Pinned    *bool  `json:"pinned,omitempty" doc:"Default true"`
	Version   int    `json:"version,omitempty" doc:"Go to this version first" min:"1" max:"100000"`
}

func (a pinArgs) Validate() error { return checkName(a.SkillName) }

type pinResult struct {
	SkillID   string `json:"skill_id"`
	SkillName string `json:"skill_name"`
	Pinned    bool   `json:"pinned"`
	Version   int    `json:"version"`
	State     string `json:"state"`
}

// pin keeps a skill from being updated and put away, and takes one back that
// was put away.
func (k skills) pin(ctx context.Context, who caller.Caller, a pinArgs) (pinResult, error) {
	s, err := k.scoped(ctx, who, cmp.Or(a.Scope, store.Agent), a.SkillName)
	if err != nil {
		return pinResult{}, err
	}
	pinned := a.Pinned == nil || *a.Pinned
	rows, err := postgres.All[pinResult](ctx, k.db, pinSQL, pgx.StrictNamedArgs{"id": s.ID, "pinned": pinned, "version": cmp.Or(a.Version, s.Version), "now": k.now()})
	if err != nil {
		return pinResult{}, fmt.Errorf("pin skill: %w", err)
	}
	if len(rows) == 0 {
		return pinResult{}, fault.New(fault.NotFound, "%s has no version %d; it is at %d", s.Name, a.Version, s.Version)
	}
	return rows[0], nil
}
