package skill

import (
	"math"
	"slices"

	"pawgate/internal/terms"
)

// Weights of where a term stands, and the least score that is an answer.
const (
	inHead     = 1.0
	inBody     = 0.4
	leastScore = 0.12
)

// entry is what a search ranks: the terms of a skill that the question has.
type entry struct {
	head, body []string
}

// only is the entry with the terms that are wanted, which are sorted.
func (e entry) only(wanted []string) entry {
	among := func(all []string) []string {
		var some []string
		for _, t := range all {
			if _, ok := slices.BinarySearch(wanted, t); ok {
				some = append(some, t)
			}
		}
		return some
	}
	return entry{among(e.head), among(e.body)}
}

// asked are all terms of a question's needs.
func asked(needs []terms.Need) []string {
	all := []string{}
	for _, n := range needs {
		for _, alternative := range n.Any {
			all = append(all, alternative.Terms...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// scores give each entry how well it meets the needs, from 0 to 1: the share of
// the needs met, rare ones counting more, those in name, tags or description
// more than those in the instructions.
func scores(needs []terms.Need, entries []entry) []float64 {
	rarity := make([]float64, len(needs))
	whole := 0.0
	for i, n := range needs {
		having := 0
		for _, e := range entries {
			if met(n, e) > 0 {
				having++
			}
		}
		rarity[i] = n.Weight * (1 + math.Log(float64(1+len(entries))/float64(1+having)))
		if !n.Hint {
			whole += rarity[i]
		}
	}
	all := make([]float64, len(entries))
	for i, e := range entries {
		sum, hints := 0.0, 0.0
		for j, n := range needs {
			if n.Hint {
				hints += met(n, e) * rarity[j]
				continue
			}
			sum += met(n, e) * rarity[j]
		}
		if sum > 0 { // a hint is no answer alone
			sum += hints / 4
		}
		if whole > 0 {
			all[i] = min(1, sum/whole)
		}
	}
	return all
}

// met is how well one need is met, from 0 to 1.
func met(n terms.Need, e entry) float64 {
	best := 0.0
	for _, alternative := range n.Any {
		at := inHead
		for _, t := range alternative.Terms {
			switch {
			case slices.Contains(e.head, t):
			case slices.Contains(e.body, t):
				at = min(at, inBody)
			default:
				at = 0
			}
		}
		best = max(best, at*alternative.Fit)
	}
	return best
}

// termsOf are the terms of a text that are asked for.
func termsOf(text string, wanted []string) []string {
	found := []string{}
	for _, t := range terms.Document(text).Terms {
		if _, ok := slices.BinarySearch(wanted, t.Text); ok {
			found = append(found, t.Text)
		}
	}
	return found
}
