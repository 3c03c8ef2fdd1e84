package skill

import (
	"context"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	format "pawgate/internal/skill"
	"pawgate/internal/skill/store"
)

type shareArgs struct {
	SkillName string `json:"skill_name" doc:"One of yours" maxlen:"64"`
	Update    bool   `json:"update,omitempty" doc:"Replace your older one"`
}

func (a shareArgs) Validate() error { return checkName(a.SkillName) }

// checkName refuses what no skill can be called: a path above all.
func checkName(name string) error {
	if broken := format.CheckName(name); len(broken) > 0 {
		return fault.Invalid("skill_name", "skill_name: %s", broken.Error())
	}
	return nil
}

type copyResult struct {
	SkillID   string          `json:"skill_id"`
	SkillName string          `json:"skill_name"`
	Version   int             `json:"version"`
	Outcome   string          `json:"outcome"` // installed, updated or unchanged
	Risk      string          `json:"risk"`
	AgentID   string          `json:"agent_id,omitzero"`
	Changes   []format.Change `json:"changes,omitempty"`
}

// share copies a skill of the caller among the shared ones. What another agent
// shared under that name stays.
func (k skills) share(ctx context.Context, who caller.Caller, a shareArgs) (copyResult, error) {
	s, err := store.Find(ctx, k.db, store.Agent, who.Agent, a.SkillName)
	if err != nil {
		return copyResult{}, err
	}
	return k.copy(ctx, s, store.Draft{Scope: store.Shared, Lineage: "agent:" + who.Agent, By: who.Agent, Update: a.Update})
}

// copy keeps a skill in another place, checked as before every use.
func (k skills) copy(ctx context.Context, s store.Stored, d store.Draft) (copyResult, error) {
	used, _, err := store.Use(ctx, k.db, s, zero)
	if err != nil {
		return copyResult{}, err
	}
	d.Skill, d.State, d.Now = used, "active", k.now()
	kept, err := store.Keep(ctx, k.db, d)
	if err != nil {
		return copyResult{}, err
	}
	return copyResult{SkillID: kept.ID, SkillName: s.Name, Version: kept.Version, Outcome: kept.Outcome, Risk: kept.Verdict.Risk, AgentID: d.Agent, Changes: kept.Changes}, nil
}
