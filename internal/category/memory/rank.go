package memory

import (
	"cmp"
	"math"
	"slices"
	"time"

	"pawgate/internal/category/memory/terms"
)

// The weights of the final order. Relevance comes first: everything else
// together moves a score by a tenth at most, so it decides between memories
// that answer a query about equally well.
const (
	shareRelevance  = 0.90
	shareImportance = 0.04
	shareRecency    = 0.03
	shareTrust      = 0.03
	// halfLife is the age at which recency has fallen to one half.
	halfLife = 30 * 24 * time.Hour
)

// The weights within relevance. Memories stored one after the other are often
// about one thing, so a good match lifts the memory before and after it; it
// never lifts one above itself.
const (
	shareContext = 0.5
	// leastCoverage is how much of what is asked for a memory must have, by
	// weight, to be returned at all.
	leastCoverage = 0.1
)

// unseen is a number of memories taken to exist besides an agent's own, so
// that a word that half of three memories have still tells something.
const unseen = 100

// parts are what a score is made of, each between 0 and 1.
type parts struct {
	Relevance  float64 `json:"relevance"`
	Importance float64 `json:"importance"`
	Recency    float64 `json:"recency"`
	Trust      float64 `json:"trust"`
}

func (p parts) score() float64 {
	return p.Relevance * (shareRelevance + shareImportance*p.Importance + shareRecency*p.Recency + shareTrust*p.Trust)
}

type ranked struct {
	n     int32
	score float64
	parts parts
}

// question is a query against one agent's memories.
type question struct {
	needs []need
	any   int64
	lists map[int64]list
	depth int
}

type need struct {
	weight float64 // how much it matters, its rarity included
	hint   bool    // it is no answer alone
	any    []alternative
}

type alternative struct {
	term int64
	fit  float64
}

// posting is what the postings statements return: the top of a term's list.
type posting struct {
	Term     int64
	Memories []int32
	Weights  []int16
	Sampled  int64
}

// list is the top of a term's postings; cut says that there are more.
type list struct {
	weights map[int32]float64
	cut     bool
	total   float64 // postings in all, an estimate where the list is cut
}

// candidate is a memory that may be the answer.
type candidate struct {
	N           int32
	Follows     int32
	Importance  float64
	OriginTrust float64
	CreatedAt   time.Time
	Terms       []int64
	Weights     []int16
}

func ask(agent string, needs []terms.Need) question {
	q := question{any: number(agent, anyTerm), needs: make([]need, len(needs))}
	for i, n := range needs {
		q.needs[i] = need{weight: n.Weight, hint: n.Hint}
		for _, alt := range n.Any {
			q.needs[i].any = append(q.needs[i].any, alternative{term: number(agent, alt.Term), fit: alt.Fit})
		}
	}
	return q
}

// read takes the postings in and weighs the needs by how rare they are.
func (q *question) read(rows []posting, depth int) {
	q.lists = make(map[int64]list, len(rows))
	for _, r := range rows {
		l := list{weights: make(map[int32]float64, len(r.Memories)), cut: len(r.Memories) >= depth, total: float64(len(r.Memories))}
		if l.cut {
			l.total = max(l.total, float64(r.Sampled*sampleRate))
		}
		for i, n := range r.Memories {
			l.weights[n] = float64(r.Weights[i]) / weightOne
		}
		q.lists[r.Term] = l
	}
	all := q.lists[q.any].total
	for i := range q.needs {
		q.needs[i].weight *= rarity(q.frequency(q.needs[i]), all)
	}
}

// rarity is BM25's inverse document frequency.
func rarity(have, all float64) float64 {
	all = max(all, have) + unseen
	return math.Log(1 + (all-have+0.5)/(have+0.5))
}

// frequency is how many memories meet a need.
func (q *question) frequency(n need) float64 {
	union := map[int32]struct{}{}
	most := 0.0
	for _, alt := range n.any {
		l := q.lists[alt.term]
		most = max(most, l.total)
		if len(n.any) == 1 || l.cut {
			continue
		}
		for m := range l.weights {
			union[m] = struct{}{}
		}
	}
	return max(most, float64(len(union)))
}

// whole reports whether every list was read to its end.
func (q *question) whole() bool {
	for term, l := range q.lists {
		if l.cut && term != q.any {
			return false
		}
	}
	return true
}

// best are the most promising memories by what was read of the lists.
func (q *question) best(limit int) []int32 {
	scores := map[int32]float64{}
	for _, n := range q.needs {
		for m, w := range q.meets(n) {
			scores[m] += n.weight * w
		}
	}
	numbers := make([]int32, 0, len(scores))
	for m := range scores {
		numbers = append(numbers, m)
	}
	slices.SortFunc(numbers, func(a, b int32) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(b, a)) })
	return numbers[:min(limit, len(numbers))]
}

// meets says how well each memory of the lists meets a need: by the
// alternative that fits best.
func (q *question) meets(n need) map[int32]float64 {
	if len(n.any) == 1 {
		return q.lists[n.any[0].term].weights
	}
	best := map[int32]float64{}
	for _, alt := range n.any {
		for m, w := range q.lists[alt.term].weights {
			best[m] = max(best[m], alt.fit*w)
		}
	}
	return best
}

// order ranks the candidates and drops those that are no answer.
func (q *question) order(rows []candidate, now time.Time) []ranked {
	total := 0.0
	for _, n := range q.needs {
		total += n.weight
	}
	own := make(map[int32]float64, len(rows)) // relevance of each, taken alone
	answers := make([]candidate, 0, len(rows))
	for _, c := range rows {
		relevance, coverage := q.match(c)
		if coverage >= leastCoverage*total {
			own[c.N] = relevance / total
			answers = append(answers, c)
		}
	}
	context := contexts(answers, own)
	all := make([]ranked, len(answers))
	for i, c := range answers {
		p := parts{
			Relevance:  own[c.N] + shareContext*context[c.N]*(1-own[c.N]),
			Importance: (c.Importance - 1) / 9,
			Recency:    recency(now.Sub(c.CreatedAt)),
			Trust:      c.OriginTrust,
		}
		all[i] = ranked{n: c.N, parts: p, score: p.score()}
	}
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.n, a.n)) })
	return all
}

// contexts are the better relevance of the memory before and the one after.
func contexts(answers []candidate, own map[int32]float64) map[int32]float64 {
	context := make(map[int32]float64, len(answers))
	for _, c := range answers {
		if before, ok := own[c.Follows]; ok {
			context[c.N] = max(context[c.N], before)
			context[c.Follows] = max(context[c.Follows], own[c.N])
		}
	}
	return context
}

func recency(age time.Duration) float64 {
	return math.Exp2(-max(0, float64(age)) / float64(halfLife))
}

// match says how well a candidate meets the needs, and how much of them it
// meets at all.
func (q *question) match(c candidate) (relevance, coverage float64) {
	for _, n := range q.needs {
		best := 0.0
		for _, alt := range n.any {
			best = max(best, alt.fit*q.weight(alt.term, c))
		}
		relevance += n.weight * best
		if best > 0 && !n.hint {
			coverage += n.weight
		}
	}
	return relevance, coverage
}

// weight is that of a term in a candidate: from the list, or, where the list
// was cut before it, from the candidate's own terms.
func (q *question) weight(term int64, c candidate) float64 {
	l := q.lists[term]
	if w, ok := l.weights[c.N]; ok || !l.cut {
		return w
	}
	if i := slices.Index(c.Terms, term); i >= 0 {
		return float64(c.Weights[i]) / weightOne
	}
	return 0
}
