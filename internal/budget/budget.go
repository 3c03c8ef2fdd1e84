// Package budget holds back money for a call before it runs and settles it
// afterwards.
//
// Postgres decides, in one statement each: a hold is granted only while what is
// spent and what is held leave room for it, whoever else asks at the moment. So
// the sum of what is settled never passes a hard budget, as long as a call costs no more
// than was held for it. The gate does the same for tools with a price; this
// package is for whoever asks models.
package budget

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/usage"
)

var (
	//go:embed reserve.sql
	reserveSQL string
	//go:embed release.sql
	releaseSQL string
	//go:embed settle.sql
	settleSQL string
)

// Ask is what a call may cost at most, and for whom.
type Ask struct {
	Agent string
	User  string // "": none
	Tool  string // "": no tool, a model
	// Micros is the most that it may cost, in micro-dollars.
	Micros int64
	// Most, when not nil, is priced instead of Micros: the tokens that a request
	// may take at most, its prompt at the dearest that a provider may do with it.
	// Where its model has no price, a hard budget refuses, unless it is set to
	// let that pass.
	Most *usage.Row
	// For is how long the money is held at most, should nobody settle; 0: ten
	// minutes. It must be longer than the call can take.
	For time.Duration
}

// Hold is money held back.
type Hold struct {
	ID string
	// Micros is how much; nil where the price is not known.
	Micros *int64
	// Warn is the fullest budget that is past its warning, or nil.
	Warn *policy.Budget
}

// Reserve holds back what a call may cost, in every budget that covers it. Where
// one has no room, it fails with fault.BudgetExceeded, which says how much is
// spent of how much and when it begins anew, and nothing is held.
func Reserve(ctx context.Context, db postgres.DB, a Ask) (Hold, error) {
	id := rand.Text()
	ask := map[string]any{"id": id, "agent_id": a.Agent, "user_id": a.User, "tool": a.Tool, "seconds": cmp.Or(a.For, 10*time.Minute).Seconds()}
	if a.Most != nil {
		ask["usage"] = a.Most
	} else {
		ask["micros"] = a.Micros
	}
	encoded, err := json.Marshal(ask)
	if err != nil {
		return Hold{}, fmt.Errorf("encode hold: %w", err)
	}
	row, err := postgres.First[struct{ Answer []byte }](ctx, db, reserveSQL, string(encoded))
	if err != nil {
		return Hold{}, fmt.Errorf("hold money: %w", err)
	}
	answer, err := Read(row.Answer)
	if err != nil {
		return Hold{}, err
	}
	if !answer.OK {
		return Hold{}, policy.Broke(answer.Budget, answer.Wanted).Fault
	}
	return Hold{ID: id, Micros: answer.Micros, Warn: answer.Warn}, nil
}

// Answer is what the database says to an Ask.
type Answer struct {
	OK     bool           `json:"ok"`
	Micros *int64         `json:"micros"`
	Warn   *policy.Budget `json:"warn"`
	Budget policy.Budget  `json:"budget"` // that has no room
	Wanted *int64         `json:"wanted"`
}

// Read reads an answer.
func Read(answer []byte) (Answer, error) {
	var a Answer
	if err := json.Unmarshal(answer, &a); err != nil {
		return Answer{}, fmt.Errorf("read hold: %w", err)
	}
	return a, nil
}

// Release lets go what was held for a call that did not run.
func Release(ctx context.Context, db postgres.DB, h Hold) error {
	if _, err := db.Exec(ctx, releaseSQL, []string{h.ID}); err != nil {
		return fmt.Errorf("release money: %w", postgres.Classify(err))
	}
	return nil
}

// Settle records what a call came to and lets go what was held for it, at once.
// It may be called again with the same rows.
func Settle(ctx context.Context, db postgres.DB, h Hold, rows ...usage.Row) (usage.Recorded, error) {
	encoded, err := usage.Encode(rows...)
	if err != nil {
		return usage.Recorded{}, err
	}
	done, err := postgres.First[usage.Recorded](ctx, db, settleSQL, []string{h.ID}, encoded)
	if err != nil {
		return usage.Recorded{}, fmt.Errorf("settle money: %w", err)
	}
	return done, nil
}
