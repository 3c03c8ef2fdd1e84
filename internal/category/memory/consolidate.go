package memory

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
	"pawgate/internal/terms"
)

var (
	//go:embed consolidate_agents.sql
	consolidateAgentsSQL string
	//go:embed consolidate_lock.sql
	consolidateLockSQL string
	//go:embed consolidate_retire.sql
	consolidateRetireSQL string
	//go:embed consolidate_archive.sql
	consolidateArchiveSQL string
	//go:embed consolidate_alone.sql
	consolidateAloneSQL string
	//go:embed consolidate_link.sql
	consolidateLinkSQL string
	//go:embed consolidate_stale.sql
	consolidateStaleSQL string
	//go:embed consolidate_reindex.sql
	consolidateReindexSQL string
	//go:embed consolidate_note.sql
	consolidateNoteSQL string
)

// How a memory fades. Its strength falls with the time since it was last
// stored, the slower the more it matters and the oftener it was stored; what
// is semantic or procedural, a fact, a decision or still open does not fade.
const (
	fadeAfter      = 30 * 24 * time.Hour // no memory fades sooner
	fadeImportance = 5                   // nor one that matters more
	fadeDays       = 60                  // strength after so many days, at importance 5, stored once: 1/e
	fadeStrength   = 0.05
	// consolidateBatch bounds the rows that one statement of a run touches;
	// the next run goes on.
	consolidateBatch = 5000
)

// Consolidated counts what a consolidation did.
type Consolidated struct {
	Retired   int `json:"retired"`   // facts that ran out
	Archived  int `json:"archived"`  // memories that faded; kept, found no more
	Linked    int `json:"linked"`    // memories found to say the same as another
	Reindexed int `json:"reindexed"` // memories indexed by older rules
}

// Consolidate tidies one agent's memories: it retires facts that ran out,
// archives what has faded, links what says the same and indexes anew what was
// indexed by older rules. It is idempotent, does a bounded amount of work, and
// may run beside writers; of two runs at once for one agent the second does
// nothing.
func Consolidate(ctx context.Context, db postgres.DB, agent string, now time.Time) (Consolidated, error) {
	m := memory{db: db, now: func() time.Time { return now }}
	var done Consolidated
	err := postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		lock, err := postgres.One[struct{ Mine bool }](ctx, tx, consolidateLockSQL, pgx.StrictNamedArgs{"lock": number(agent, " consolidate")})
		if err != nil || !lock.Mine {
			return err
		}
		m.db = tx
		for _, step := range []struct {
			verb  string
			run   func(context.Context, string) (int, error)
			count *int
		}{
			{"retire facts", m.retire, &done.Retired},
			{"archive memories", m.archive, &done.Archived},
			{"index memories anew", m.reindex, &done.Reindexed},
			{"link memories", m.link, &done.Linked},
		} {
			if *step.count, err = step.run(ctx, agent); err != nil {
				return fmt.Errorf("%s: %w", step.verb, err)
			}
		}
		_, err = postgres.Exec(ctx, tx, consolidateNoteSQL, pgx.StrictNamedArgs{
			"agent": agent, "now": now, "retired": done.Retired, "archived": done.Archived, "linked": done.Linked, "reindexed": done.Reindexed,
		})
		return err
	})
	if err != nil {
		return Consolidated{}, fmt.Errorf("consolidate memories: %w", err)
	}
	return done, nil
}

// consolidateEvery is the least time between two runs for one agent, so that a
// schedule that fires twice does nothing the second time.
const consolidateEvery = time.Hour

// ConsolidateAll runs Consolidate for every agent whose turn it is, the one
// that waited longest first, until all are done or it is too late to begin with
// another. It is what a schedule calls. An agent whose run fails does not keep
// the others from theirs; the errors come joined.
func ConsolidateAll(ctx context.Context, db postgres.DB, now, until time.Time) (map[string]Consolidated, error) {
	agents, err := postgres.All[struct{ Agent string }](ctx, db, consolidateAgentsSQL, pgx.StrictNamedArgs{"before": now.Add(-consolidateEvery)})
	if err != nil {
		return nil, fmt.Errorf("list agents to consolidate: %w", err)
	}
	done := make(map[string]Consolidated, len(agents))
	var failed []error
	for _, a := range agents {
		if ctx.Err() != nil || time.Now().After(until) { // the others come first the next time
			break
		}
		c, err := Consolidate(ctx, db, a.Agent, now)
		if err != nil {
			failed = append(failed, fmt.Errorf("agent %s: %w", a.Agent, err))
			continue
		}
		done[a.Agent] = c
	}
	return done, errors.Join(failed...)
}

func (m memory) retire(ctx context.Context, agent string) (int, error) {
	n, err := postgres.Exec(ctx, m.db, consolidateRetireSQL, pgx.StrictNamedArgs{"agent": agent, "now": m.now()})
	return int(n), err
}

func (m memory) archive(ctx context.Context, agent string) (int, error) {
	n, err := postgres.Exec(ctx, m.db, consolidateArchiveSQL, pgx.StrictNamedArgs{
		"agent": agent, "now": m.now(), "before": m.now().Add(-fadeAfter), "importance": fadeImportance,
		"days": fadeDays, "strength": fadeStrength, "limit": consolidateBatch,
	})
	return int(n), err
}

// link compares memories that stand alone with what is like them; storing
// compares only with what was there at the time.
func (m memory) link(ctx context.Context, agent string) (int, error) {
	rows, err := postgres.All[struct {
		N       int32
		Content string
	}](ctx, m.db, consolidateAloneSQL, pgx.StrictNamedArgs{
		"agent": agent, "since": m.now().AddDate(0, 0, -2), "length": sameLength, "limit": consolidateBatch / 10,
	})
	if err != nil {
		return 0, err
	}
	linked := 0
	for _, row := range rows {
		d := draft{agent: agent, content: row.Content}
		if err := m.findSame(ctx, &d); err != nil {
			return linked, err
		}
		if d.sameAs == 0 || d.sameAs >= row.N { // the older one stays first
			continue
		}
		n, err := postgres.Exec(ctx, m.db, consolidateLinkSQL, pgx.StrictNamedArgs{"agent": agent, "n": row.N, "first": d.sameAs})
		if err != nil {
			return linked, err
		}
		linked += int(n)
	}
	return linked, nil
}

// reindex applies the present rules to what older ones indexed.
func (m memory) reindex(ctx context.Context, agent string) (int, error) {
	rows, err := postgres.All[struct {
		N                          int32
		Content                    string
		Tags, Marks                []string
		Subject, Predicate, Object string
	}](ctx, m.db, consolidateStaleSQL, pgx.StrictNamedArgs{"agent": agent, "version": terms.Version, "limit": consolidateBatch / 10})
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		d := draft{agent: agent, content: r.Content, tags: r.Tags, marks: r.Marks}
		if r.Subject != "" {
			d.fact = &fact{subject: r.Subject, predicate: r.Predicate, object: r.Object}
		}
		ix := indexOf(d)
		_, err := postgres.Exec(ctx, m.db, consolidateReindexSQL, pgx.StrictNamedArgs{
			"agent": agent, "n": r.N, "terms": ix.terms, "weights": ix.weights, "version": ix.version,
		})
		if err != nil {
			return 0, err
		}
	}
	return len(rows), nil
}
