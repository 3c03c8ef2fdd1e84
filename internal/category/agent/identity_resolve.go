package agent

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/people"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

//go:embed identity_resolve.sql
var identitySQL string

type identityArgs struct {
	Channel    string   `json:"channel" doc:"Such as telegram, email" maxlen:"32"`
	ExternalID tool.ID  `json:"external_id" doc:"-" maxlen:"200"`
	Fields     []string `json:"fields,omitempty" doc:"Show these too" enum:"emails,handles"`
}

type identityResult struct {
	Found  bool    `json:"found"`
	Person *person `json:"person,omitzero"`
}

type person struct {
	PersonID    string            `json:"person_id"`
	DisplayName string            `json:"display_name"`
	Roles       []string          `json:"roles"`
	ProjectIDs  []string          `json:"project_ids"`
	Emails      []string          `json:"emails,omitzero"`
	Handles     map[string]string `json:"channel_handles,omitzero"` // by channel
	UpdatedAt   time.Time         `json:"updated_at"`
}

// identityResolve finds a person by an account. Addresses and other accounts
// are shown only when they are asked for. A channel that does not exist is a
// broken argument; an account that nobody has is an answer.
func (c agent) identityResolve(ctx context.Context, who caller.Caller, a identityArgs) (identityResult, error) {
	channel, account, err := people.Account(a.Channel, string(a.ExternalID), "external_id")
	if err != nil {
		return identityResult{}, err
	}
	p, err := postgres.One[person](ctx, c.db, identitySQL, pgx.StrictNamedArgs{"channel": channel, "external_id": account,
		"emails": slices.Contains(a.Fields, "emails"), "handles": slices.Contains(a.Fields, "handles")})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return identityResult{}, nil
	case err != nil:
		return identityResult{}, fmt.Errorf("look up person: %w", err)
	}
	return identityResult{Found: true, Person: &p}, nil
}
