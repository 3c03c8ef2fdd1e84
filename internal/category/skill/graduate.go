package skill

import (
	"context"
	_ "embed"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/skill/store"
)

//go:embed trials.sql
var trialsSQL string

// What a skill must have shown before every agent works by it.
const (
	leastTrials  = 3
	leastSuccess = 0.6
)

// notProven is the reason of a skill without enough good trials.
const notProven fault.Reason = "not_proven"

type graduateArgs struct {
	AgentID   string `json:"agent_id" doc:"-" maxlen:"64"`
	SkillName string `json:"skill_name" doc:"-" maxlen:"64"`
	Update    bool   `json:"update,omitempty" doc:"Replace an older one"`
	Unproven  bool   `json:"unproven,omitempty" doc:"Also without trials"`
}

func (a graduateArgs) Validate() error { return checkName(a.SkillName) }

type graduateResult struct {
	copyResult
	trials
}

// trials are what skill_bank_feedback said of one version. Without any, the
// rates are null: nothing is known.
type trials struct {
	Trials      int      `json:"trials"`
	SuccessRate *float64 `json:"success_rate"`
	// SuccessLow is what the rate is at least, with 95 % certainty (Wilson's
	// score interval).
	SuccessLow *float64 `json:"success_low"`
}

func newTrials(n, good int) trials {
	if n == 0 {
		return trials{}
	}
	const z = 1.96
	p, size := float64(good)/float64(n), float64(n)
	low := (p + z*z/(2*size) - z*math.Sqrt(p*(1-p)/size+z*z/(4*size*size))) / (1 + z*z/size)
	p, low = math.Round(p*1000)/1000, math.Round(max(0, low)*1000)/1000
	return trials{n, &p, &low}
}

// graduate makes a skill of an agent every agent's. It asks for good trials of
// the very version, and never takes the place of another global skill.
func (k skills) graduate(ctx context.Context, who caller.Caller, a graduateArgs) (graduateResult, error) {
	agent, err := k.reach(ctx, who, a.AgentID)
	if err != nil {
		return graduateResult{}, err
	}
	s, err := store.Find(ctx, k.db, store.Agent, agent, a.SkillName)
	if err != nil {
		return graduateResult{}, err
	}
	t, err := k.trials(ctx, s)
	if err != nil {
		return graduateResult{}, err
	}
	if !a.Unproven && (t.Trials < leastTrials || *t.SuccessRate < leastSuccess) {
		rate := "no rate"
		if t.SuccessRate != nil {
			rate = fmt.Sprintf("%.0f %%", *t.SuccessRate*100)
		}
		return graduateResult{}, fault.New(notProven, "version %d of %s has %d trials with %s success; it needs %d with %.0f %% (skill_bank_feedback), or unproven true",
			s.Version, s.Name, t.Trials, rate, leastTrials, leastSuccess*100).With("skill_id", s.ID).With("trials", t.Trials)
	}
	r, err := k.copy(ctx, s, store.Draft{Scope: store.Global, Lineage: "graduate:" + s.ID, By: who.Agent, Update: a.Update})
	return graduateResult{r, t}, err
}

// trials counts the feedback on the version of a skill that is in use.
func (k skills) trials(ctx context.Context, s store.Stored) (trials, error) {
	n, err := postgres.One[struct{ Trials, Good int }](ctx, k.db, trialsSQL, pgx.StrictNamedArgs{"id": s.ID, "version": s.Version})
	if err != nil {
		return trials{}, fmt.Errorf("count trials: %w", err)
	}
	return newTrials(n.Trials, n.Good), nil
}
