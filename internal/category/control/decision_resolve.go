package control

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/decision"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed decision_read.sql
	decisionReadSQL string
	//go:embed decision_resolve.sql
	decisionResolveSQL string
)

type resolveArgs struct {
	DecisionID string `json:"decision_id" doc:"-"`
	ChosenKey  string `json:"chosen_key" doc:"Key of the option"`
}

type resolveResult struct {
	DecisionID    string `json:"decision_id"`
	ChosenKey     string `json:"chosen_key"`
	ChosenContent string `json:"chosen_content"`
	Question      string `json:"question"`
	Changed       bool   `json:"changed"` // false: it was resolved so before
}

// offered is a choice as it stands now.
type offered struct {
	Question  string
	Options   []decision.Option
	State     string // open, expired or resolved
	ChosenKey string
	ExpiresAt time.Time
}

// decisionResolve records a choice, once. It fails with fault.NotFound for
// another agent's choice too, with "expired", with "unknown_key" and the keys
// that there are, and with fault.Conflict when another option was chosen.
func (c control) decisionResolve(ctx context.Context, who caller.Caller, a resolveArgs) (resolveResult, error) {
	id := strings.TrimSpace(a.DecisionID)
	choice, err := c.offer(ctx, who, id)
	if err != nil {
		return resolveResult{}, err
	}
	i := slices.IndexFunc(choice.Options, func(o decision.Option) bool { return decision.Fold(o.Key) == decision.Fold(a.ChosenKey) })
	if i < 0 {
		var keys []string
		for _, o := range choice.Options {
			keys = append(keys, o.Key)
		}
		return resolveResult{}, fault.New("unknown_key", "no option %s; there are %s", short(a.ChosenKey), strings.Join(keys, ", ")).With("available", keys)
	}
	chosen := choice.Options[i]
	changed, err := postgres.Exec(ctx, c.db, decisionResolveSQL, pgx.StrictNamedArgs{"agent": who.Agent, "id": id, "key": chosen.Key})
	if err != nil {
		return resolveResult{}, fmt.Errorf("resolve decision: %w", err)
	}
	if changed == 0 {
		if choice, err = c.offer(ctx, who, id); err != nil {
			return resolveResult{}, err
		}
		switch {
		case choice.State == "expired":
			return resolveResult{}, fault.New("expired", "choice %s expired at %s; ask again", short(id), choice.ExpiresAt.UTC().Format(time.RFC3339))
		case choice.ChosenKey != chosen.Key:
			return resolveResult{}, fault.New(fault.Conflict, "choice %s was resolved already: %s", short(id), choice.ChosenKey).With("chosen_key", choice.ChosenKey)
		}
	}
	return resolveResult{DecisionID: id, ChosenKey: chosen.Key, ChosenContent: chosen.Content, Question: choice.Question, Changed: changed > 0}, nil
}

func (c control) offer(ctx context.Context, who caller.Caller, id string) (offered, error) {
	choice, err := postgres.One[offered](ctx, c.db, decisionReadSQL, pgx.StrictNamedArgs{"agent": who.Agent, "id": id})
	if errors.Is(err, pgx.ErrNoRows) {
		return offered{}, fault.New(fault.NotFound, "no choice %s of yours; decision_list shows the open ones", short(id))
	}
	if err != nil {
		return offered{}, fmt.Errorf("read decision: %w", err)
	}
	return choice, nil
}
