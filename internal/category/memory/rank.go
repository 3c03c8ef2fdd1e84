package memory

import (
	"cmp"
	"math"
	"slices"
	"time"
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
	shareMeaning = 0.25
	// leastCoverage is how much of what is asked for a memory must have, by
	// weight, to be returned at all; leastMeaning is how nearly it must mean
	// it to be returned without.
	leastCoverage = 0.1
	leastMeaning  = 0.3
	// unrelated is the cosine of texts that have nothing to do with each other.
	unrelated = 0.2
)

// unseen is a number of memories taken to exist besides an agent's own, so
// that a word that half of three memories have still tells something.
const unseen = 100

// rarity is BM25's inverse document frequency.
func rarity(have, all float64) float64 {
	all = max(all, have) + unseen
	return math.Log(1 + (all-have+0.5)/(have+0.5))
}

// parts are what a score is made of, each between 0 and 1.
type parts struct {
	Relevance  float64 `json:"relevance"`
	Meaning    float64 `json:"meaning,omitzero"` // its share is in relevance
	Importance float64 `json:"importance"`
	Recency    float64 `json:"recency"`
	Trust      float64 `json:"trust"`
}

func (p parts) score() float64 {
	return p.Relevance * (shareRelevance + shareImportance*p.Importance + shareRecency*p.Recency + shareTrust*p.Trust)
}

// candidate is a memory that may be the answer.
type candidate struct {
	N           int32
	First       int32 // of the memories that say the same
	Follows     int32
	Importance  float64
	OriginTrust float64
	CreatedAt   time.Time
	Terms       []int64
	Weights     []int16
}

type ranked struct {
	n     int32
	score float64
	parts parts
}

// order ranks the candidates and drops those that are no answer.
func (q *question) order(rows []candidate, meanings map[int32]float64, now time.Time) []ranked {
	own := make(map[int32]float64, len(rows)) // relevance of each, taken alone
	answers := make([]candidate, 0, len(rows))
	for i, m := range q.match(rows) {
		if near := meanings[rows[i].N]; m.coverage >= leastCoverage || near >= leastMeaning {
			own[rows[i].N] = m.relevance + shareMeaning*near*(1-m.relevance)
			answers = append(answers, rows[i])
		}
	}
	context := contexts(answers, own)
	all := make([]ranked, len(answers))
	for i, c := range answers {
		p := parts{
			Meaning:    meanings[c.N],
			Relevance:  own[c.N] + shareContext*context[c.N]*(1-own[c.N]),
			Importance: (c.Importance - 1) / 9,
			Recency:    recency(now.Sub(c.CreatedAt)),
			Trust:      c.OriginTrust,
		}
		all[i] = ranked{n: c.N, parts: p, score: p.score()}
	}
	slices.SortFunc(all, func(a, b ranked) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.n, a.n)) })
	return oneEach(all, answers)
}

// oneEach keeps the best of the memories that say the same.
func oneEach(all []ranked, answers []candidate) []ranked {
	first := make(map[int32]int32, len(answers))
	for _, c := range answers {
		first[c.N] = c.First
	}
	shown := make(map[int32]bool, len(all))
	return slices.DeleteFunc(all, func(r ranked) bool {
		again := shown[first[r.n]]
		shown[first[r.n]] = true
		return again
	})
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
