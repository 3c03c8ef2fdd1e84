package cost

import (
	"math"

	"pawgate/internal/usage"
)

// sums are what reports tell of a line.
type sums struct {
	Requests int64 `json:"requests"`
	// CostMicroUSD is nil when nothing of it has a known cost.
	CostMicroUSD *int64 `json:"cost_micro_usd"`
	// UnpricedRequests are of models and tools without a price; their cost is
	// not in the sum.
	UnpricedRequests   int64 `json:"unpriced_requests"`
	InputTokens        int64 `json:"input_tokens"` // neither read from a cache nor written to one
	OutputTokens       int64 `json:"output_tokens"`
	ReasoningTokens    int64 `json:"reasoning_tokens"` // the part of the output that was thought
	CacheReadTokens    int64 `json:"cache_read_tokens"`
	CacheWrite5mTokens int64 `json:"cache_write_5m_tokens"`
	CacheWrite1hTokens int64 `json:"cache_write_1h_tokens"`
	Units              int64 `json:"units"` // search credits, messages
	// CacheEfficiency is the part of all prompt tokens that came from a cache;
	// nil without a prompt.
	CacheEfficiency *float64 `json:"cache_efficiency"`
}

func sumsOf(l usage.Line) sums {
	s := sums{Requests: l.Requests, UnpricedRequests: l.Unpriced, InputTokens: l.Input, OutputTokens: l.Output, ReasoningTokens: l.Reasoning,
		CacheReadTokens: l.CacheRead, CacheWrite5mTokens: l.CacheWrite5, CacheWrite1hTokens: l.CacheWrite1, Units: l.Units}
	if l.Cost > 0 || l.Unpriced == 0 {
		s.CostMicroUSD = &l.Cost
	}
	if prompt := l.Input + l.CacheRead + l.CacheWrite5 + l.CacheWrite1; prompt > 0 {
		s.CacheEfficiency = ratio(float64(l.CacheRead) / float64(prompt))
	}
	return s
}

// ratio is rounded to four digits, enough for a reader and the same on every
// machine.
func ratio(v float64) *float64 {
	v = math.Round(v*10000) / 10000
	return &v
}

// total adds lines up.
func total(lines []usage.Line) usage.Line {
	var t usage.Line
	for _, l := range lines {
		t.Requests, t.Unpriced, t.Units = t.Requests+l.Requests, t.Unpriced+l.Unpriced, t.Units+l.Units
		t.Input, t.Output, t.Reasoning = t.Input+l.Input, t.Output+l.Output, t.Reasoning+l.Reasoning
		t.CacheRead, t.CacheWrite5, t.CacheWrite1 = t.CacheRead+l.CacheRead, t.CacheWrite5+l.CacheWrite5, t.CacheWrite1+l.CacheWrite1
		t.Cost += l.Cost
	}
	return t
}

// note says what a reader could mistake.
func note(t usage.Line) string {
	switch {
	case t.Requests == 0 && t.Input == 0 && t.Output == 0 && t.Units == 0 && t.Cost == 0:
		return "no usage was recorded in this window"
	case t.Unpriced > 0:
		return "some requests are of models or tools without a known price; their cost is not in the sums. An operator imports prices with: pawgate cost prices import FILE"
	}
	return ""
}
