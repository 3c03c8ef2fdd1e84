package memory

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
	"pawgate/internal/terms"
)

var (
	//go:embed postings.sql
	postingsSQL string
	//go:embed postings_filtered.sql
	postingsFilteredSQL string
	//go:embed candidates.sql
	candidatesSQL string
	//go:embed rows.sql
	rowsSQL string
	//go:embed filter_time.sql
	filterTimeSQL string
	//go:embed filter_layer.sql
	filterLayerSQL string
	//go:embed filter_tags.sql
	filterTagsSQL string
)

// What a search reads at most. Terms that are rarer than the depth are read
// whole, so a memory with one rare term of the query is always ranked; of
// common terms only the heaviest postings are.
const (
	totalDepth   = 8000 // postings, all terms together
	leastDepth   = 200  // of a term
	mostDepth    = 1000
	scanDepth    = 20000 // postings looked at behind a filter, of a term
	sampleRate   = 64    // as in the index memory_terms_sample
	sampleDepth  = 4000  // counted of a term's sample
	candidates   = 120   // memories ranked
	filtered     = 500   // newest memories behind a filter, ranked besides
	excerpt      = 2000  // characters of a content in a list
	defaultLimit = 10
)

type searchArgs struct {
	Query string `json:"query" doc:"Words; empty: the latest" maxlen:"10000"`
	filterArgs
	sharedArgs
	Limit   int  `json:"limit,omitempty" doc:"Or 10" min:"1" max:"100"`
	Explain bool `json:"explain,omitempty" doc:"Add score parts"`
}

type searchResult struct {
	Memories []found `json:"memories"`
	// Order is "relevance", or "latest" when the query has nothing to look for.
	Order string `json:"order"`
	// WordsOnly says that the embedder did not answer in time, so that what
	// says the same in other words may be missing.
	WordsOnly bool `json:"words_only,omitzero"`
}

// found is a memory in a list.
type found struct {
	ID         string    `json:"id"`
	Content    string    `json:"content"`
	Truncated  bool      `json:"truncated,omitzero"`
	Tags       []string  `json:"tags"`
	Layer      string    `json:"layer"`
	Importance float32   `json:"importance"`
	CreatedAt  time.Time `json:"created_at"`
	// SimilarIDs are memories that say the same in nearly the same words.
	SimilarIDs []string `json:"similar_ids,omitempty"`
	Score      float64  `json:"score,omitzero"`
	Parts      *parts   `json:"score_parts,omitzero"`
}

// search finds the caller's memories, or those that another agent shares with
// it.
func (m memory) search(ctx context.Context, who caller.Caller, a searchArgs) (searchResult, error) {
	v, err := m.view(ctx, who, a.sharedArgs)
	if err != nil {
		return searchResult{}, err
	}
	return m.find(ctx, v, a)
}

// find is search within a view.
func (m memory) find(ctx context.Context, v view, a searchArgs) (searchResult, error) {
	limit := cmp.Or(a.Limit, defaultLimit)
	needs := terms.Query(a.Query)
	if len(needs) == 0 {
		list, err := m.latest(ctx, v, a.filterArgs, limit)
		return searchResult{Memories: list, Order: "latest"}, err
	}
	if err := m.expand(ctx, v.agent, a.Query, needs); err != nil {
		return searchResult{}, err
	}
	meanings, asked, err := m.meanings(ctx, v, a.Query, a.filterArgs)
	if err != nil {
		return searchResult{}, err
	}
	ranked, err := m.rank(ctx, v, needs, meanings, a.filterArgs)
	if err != nil {
		return searchResult{}, err
	}
	list, err := m.show(ctx, v, ranked[:min(limit, len(ranked))], a.Explain)
	return searchResult{Memories: list, Order: "relevance", WordsOnly: !asked}, err
}

// rank finds the numbers of the memories that meet some of the needs or mean
// the same, best first.
func (m memory) rank(ctx context.Context, v view, needs []terms.Need, meanings map[int32]float64, f filterArgs) ([]ranked, error) {
	q := ask(v.agent, needs)
	if err := m.readPostings(ctx, v, f, &q); err != nil {
		return nil, fmt.Errorf("read postings: %w", err)
	}
	best := q.best(candidates)
	if !f.none(v) {
		// The filter may leave few memories, none of them high in the list of
		// a common term.
		newest, err := m.newest(ctx, v, f, filtered)
		if err != nil {
			return nil, err
		}
		best = append(best, newest...)
	}
	best = slices.AppendSeq(best, maps.Keys(meanings))
	slices.Sort(best)
	best = slices.Compact(best)
	if len(best) == 0 {
		return nil, nil
	}
	rows, err := postgres.All[candidate](ctx, m.db, candidatesSQL, pgx.StrictNamedArgs{
		"agent": v.agent, "shared": v.tags, "numbers": best, "whole": q.whole(), "now": m.now(),
	})
	if err != nil {
		return nil, fmt.Errorf("read candidates: %w", err)
	}
	return q.order(rows, meanings, m.now()), nil
}

