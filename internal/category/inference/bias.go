package inference

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

	"pawgate/internal/postgres"
)

//go:embed feedback_like.sql
var feedbackLikeSQL string

// How feedback becomes a bias.
const (
	leastSimilarity = 0.3                 // of a record that counts
	mostRecords     = 8                   // that count, the closest first
	halfLife        = 14 * 24 * time.Hour // after which a record counts half
	strength        = 2.0                 // of a record of now that matches wholly
	mostBias        = 2.0                 // on a token, either way
	mostTokens      = 128                 // with a bias
	candidates      = 200                 // records that are compared at all
)

// Tokenize turns a text into the token ids of the model that will answer.
type Tokenize func(ctx context.Context, text string) ([]int, error)

// Bias is what an agent's feedback says about the tokens of the answer to a
// prompt, as a logit bias by token id; nil when nothing applies.
//
// Of the records whose prompts are similar, the closest count. Each token of a
// record's response, once, gets
//
//	reward × 0.5^(age ÷ 14 days) × similarity × 2
//
// What is common to good and bad answers cancels out.
func Bias(ctx context.Context, db postgres.DB, agent, prompt string, now time.Time, tokenize Tokenize) (map[int]float64, error) {
	sketch := Sketch(prompt)
	rows, err := postgres.All[record](ctx, db, feedbackLikeSQL, pgx.StrictNamedArgs{"agent": agent, "sketch": sketch, "most": candidates})
	if err != nil {
		return nil, fmt.Errorf("read feedback: %w", err)
	}
	bias := map[int]float64{}
	for _, r := range closest(rows, sketch) {
		weight := float64(r.Reward) * math.Pow(0.5, max(now.Sub(r.CreatedAt), 0).Hours()/halfLife.Hours()) * r.similarity * strength
		tokens, err := tokenize(ctx, r.Response)
		if err != nil {
			return nil, fmt.Errorf("tokenize feedback: %w", err)
		}
		slices.Sort(tokens)
		for _, t := range slices.Compact(tokens) {
			bias[t] += weight
		}
	}
	return strongest(bias), nil
}

// record is a row of feedback.
type record struct {
	Sketch     []int64
	Response   string
	Reward     int
	CreatedAt  time.Time
	similarity float64
}

func closest(rows []record, sketch []int64) []record {
	for i := range rows {
		rows[i].similarity = Similarity(rows[i].Sketch, sketch)
	}
	rows = slices.DeleteFunc(rows, func(r record) bool { return r.similarity < leastSimilarity })
	slices.SortStableFunc(rows, func(a, b record) int { return cmp.Compare(b.similarity, a.similarity) })
	return rows[:min(len(rows), mostRecords)]
}

// strongest bounds the bias in size and number.
func strongest(bias map[int]float64) map[int]float64 {
	maps.DeleteFunc(bias, func(_ int, b float64) bool { return math.Abs(b) < 0.01 })
	if len(bias) == 0 {
		return nil
	}
	ids := slices.SortedFunc(maps.Keys(bias), func(a, b int) int {
		return cmp.Or(cmp.Compare(math.Abs(bias[b]), math.Abs(bias[a])), cmp.Compare(a, b))
	})
	kept := map[int]float64{}
	for _, id := range ids[:min(len(ids), mostTokens)] {
		kept[id] = min(max(bias[id], -mostBias), mostBias)
	}
	return kept
}
