package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/standing"
	"pawgate/internal/work"
)

// Narrow gives, for work with agents in narrowed_by, the names of the tools that
// each of them may call now without anybody's leave: what an agent needs an
// approval or a grant for, or has argument rules on, it cannot have done by
// somebody who does not. An ephemeral agent has its maker's restrictions
// itself, so there only the maker's lists count. What is asked upwards is
// answered without tools.
func Narrow(db postgres.DB, tools *catalog.Catalog) func(context.Context, work.Leased) ([]string, error) {
	reader := standing.NewReader(db)
	return func(ctx context.Context, l work.Leased) ([]string, error) {
		switch {
		case l.Source == work.Upwards:
			return []string{}, nil
		case len(l.NarrowedBy) == 0:
			return nil, nil
		}
		names := []string{}
		for _, e := range tools.All() {
			names = append(names, e.Name)
		}
		for _, agent := range l.NarrowedBy {
			who := standing.Who{Agent: agent, Credential: work.Credential(l.ID), Scopes: []string{caller.ScopeAll}}
			s, err := reader.Peek(ctx, who, nil)
			if errors.Is(err, pgx.ErrNoRows) { // archived: it may nothing any more
				return []string{}, nil
			}
			if err != nil {
				return nil, fmt.Errorf("read rights of %s: %w", agent, err)
			}
			inherited := l.Source == "spawn_ephemeral" && agent == l.From
			names = left(names, s.Agent, inherited)
		}
		return names, nil
	}
}

// left are the names that an agent leaves.
func left(names []string, a policy.Agent, inherited bool) []string {
	kept := []string{}
	for _, name := range names {
		if covers(a.Allowed, name) && !covers(a.Denied, name) && (inherited || !restricted(a, name)) {
			kept = append(kept, name)
		}
	}
	return kept
}

func restricted(a policy.Agent, name string) bool {
	for _, r := range a.Rules {
		if policy.Matches(r.Tool, name) {
			return true
		}
	}
	return covers(a.ApprovalRequired, name) || covers(a.Scoped, name)
}

func covers(patterns []string, name string) bool {
	for _, p := range patterns {
		if policy.Matches(p, name) {
			return true
		}
	}
	return false
}
