package memory

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/plural"
	"pawgate/internal/postgres"
	"pawgate/internal/terms"
)

var (
	//go:embed keep.sql
	keepSQL string
	//go:embed sources.sql
	sourcesSQL string
	//go:embed supersede.sql
	supersedeSQL string
	//go:embed same.sql
	sameSQL string
	//go:embed quota.sql
	quotaSQL string
)

// draft is a memory that is not kept yet.
type draft struct {
	agent       string
	id          string    // made when it is kept, unless it has one
	at          time.Time // now, unless it is older
	content     string
	tags, marks []string
	layer       string
	importance  float64
	origin      string
	trust       float64
	derivedFrom []string
	sourceEvent string
	supersedes  string
	sameAs      int32
	fact        *fact
}

// text is what a draft is found by: facts also by their subject, predicate
// and object.
func (d draft) text() string {
	if d.fact == nil {
		return d.content
	}
	return strings.Join([]string{d.content, d.fact.subject, strings.ReplaceAll(d.fact.predicate, "_", " "), d.fact.object}, "\n")
}

// keep stores a draft and all that follows from it: in one statement where it
// stands for itself, in one transaction where it touches other rows.
func (m memory) keep(ctx context.Context, d draft) (storeResult, error) {
	d.at = cmp.Or(d.at, m.now())
	d.id = cmp.Or(d.id, newID(d.at))
	if err := m.checkQuota(ctx, d.agent); err != nil {
		return storeResult{}, err
	}
	if d.fact == nil && d.supersedes == "" && len(d.derivedFrom) == 0 {
		if err := m.findSame(ctx, &d); err != nil {
			return storeResult{}, err
		}
		result, err := m.insert(ctx, m.db, d)
		if err == nil {
			m.remember(ctx, d.agent, result.MemoryID, d.content)
		}
		return result, err
	}
	var result storeResult
	err := postgres.InTx(ctx, m.db, func(tx pgx.Tx) (err error) {
		if err = m.checkSources(ctx, tx, &d); err != nil {
			return err
		}
		if d.fact != nil {
			result, err = m.keepFact(ctx, tx, d)
		} else {
			result, err = m.insert(ctx, tx, d)
		}
		if err != nil || d.supersedes == "" || d.supersedes == result.MemoryID {
			return err
		}
		result.Superseded = d.supersedes
		return supersede(ctx, tx, d, result.MemoryID)
	})
	if err == nil {
		m.remember(ctx, d.agent, result.MemoryID, d.content)
	}
	return result, err
}

// insert writes the row. A live memory with the same content is counted up
// instead.
func (m memory) insert(ctx context.Context, db postgres.DB, d draft) (storeResult, error) {
	ix := indexOf(d)
	args := pgx.StrictNamedArgs{
		"agent": d.agent, "id": d.id, "content": d.content, "digest": d.digest(),
		"layer": d.layer, "importance": d.importance, "tags": d.tags, "marks": d.marks, "at": d.at,
		"origin": d.origin, "origin_trust": d.trust, "derived_from": append([]string{}, d.derivedFrom...),
		"source_event": d.sourceEvent, "supersedes": d.supersedes, "same_as": d.sameAs,
		"terms": ix.terms, "weights": ix.weights, "terms_version": ix.version,
	}
	d.fact.named(args, m.now())
	row, err := postgres.One[struct {
		ID          string
		StoredAt    time.Time
		TimesStored int
	}](ctx, db, keepSQL, args)
	if err != nil {
		return storeResult{}, fmt.Errorf("store memory: %w", err)
	}
	return storeResult{MemoryID: row.ID, StoredAt: row.StoredAt, TimesStored: row.TimesStored}, nil
}

// checkSources bounds the trust of a conclusion by that of what it was drawn
// from.
func (m memory) checkSources(ctx context.Context, tx pgx.Tx, d *draft) error {
	if len(d.derivedFrom) == 0 {
		return nil
	}
	known, err := postgres.All[struct {
		ID          string
		OriginTrust float64
	}](ctx, tx, sourcesSQL, pgx.StrictNamedArgs{"agent": d.agent, "ids": d.derivedFrom})
	if err != nil {
		return fmt.Errorf("read sources: %w", err)
	}
	for _, id := range d.derivedFrom {
		i := slices.IndexFunc(known, func(k struct {
			ID          string
			OriginTrust float64
		}) bool {
			return k.ID == id
		})
		if i < 0 {
			return fault.New(fault.NotFound, "no memory %s to derive from", id)
		}
		d.trust = min(d.trust, known[i].OriginTrust)
	}
	return nil
}

// supersede retires the memory that a new one corrects or closes.
func supersede(ctx context.Context, tx pgx.Tx, d draft, by string) error {
	n, err := postgres.Exec(ctx, tx, supersedeSQL, pgx.StrictNamedArgs{"agent": d.agent, "id": d.supersedes, "by": by})
	if err != nil {
		return fmt.Errorf("supersede memory: %w", err)
	}
	if n == 0 {
		return fault.New(fault.NotFound, "no memory %s to supersede", d.supersedes)
	}
	return nil
}

// What a search for a memory that says the same reads at most.
const (
	sameLength = 2000 // characters; longer texts are not compared
	sameDepth  = 64   // postings of a key
	sameChecks = 8    // memories compared
)

// findSame links the draft to a memory that says the same in nearly the same
// words. It is kept all the same: its own words must be found, and its id must
// give it back. A search shows the two as one.
func (m memory) findSame(ctx context.Context, d *draft) error {
	if len(d.content) > 4*sameLength {
		return nil
	}
	keys := terms.Keys(d.content)
	rows, err := postgres.All[struct {
		First   int32
		Content string
	}](ctx, m.db, sameSQL, pgx.StrictNamedArgs{
		"agent": d.agent, "terms": numbers(d.agent, keys), "least": (len(keys) + 1) / 2,
		"depth": sameDepth, "length": sameLength, "checks": sameChecks, "digest": d.digest(),
	})
	if err != nil {
		return fmt.Errorf("look for the same memory: %w", err)
	}
	for _, row := range rows {
		if terms.Same(d.content, row.Content) {
			d.sameAs = row.First
			return nil
		}
	}
	return nil
}

// The usual limits of one agent; the table memory_limits may set others.
const (
	MaxMemories = 5_000_000
	MaxPerDay   = 20_000
)

const overQuota fault.Reason = "over_quota"

// checkQuota refuses to store more than the agent may. Calls side by side may
// overstep a limit by as many.
func (m memory) checkQuota(ctx context.Context, agent string) error {
	now := m.now().UTC()
	midnight := now.Truncate(24 * time.Hour)
	q, err := postgres.One[struct {
		Day, MaxPerDay, MaxMemories int64
		Sampled                     int64
	}](ctx, m.db, quotaSQL, pgx.StrictNamedArgs{
		"agent": agent, "since": midnight, "any": number(agent, anyTerm),
		"max_per_day": MaxPerDay, "max_memories": MaxMemories, "rate": sampleRate,
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read memory quota: %w", err)
	case q.Day >= q.MaxPerDay:
		wait := midnight.Add(24 * time.Hour).Sub(now)
		return fault.Retry(overQuota, wait, "this agent has stored %s today, its limit; it starts anew at 00:00 UTC", plural.Of(q.MaxPerDay, "memory", "memories"))
	case q.Sampled*sampleRate >= q.MaxMemories:
		return fault.New(overQuota, "this agent has its limit of about %d memories; invalidate or consolidate some first", q.MaxMemories)
	}
	return nil
}
