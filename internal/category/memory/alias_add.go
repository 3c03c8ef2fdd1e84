package memory

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed alias_lock.sql
	aliasLockSQL string
	//go:embed alias_root.sql
	aliasRootSQL string
	//go:embed alias_add.sql
	aliasAddSQL string
)

// maxAliases bounds an agent's aliases, because a search looks at all of them.
const maxAliases = 1000

type aliasAddArgs struct {
	Canonical string `json:"canonical" doc:"-" maxlen:"128"`
	Alias     string `json:"alias" doc:"-" maxlen:"128"`
}

func (a aliasAddArgs) Validate() error {
	for parameter, name := range map[string]string{"alias": a.Alias, "canonical": a.Canonical} {
		if foldName(name) == "" {
			return fault.Invalid(parameter, "%s must not be blank", parameter)
		}
	}
	return nil
}

type aliasAddResult struct {
	Canonical string `json:"canonical"`
	Alias     string `json:"alias"`
	// Names is how many names the thing has now.
	Names int `json:"names"`
}

// aliasAdd makes two names mean the same. Whatever either name already meant
// joins in, so there are neither chains nor loops.
func (m memory) aliasAdd(ctx context.Context, who caller.Caller, a aliasAddArgs) (aliasAddResult, error) {
	return m.addAlias(ctx, who.Agent, a)
}

func (m memory) addAlias(ctx context.Context, agent string, a aliasAddArgs) (aliasAddResult, error) {
	result := aliasAddResult{Canonical: foldName(a.Canonical), Alias: foldName(a.Alias)}
	err := postgres.InTx(ctx, m.db, func(tx pgx.Tx) error {
		if _, err := postgres.Exec(ctx, tx, aliasLockSQL, pgx.StrictNamedArgs{"lock": number(agent, " aliases")}); err != nil {
			return fmt.Errorf("lock aliases: %w", err)
		}
		root, err := postgres.One[struct {
			Canonical, Alias string
			Aliases          int
		}](ctx, tx, aliasRootSQL, pgx.StrictNamedArgs{"agent": agent, "canonical": result.Canonical, "alias": result.Alias})
		switch {
		case err != nil:
			return fmt.Errorf("read aliases: %w", err)
		case root.Aliases >= maxAliases:
			return fault.New(overQuota, "this agent has %d aliases, its limit", maxAliases)
		case result.Canonical == result.Alias:
			return fault.Invalid("alias", "alias and canonical are the same name")
		}
		result.Canonical = root.Canonical
		n, err := postgres.One[struct{ Names int }](ctx, tx, aliasAddSQL, pgx.StrictNamedArgs{
			"agent": agent, "canonical": root.Canonical, "alias": result.Alias, "old": root.Alias,
		})
		result.Names = n.Names
		return err
	})
	return result, err
}
