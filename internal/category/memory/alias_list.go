package memory

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

//go:embed alias_list.sql
var aliasListSQL string

type aliasListArgs struct {
	Limit  int    `json:"limit,omitempty" doc:"Or 200" min:"1" max:"1000"`
	Cursor string `json:"cursor,omitempty" doc:"next_cursor from before" maxlen:"512"`
}

type aliasListResult struct {
	Aliases    []alias `json:"aliases"`
	Total      int     `json:"total"`
	NextCursor string  `json:"next_cursor,omitzero"`
}

// aliasList lists the caller's aliases by alias.
func (m memory) aliasList(ctx context.Context, who caller.Caller, a aliasListArgs) (aliasListResult, error) {
	limit := cmp.Or(a.Limit, 200)
	rows, err := postgres.All[struct {
		Canonical, Alias string
		Total            int
	}](ctx, m.db, aliasListSQL, pgx.StrictNamedArgs{"agent": who.Agent, "after": a.Cursor, "limit": limit + 1})
	if err != nil {
		return aliasListResult{}, fmt.Errorf("list aliases: %w", err)
	}
	var result aliasListResult
	for i, r := range rows {
		result.Total = r.Total
		if i == limit {
			result.NextCursor = rows[i-1].Alias
			break
		}
		result.Aliases = append(result.Aliases, alias{Canonical: r.Canonical, Alias: r.Alias})
	}
	return result, nil
}
