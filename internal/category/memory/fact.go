package memory

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/terms"
)

var (
	//go:embed fact_lock.sql
	factLockSQL string
	//go:embed fact_rows.sql
	factRowsSQL string
	//go:embed fact_close.sql
	factCloseSQL string
	//go:embed fact_again.sql
	factAgainSQL string
)

// fact is what holds of a subject, in the half-open interval from..until.
//
// The facts of one subject and predicate are a timeline. At any time that one
// holds which began last. A fact without an end ends the one it begins in; one
// with an end only interrupts it. A fact that arrives late takes its place in
// the past and ends where the next one began.
type fact struct {
	subject, predicate, object string
	from                       time.Time
	until                      *time.Time // nil: still
	supersededBy               string
}

// newFact is the fact that arguments state; nil when they state none.
func newFact(subject, predicate, object, from, until string, now time.Time) (*fact, error) {
	f := fact{subject: strings.TrimSpace(subject), predicate: strings.TrimSpace(predicate), object: strings.TrimSpace(object), from: now}
	given := 0
	for _, part := range []string{f.subject, f.predicate, f.object} {
		if part != "" {
			given++
		}
	}
	switch {
	case given == 0 && from == "" && until == "":
		return nil, nil
	case given < 3:
		return nil, fault.Invalid("subject", "a fact needs subject, predicate and object together")
	}
	if from != "" {
		at, _, err := parseTime("valid_from", from, time.UTC)
		if err != nil {
			return nil, err
		}
		f.from = at
	}
	if until != "" {
		at, _, err := parseTime("valid_until", until, time.UTC)
		if err != nil {
			return nil, err
		}
		if !at.After(f.from) {
			return nil, fault.Invalid("valid_until", "valid_until must be after valid_from")
		}
		f.until = &at
	}
	return &f, nil
}

// factKey is equal for facts that replace one another: case, width, and
// blanks or underscores between words make no difference.
func factKey(subject, predicate string) string {
	return terms.Fold(subject) + "\x1f" + strings.ReplaceAll(terms.Fold(predicate), " ", "_")
}

func (f *fact) key() string { return factKey(f.subject, f.predicate) }

// named adds a fact's columns to a statement's arguments; a nil fact's are
// null.
func (f *fact) named(args pgx.StrictNamedArgs, now time.Time) {
	if f == nil {
		f = &fact{}
		for _, column := range []string{"subject", "predicate", "object", "fact", "valid_from", "valid_until", "superseded_by"} {
			args[column] = nil
		}
		args["retired"] = false
		return
	}
	args["subject"], args["predicate"], args["object"], args["fact"] = f.subject, f.predicate, f.object, f.key()
	args["valid_from"], args["valid_until"] = f.from, f.until
	args["superseded_by"] = nil
	if f.supersededBy != "" {
		args["superseded_by"] = f.supersededBy
	}
	args["retired"] = f.until != nil && !f.until.After(now)
}

// factRow is a fact that is kept already.
type factRow struct {
	N          int32
	ID         string
	Object     string
	ValidFrom  time.Time
	ValidUntil *time.Time
	// SupersededBy is empty for a fact that still holds and for one that
	// merely interrupts.
	SupersededBy string
}

// interrupts reports whether the fact was said to end, so that what held
// before it holds again.
func (r factRow) interrupts() bool { return r.ValidUntil != nil && r.SupersededBy == "" }

func (r factRow) covers(at time.Time) bool {
	return !r.ValidFrom.After(at) && (r.ValidUntil == nil || r.ValidUntil.After(at))
}

// keepFact puts a fact into its timeline. Writers of one timeline wait for one
// another.
func (m memory) keepFact(ctx context.Context, tx pgx.Tx, d draft) (storeResult, error) {
	key := pgx.StrictNamedArgs{"agent": d.agent, "fact": d.fact.key()}
	if _, err := postgres.Exec(ctx, tx, factLockSQL, pgx.StrictNamedArgs{"lock": number(d.agent, " fact "+d.fact.key())}); err != nil {
		return storeResult{}, fmt.Errorf("lock timeline: %w", err)
	}
	rows, err := postgres.All[factRow](ctx, tx, factRowsSQL, key)
	if err != nil {
		return storeResult{}, fmt.Errorf("read timeline: %w", err)
	}
	holds, covering, next := place(rows, d.fact.from)
	if holds != nil && terms.Fold(holds.Object) == terms.Fold(d.fact.object) && (d.fact.until == nil || sameEnd(holds.ValidUntil, d.fact.until)) {
		return m.factAgain(ctx, tx, d, holds.ID)
	}
	if d.fact.until == nil {
		if next != nil { // it arrives late
			d.fact.until, d.fact.supersededBy = &next.ValidFrom, next.ID
		}
		for _, c := range covering {
			d.supersedesFact(holds.ID)
			if err := m.closeFact(ctx, tx, d, c); err != nil {
				return storeResult{}, err
			}
		}
	}
	result, err := m.insert(ctx, tx, d)
	if len(covering) > 0 && d.fact.supersededBy == "" && d.fact.until == nil {
		result.Superseded = holds.ID
	}
	return result, err
}

// supersedesFact notes the fact before, unless the caller named another.
func (d *draft) supersedesFact(id string) {
	if d.supersedes == "" {
		d.supersedes = id
	}
}

// place finds where a fact that begins at a time belongs: the fact that holds
// then, all that cover the time, and the first that replaces it later.
func place(timeline []factRow, at time.Time) (holds *factRow, covering []factRow, next *factRow) {
	for i, r := range timeline { // oldest first
		if r.covers(at) {
			covering = append(covering, r)
			holds = &timeline[i]
		}
		if r.ValidFrom.After(at) && !r.interrupts() && next == nil {
			next = &timeline[i]
		}
	}
	return holds, covering, next
}

func sameEnd(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}

func (m memory) factAgain(ctx context.Context, tx pgx.Tx, d draft, id string) (storeResult, error) {
	row, err := postgres.One[struct {
		ID          string
		StoredAt    time.Time
		TimesStored int
	}](ctx, tx, factAgainSQL, pgx.StrictNamedArgs{"agent": d.agent, "id": id, "at": d.at, "origin_trust": d.trust})
	if err != nil {
		return storeResult{}, fmt.Errorf("count fact up: %w", err)
	}
	return storeResult{MemoryID: row.ID, StoredAt: row.StoredAt, TimesStored: row.TimesStored}, nil
}

func (m memory) closeFact(ctx context.Context, tx pgx.Tx, d draft, c factRow) error {
	_, err := postgres.Exec(ctx, tx, factCloseSQL, pgx.StrictNamedArgs{
		"agent": d.agent, "n": c.N, "until": d.fact.from, "by": d.id, "retired": !d.fact.from.After(m.now()),
	})
	if err != nil {
		return fmt.Errorf("close fact: %w", err)
	}
	return nil
}
