package skill

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
	//go:embed curator.sql
	curatorSQL string
	//go:embed curate.sql
	curateSQL string
)

// When an unused skill is stale, and when it is put away.
const (
	staleAfter   = 30 * 24 * time.Hour
	archiveAfter = 90 * 24 * time.Hour
)

type curatorArgs struct {
	Run bool `json:"run,omitempty" doc:"Do it now"`
}

type curatorResult struct {
	Ran     bool      `json:"ran"`
	Changed []curated `json:"changed,omitempty"` // by this run
	Skills  []curated `json:"skills"`
	Active  int       `json:"active"`
	Stale   int       `json:"stale"`
	Put     int       `json:"archived"`
	Drafts  int       `json:"drafts"`
}

type curated struct {
	SkillID   string     `json:"skill_id"`
	SkillName string     `json:"skill_name"`
	Scope     string     `json:"scope"`
	State     string     `json:"state"`
	Pinned    bool       `json:"pinned"`
	Uses      int64      `json:"uses"`
	LastUsed  *time.Time `json:"last_used_at,omitzero"`
	IdleDays  int        `json:"idle_days"`
	Was       string     `json:"was,omitzero"`
}

// curatorStatus shows how the caller's skills are used, and for an operator the
// global ones too. A run makes what nobody used for 30 days stale and puts it
// away after 90, if it was ever used; a pinned skill stays, and a draft with
// good trials becomes active.
func (k skills) curatorStatus(ctx context.Context, who caller.Caller, a curatorArgs) (curatorResult, error) {
	now := k.now()
	r := curatorResult{Ran: a.Run}
	named := func(more pgx.StrictNamedArgs) pgx.StrictNamedArgs {
		more["agent"], more["operator"], more["now"] = who.Agent, who.Operator(), now
		return more
	}
	var err error
	if a.Run {
		r.Changed, err = postgres.All[curated](ctx, k.db, curateSQL, named(pgx.StrictNamedArgs{
			"stale": now.Add(-staleAfter), "archive": now.Add(-archiveAfter), "trials": leastTrials, "success": leastSuccess}))
		if err != nil {
			return curatorResult{}, fmt.Errorf("curate skills: %w", err)
		}
	}
	if r.Skills, err = postgres.All[curated](ctx, k.db, curatorSQL, named(pgx.StrictNamedArgs{})); err != nil {
		return curatorResult{}, fmt.Errorf("list skills: %w", err)
	}
	for _, s := range r.Skills {
		switch s.State {
		case "active":
			r.Active++
		case "stale":
			r.Stale++
		case "archived":
			r.Put++
		case "draft":
			r.Drafts++
		}
	}
	return r, nil
}