// show fetches what is shown of the memories, in their order.
func (m memory) show(ctx context.Context, v view, list []ranked, explain bool) ([]found, error) {
	if len(list) == 0 {
		return nil, nil
	}
	numbers := make([]int32, len(list))
	for i, r := range list {
		numbers[i] = r.n
	}
	rows, err := postgres.All[shownRow](ctx, m.db, rowsSQL, pgx.StrictNamedArgs{
		"agent": v.agent, "shared": v.tags, "numbers": numbers, "excerpt": excerpt,
	})
	if err != nil {
		return nil, fmt.Errorf("read found memories: %w", err)
	}
	byNumber := make(map[int32]found, len(rows))
	for _, r := range rows {
		byNumber[r.N] = r.found()
	}
	all := make([]found, 0, len(rows))
	for _, r := range list {
		f, still := byNumber[r.n]
		if !still { // invalidated between the two statements
			continue
		}
		f.Score = shown(r.score)
		if explain {
			p := r.parts
			f.Parts = &parts{shown(p.Relevance), shown(p.Meaning), shown(p.Importance), shown(p.Recency), shown(p.Trust)}
		}
		all = append(all, f)
	}
	return all, nil
}

// shown leaves four digits of a score; more would tell a model nothing.
func shown(score float64) float64 { return math.Round(score*1e4) / 1e4 }

// latest are the newest memories that pass the filter.
func (m memory) latest(ctx context.Context, v view, f filterArgs, limit int) ([]found, error) {
	numbers, err := m.newest(ctx, v, f, limit)
	if err != nil {
		return nil, err
	}
	list := make([]ranked, len(numbers))
	for i, n := range numbers {
		list[i].n = n
	}
	return m.show(ctx, v, list, false)
}

func (m memory) newest(ctx context.Context, v view, f filterArgs, limit int) ([]int32, error) {
	sql, args := filterTagsSQL, f.named(v)
	switch {
	case len(f.Tags) > 0 || f.mark != "":
		args["scan_depth"] = scanDepth
	case len(v.tags) > 0:
		args["scan_depth"], args["tags"] = scanDepth, v.tags
	default:
		if sql = filterLayerSQL; f.Layer == "" {
			sql = filterTimeSQL
			delete(args, "layer")
		}
		delete(args, "tags")
		delete(args, "shared")
	}
	args["limit"], args["now"] = limit, m.now()
	rows, err := postgres.All[struct{ N int32 }](ctx, m.db, sql, args)
	if err != nil {
		return nil, fmt.Errorf("list latest memories: %w", err)
	}
	numbers := make([]int32, len(rows))
	for i, r := range rows {
		numbers[i] = r.N
	}
	return numbers, nil
}

// shownRow is what rows.sql and latest.sql return.
type shownRow struct {
	N          int32
	ID         string
	Content    string
	Truncated  bool
	Tags       []string
	Layer      string
	Importance float32
	CreatedAt  time.Time
	SimilarIDs []string
}

func (r shownRow) found() found {
	return found{ID: r.ID, Content: r.Content, Truncated: r.Truncated, Tags: r.Tags, Layer: r.Layer,
		Importance: r.Importance, CreatedAt: r.CreatedAt, SimilarIDs: r.SimilarIDs}
}

func (m memory) readPostings(ctx context.Context, v view, f filterArgs, q *question) error {
	asked := q.terms()
	args := pgx.StrictNamedArgs{}
	sql := postingsSQL
	if !f.none(v) {
		sql, args = postingsFilteredSQL, f.named(v)
		args["scan_depth"] = scanDepth
	}
	args["terms"] = asked
	args["depth"] = max(leastDepth, min(mostDepth, totalDepth/len(asked)))
	args["sample_depth"] = sampleDepth
	rows, err := postgres.All[posting](ctx, m.db, sql, args)
	if err != nil {
		return err
	}
	if len(v.tags) > 0 { // how common a word is in what is not shared must not show in a score
		for i := range rows {
			rows[i].Sampled = 0
		}
	}
	q.read(rows, args["depth"].(int), !f.none(v))
	return nil
}
