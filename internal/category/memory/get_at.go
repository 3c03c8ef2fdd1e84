package memory

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

//go:embed get_at.sql
var getAtSQL string

type getAtArgs struct {
	Subject   string `json:"subject" doc:"-" maxlen:"256"`
	Predicate string `json:"predicate" doc:"Such as lives_in" maxlen:"128"`
	At        string `json:"at" doc:"Date or RFC 3339 time"`
	sharedArgs
}

func (a getAtArgs) Validate() error {
	_, _, err := parseTime("at", a.At, time.UTC)
	return err
}

type getAtResult struct {
	Subject   string    `json:"subject"`
	Predicate string    `json:"predicate"`
	At        time.Time `json:"at"`
	Found     bool      `json:"found"`
	Record    *record   `json:"record,omitzero"`
}

// getAt tells what held of a subject at a time: the fact that began last
// among those that cover it.
func (m memory) getAt(ctx context.Context, who caller.Caller, a getAtArgs) (getAtResult, error) {
	at, _, err := parseTime("at", a.At, time.UTC)
	if err != nil {
		return getAtResult{}, err
	}
	v, err := m.view(ctx, who, a.sharedArgs)
	if err != nil {
		return getAtResult{}, err
	}
	result := getAtResult{Subject: a.Subject, Predicate: a.Predicate, At: at}
	facts, err := m.factKeys(ctx, v.agent, a.Subject, a.Predicate)
	if err != nil {
		return result, err
	}
	args := v.named()
	args["facts"], args["at"] = facts, at
	found, err := postgres.One[record](ctx, m.db, getAtSQL, args)
	if errors.Is(err, pgx.ErrNoRows) {
		return result, nil
	}
	if err != nil {
		return result, fmt.Errorf("read fact: %w", err)
	}
	result.Found, result.Record = true, &found
	return result, nil
}
