package memory

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

//go:embed get_history.sql
var getHistorySQL string

type getHistoryArgs struct {
	Subject   string `json:"subject" doc:"-" maxlen:"256"`
	Predicate string `json:"predicate" doc:"Such as lives_in" maxlen:"128"`
	Limit     int    `json:"limit,omitempty" doc:"Or 100" min:"1" max:"1000"`
	sharedArgs
}

type getHistoryResult struct {
	Subject   string   `json:"subject"`
	Predicate string   `json:"predicate"`
	Records   []record `json:"records"`
}

// record is a fact in its timeline.
type record struct {
	ID           string     `json:"id"`
	Content      string     `json:"content"`
	Object       string     `json:"object"`
	ValidFrom    time.Time  `json:"valid_from"`
	ValidUntil   *time.Time `json:"valid_until,omitzero"`
	Supersedes   string     `json:"supersedes,omitempty"`
	SupersededBy string     `json:"superseded_by,omitempty"`
	Origin       string     `json:"origin"`
	OriginTrust  float32    `json:"origin_trust"`
	StoredAt     time.Time  `json:"stored_at"`
	TimesStored  int        `json:"times_stored"`
}

// getHistory tells what held of a subject over time, oldest first. An alias
// of the subject will do.
func (m memory) getHistory(ctx context.Context, who caller.Caller, a getHistoryArgs) (getHistoryResult, error) {
	v, err := m.view(ctx, who, a.sharedArgs)
	if err != nil {
		return getHistoryResult{}, err
	}
	facts, err := m.factKeys(ctx, v.agent, a.Subject, a.Predicate)
	if err != nil {
		return getHistoryResult{}, err
	}
	args := v.named()
	args["facts"], args["limit"] = facts, cmp.Or(a.Limit, 100)
	records, err := postgres.All[record](ctx, m.db, getHistorySQL, args)
	if err != nil {
		return getHistoryResult{}, fmt.Errorf("read history: %w", err)
	}
	return getHistoryResult{Subject: a.Subject, Predicate: a.Predicate, Records: records}, nil
}

// factKeys are the keys of a fact under each name of its subject.
func (m memory) factKeys(ctx context.Context, agent, subject, predicate string) ([]string, error) {
	names, err := m.namesOf(ctx, agent, subject)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = factKey(name, predicate)
	}
	return keys, nil
}
