package memory

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"strings"

	"pawgate/internal/terms"
)

// index is what a memory is found by: the columns terms and weights.
type index struct {
	terms   []int64
	weights []int16
	version int
}

// The shape of a weight, after BM25: a term counts for more the more often it
// occurs, ever less so, and for less in a long text. The length that counts as
// usual is a constant and not the agent's average, so that a weight never
// changes once it is written.
const (
	saturation  = 0.9 // BM25's k1
	lengthShare = 0.3 // BM25's b
	usualLength = 40  // words
	mostLength  = 160 // words; a longer text is not pushed down further
)

// weightOne is the stored weight that stands for 1.
const weightOne = 10000

// indexOf takes a memory apart. Its tags can be searched like words, too.
func indexOf(d draft) index {
	bag := terms.Document(d.text() + "\n" + strings.Join(d.tags, "\n"))
	n := len(bag.Terms) + len(d.tags) + len(d.marks) + 1
	ix := index{terms: make([]int64, 0, n), weights: make([]int16, 0, n), version: terms.Version}
	for _, t := range bag.Terms {
		ix.add(d.agent, t.Text, weigh(t.Count, bag.Length))
	}
	for _, tag := range d.tags {
		ix.add(d.agent, tagTerm(tag), 0)
	}
	for _, mark := range d.marks {
		ix.add(d.agent, markTerm(mark), 0)
	}
	ix.add(d.agent, anyTerm, 0)
	return ix
}

func (ix *index) add(agent, term string, weight float64) {
	ix.terms = append(ix.terms, number(agent, term))
	ix.weights = append(ix.weights, int16(math.Round(weight*weightOne)))
}

func weigh(count, length int) float64 {
	c := float64(count)
	return c / (c + saturation*(1-lengthShare+lengthShare*float64(min(length, mostLength))/usualLength))
}

// anyTerm is a term of every memory. How many postings it has is how many
// memories there are. Like the terms of tags and marks it cannot occur in a text,
// because package terms has none that begins with a blank.
const anyTerm = " "

func tagTerm(tag string) string { return " #" + terms.Fold(tag) }

func markTerm(mark string) string { return " !" + mark }

// number is the term of an agent as it stands in the tables. Two terms of the
// same number would only be found for each other; the rows that are shown are
// filtered by agent all the same.
func number(agent, term string) int64 {
	h := fnv.New64a()
	_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(agent))))
	_, _ = h.Write([]byte(agent))
	_, _ = h.Write([]byte(term))
	return int64(h.Sum64())
}

func numbers(agent string, terms []string) []int64 {
	all := make([]int64, len(terms))
	for i, term := range terms {
		all[i] = number(agent, term)
	}
	return all
}
