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

//go:embed shared_list.sql
var sharedListSQL string

type sharedListArgs struct {
	Tag   string `json:"tag,omitempty" doc:"Part of a tag" maxlen:"64"`
	After string `json:"after,omitempty" doc:"-" maxlen:"64"`
}

type sharedListResult struct {
	Skills    []sharedSkill `json:"skills"`
	NextAfter string        `json:"next_after,omitzero"`
}

type sharedSkill struct {
	SkillID     string    `json:"skill_id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Tags        []string  `json:"tags"`
	Version     int       `json:"version"`
	Risk        string    `json:"risk"`
	SharedBy    string    `json:"shared_by"`
	SharedAt    time.Time `json:"shared_at"`
	Adoptions   int       `json:"adoptions"` // agents that took it, once each
	Adopted     bool      `json:"adopted"`   // by you
}

const sharedPage = 200

// sharedList shows what shared_skill_adopt may take.
func (k skills) sharedList(ctx context.Context, who caller.Caller, a sharedListArgs) (sharedListResult, error) {
	rows, err := postgres.All[sharedSkill](ctx, k.db, sharedListSQL, pgx.StrictNamedArgs{"agent": who.Agent, "tag": a.Tag, "after": a.After, "limit": sharedPage + 1})
	if err != nil {
		return sharedListResult{}, fmt.Errorf("list shared skills: %w", err)
	}
	r := sharedListResult{Skills: rows}
	if len(rows) > sharedPage {
		r.Skills, r.NextAfter = rows[:sharedPage], rows[sharedPage-1].SkillID
	}
	return r, nil
}
