package memory

import (
	"cmp"
	"math"
	"slices"

	"pawgate/internal/terms"
)

// question is a query against one agent's memories: what it asks for, and
// what the index has of it.
type question struct {
	needs []need
	any   int64 // the term of every memory
	lists map[int64]list
	// numbers are the memories that the lists name; a memory's place among
	// them stands for it below.
	numbers []int32
}

type need struct {
	weight float64 // how much it matters, once read also by how rare it is
	hint   bool    // it is no answer alone
	any    []alternative
}

// alternative is some terms that together meet a need.
type alternative struct {
	terms []int64
	fit   float64
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
	places  []int32
	weights []int16
	cut     bool
	total   float64 // postings in all, an estimate where the list is cut
}

func ask(agent string, needs []terms.Need) question {
	q := question{any: number(agent, anyTerm), needs: make([]need, len(needs))}
	for i, n := range needs {
		q.needs[i] = need{weight: n.Weight, hint: n.Hint}
		for _, alt := range n.Any {
			q.needs[i].any = append(q.needs[i].any, alternative{terms: numbers(agent, alt.Terms), fit: alt.Fit})
		}
	}
	return q
}

// terms are the different terms asked for, and the term of every memory.
func (q *question) terms() []int64 {
	all := []int64{q.any}
	for _, n := range q.needs {
		for _, alt := range n.any {
			all = append(all, alt.terms...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// read takes in what the index has: at most depth postings of each term, or,
// behind a filter, those of them that passed it.
func (q *question) read(rows []posting, depth int, filtered bool) {
	q.lists = make(map[int64]list, len(rows))
	places := map[int32]int32{}
	for _, r := range rows {
		l := list{weights: r.Weights, cut: filtered || len(r.Memories) >= depth, total: float64(len(r.Memories))}
		if l.cut {
			l.total = max(l.total, float64(r.Sampled*sampleRate))
		}
		if r.Term != q.any {
			l.places = make([]int32, len(r.Memories))
			for i, n := range r.Memories {
				place, known := places[n]
				if !known {
					place = int32(len(q.numbers))
					places[n] = place
					q.numbers = append(q.numbers, n)
				}
				l.places[i] = place
			}
		}
		q.lists[r.Term] = l
	}
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

// best weighs the needs by how rare they are and returns the most promising
// memories by what was read of the lists.
func (q *question) best(limit int) []int32 {
	scores := make([]float64, len(q.numbers))
	met := make([]float64, len(q.numbers)) // how well the need at hand is met
	var touched []int32
	for i := range q.needs {
		n := &q.needs[i]
		touched = q.meet(*n, met, touched[:0])
		n.weight *= rarity(q.frequency(*n, len(touched)), q.lists[q.any].total)
		for _, place := range touched {
			scores[place] += n.weight * met[place]
			met[place] = 0
		}
	}
	return q.highest(scores, limit)
}

// highest are the memories with the highest scores, of equal ones the newer.
func (q *question) highest(scores []float64, limit int) []int32 {
	limit = min(limit, len(scores))
	if limit == 0 {
		return nil
	}
	sorted := slices.Clone(scores)
	slices.Sort(sorted)
	least := sorted[len(sorted)-limit]
	var places []int32
	for place, score := range scores {
		if score >= least {
			places = append(places, int32(place))
		}
	}
	slices.SortFunc(places, func(a, b int32) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(q.numbers[b], q.numbers[a]))
	})
	best := make([]int32, limit)
	for i := range best {
		best[i] = q.numbers[places[i]]
	}
	return best
}

// meet notes in met how well each memory of the lists meets a need, by the
// alternative that fits best, and returns the places it touched.
func (q *question) meet(n need, met []float64, touched []int32) []int32 {
	for _, alt := range n.any {
		places, weights := q.all(alt.terms)
		for i, place := range places {
			if met[place] == 0 {
				touched = append(touched, place)
			}
			met[place] = max(met[place], alt.fit*float64(weights[i])/weightOne)
		}
	}
	return touched
}

// all are the memories that have all the terms, each with its least weight.
func (q *question) all(terms []int64) (places []int32, weights []int16) {
	first := q.lists[terms[0]]
	if len(terms) == 1 {
		return first.places, first.weights
	}
	least := make(map[int32]int16, len(first.places))
	for i, place := range first.places {
		least[place] = first.weights[i]
	}
	for _, term := range terms[1:] {
		next := make(map[int32]int16, len(least))
		l := q.lists[term]
		for i, place := range l.places {
			if w, ok := least[place]; ok {
				next[place] = min(w, l.weights[i])
			}
		}
		least = next
	}
	for place, w := range least {
		places, weights = append(places, place), append(weights, w)
	}
	return places, weights
}

// frequency is how many memories meet a need: those that were read, or, where
// a list was cut, the estimate of the longest.
func (q *question) frequency(n need, read int) float64 {
	most := float64(read)
	for _, alt := range n.any {
		if len(alt.terms) == 1 {
			most = max(most, q.lists[alt.terms[0]].total)
		}
	}
	return most
}

// matched says how well a candidate meets the needs, and how much of them it
// meets at all, each between 0 and 1.
type matched struct{ relevance, coverage float64 }

// match matches every candidate with all needs. Where a list was cut, it looks
// into the candidate's own terms.
func (q *question) match(rows []candidate) []matched {
	at := make(map[int32]int32, len(q.numbers)) // number → place
	for place, n := range q.numbers {
		at[n] = int32(place)
	}
	total := 0.0
	all := make([]matched, len(rows))
	met := make([]float64, len(q.numbers))
	var touched []int32
	for _, n := range q.needs {
		total += n.weight
		touched = q.meet(n, met, touched[:0])
		for i, c := range rows {
			fit := q.own(n, c)
			if place, known := at[c.N]; known {
				fit = max(fit, met[place])
			}
			all[i].relevance += n.weight * fit
			if fit > 0 && !n.hint {
				all[i].coverage += n.weight
			}
		}
		for _, place := range touched {
			met[place] = 0
		}
	}
	for i := range all {
		all[i].relevance /= total
		all[i].coverage /= total
	}
	return all
}

// own is how well a candidate's own terms meet a need by the alternatives
// whose lists were cut.
func (q *question) own(n need, c candidate) float64 {
	best := 0.0
	for _, alt := range n.any {
		if slices.ContainsFunc(alt.terms, func(term int64) bool { return q.lists[term].cut }) {
			best = max(best, alt.fit*c.least(alt.terms)/weightOne)
		}
	}
	return best
}

// least is the least weight of some terms in a candidate; 0 when one is
// missing.
func (c candidate) least(terms []int64) float64 {
	least := math.Inf(1)
	for _, term := range terms {
		i := slices.Index(c.Terms, term)
		if i < 0 {
			return 0
		}
		least = min(least, float64(c.Weights[i]))
	}
	return least
}
