package skill

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// history are calls of tools, n in a stretch of work.
func history(rng *rand.Rand, stretches, n, tools int) []callRow {
	var calls []callRow
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for range stretches {
		at = at.Add(time.Hour)
		for range n {
			at = at.Add(time.Second)
			calls = append(calls, callRow{Tool: fmt.Sprintf("t%d", rng.IntN(tools)), RequestID: fmt.Sprint(len(calls)), At: at, OK: rng.IntN(4) > 0})
		}
	}
	return calls
}

// What is a part of another candidate that came up as often is none of its own,
// and nothing else is left out.
func TestFromCalls_leaves_parts_out(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		found := fromCalls("a", history(rng, 2+rng.IntN(5), 3+rng.IntN(8), 2+rng.IntN(3)))
		for _, part := range found {
			for _, whole := range found {
				if len(whole.Tools) > len(part.Tools) && whole.Times >= part.Times && strings.Contains(" "+strings.Join(whole.Tools, " ")+" ", " "+strings.Join(part.Tools, " ")+" ") {
					t.Fatalf("%v is a part of %v", part.Tools, whole.Tools)
				}
			}
		}
	}
	call := func(tool string, minute int) callRow {
		return callRow{Tool: tool, At: time.Date(2026, 12, 1, 0, minute, 0, 0, time.UTC), OK: true}
	}
	// a b c twice, and a b once more: both are worth telling, b c is not.
	calls := []callRow{call("a", 0), call("b", 1), call("c", 2), call("a", 100), call("b", 101), call("c", 102), call("a", 200), call("b", 201)}
	got := map[string]int{}
	for _, c := range fromCalls("a", calls) {
		got[strings.Join(c.Tools, " ")] = c.Times
	}
	if len(got) != 2 || got["a b c"] != 2 || got["a b"] != 3 {
		t.Errorf("got %v", got)
	}
}

// BenchmarkFromCalls has as many calls as are read at most.
func BenchmarkFromCalls(b *testing.B) {
	calls := history(rand.New(rand.NewPCG(1, 2)), mostCalls/100, 100, 30)
	for b.Loop() {
		fromCalls("a", calls)
	}
}
