package memory

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
	"pawgate/internal/terms"
)

var (
	//go:embed alias_names.sql
	aliasNamesSQL string
	//go:embed alias_said.sql
	aliasSaidSQL string
)

type alias struct {
	Canonical string `json:"canonical,omitempty"`
	Alias     string `json:"alias,omitempty"`
}

// namesOf are all names of what a name means, itself first, folded.
func (m memory) namesOf(ctx context.Context, agent, name string) ([]string, error) {
	folded := terms.Fold(name)
	rows, err := postgres.All[struct{ Name string }](ctx, m.db, aliasNamesSQL, pgx.StrictNamedArgs{"agent": agent, "name": folded})
	if err != nil {
		return nil, fmt.Errorf("read aliases: %w", err)
	}
	names := []string{folded}
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return names, nil
}

// expand lets the other names of what a query names meet its needs as well.
func (m memory) expand(ctx context.Context, agent, query string, needs []terms.Need) error {
	folded := terms.Fold(query)
	rows, err := postgres.All[struct{ Said, Other string }](ctx, m.db, aliasSaidSQL, pgx.StrictNamedArgs{"agent": agent, "query": folded})
	if err != nil {
		return fmt.Errorf("read aliases: %w", err)
	}
	for _, r := range rows {
		if hasPhrase(folded, r.Said) {
			terms.Alias(needs, r.Said, r.Other)
		}
	}
	return nil
}

func foldName(name string) string { return strings.TrimSpace(terms.Fold(name)) }
