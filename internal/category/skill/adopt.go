package skill

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
	"pawgate/internal/skill/store"
)

//go:embed adopted.sql
var adoptedSQL string

type adoptArgs struct {
	SkillName   string `json:"skill_name" doc:"A shared one" maxlen:"64"`
	TargetAgent string `json:"target_agent,omitempty" doc:"Default: you" maxlen:"64"`
	Update      bool   `json:"update,omitempty" doc:"Replace an older one"`
}

func (a adoptArgs) Validate() error { return checkName(a.SkillName) }

// adopt copies a shared skill to the caller, or to an agent that reports to it.
func (k skills) adopt(ctx context.Context, who caller.Caller, a adoptArgs) (copyResult, error) {
	agent, err := k.reach(ctx, who, a.TargetAgent)
	if err != nil {
		return copyResult{}, err
	}
	s, err := store.Find(ctx, k.db, store.Shared, "", a.SkillName)
	if err != nil {
		return copyResult{}, err
	}
	var r copyResult
	err = postgres.InTx(ctx, k.db, func(tx pgx.Tx) error {
		in := k
		in.db = tx
		if r, err = in.copy(ctx, s, store.Draft{Scope: store.Agent, Agent: agent, Lineage: "shared:" + s.ID, By: who.Agent, Update: a.Update}); err != nil {
			return err
		}
		if _, err := postgres.Exec(ctx, tx, adoptedSQL, pgx.StrictNamedArgs{"skill_id": s.ID, "agent": agent, "as": r.SkillID, "now": k.now()}); err != nil {
			return fmt.Errorf("keep adoption: %w", err)
		}
		return nil
	})
	return r, err
}
