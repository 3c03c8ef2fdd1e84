package memory

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
	"pawgate/internal/terms"
)

//go:embed profile_get.sql
var profileGetSQL string

// summaryTrait is a text about the user, not a trait of theirs.
const summaryTrait = "profile_summary"

type profileGetArgs struct {
	UserID string `json:"user_id" doc:"-" maxlen:"128"`
}

type profileGetResult struct {
	UserID string  `json:"user_id"`
	Traits []trait `json:"traits"`
	// Block is the profile as lines for a prompt; absent when there is none.
	Block string `json:"block,omitzero"`
}

type trait struct {
	MemoryID    string  `json:"memory_id"`
	Predicate   string  `json:"predicate"`
	Value       string  `json:"value"`
	OriginTrust float32 `json:"origin_trust"`
}

// profileGet gives what holds of a user now, by trait.
func (m memory) profileGet(ctx context.Context, who caller.Caller, a profileGetArgs) (profileGetResult, error) {
	result := profileGetResult{UserID: strings.TrimSpace(a.UserID)}
	rows, err := m.traits(ctx, who.Agent, userSubject(a.UserID))
	if err != nil {
		return result, err
	}
	var block strings.Builder
	for _, r := range rows {
		if r.Predicate == summaryTrait {
			continue
		}
		result.Traits = append(result.Traits, trait{MemoryID: r.ID, Predicate: r.Predicate, Value: r.Object, OriginTrust: r.OriginTrust})
		fmt.Fprintf(&block, "- %s: %s\n", r.Predicate, oneLine(r.Object))
	}
	result.Block = block.String()
	return result, nil
}

// traitRow is a fact about a user that holds now.
type traitRow struct {
	ID, Subject, Predicate, Object string
	OriginTrust                    float32
}

// traits are the facts that hold now of a subject, or, for "", of every user.
func (m memory) traits(ctx context.Context, agent, subject string) ([]traitRow, error) {
	rows, err := postgres.All[traitRow](ctx, m.db, profileGetSQL, pgx.StrictNamedArgs{
		"agent": agent, "subject": terms.Fold(subject), "now": m.now(), "limit": maxTraits,
	})
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	return rows, nil
}

// maxTraits bounds what is read at once.
const maxTraits = 5000
