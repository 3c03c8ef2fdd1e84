package cost

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
	"pawgate/internal/usage"
)

//go:embed reliability.sql
var reliabilitySQL string

type reliabilityArgs struct {
	AgentID    string `json:"agent_id" doc:"-" maxlen:"128"`
	WindowDays int    `json:"window_days,omitempty" doc:"7 if left out" min:"1" max:"365"`
}

type reliabilityResult struct {
	Window  window `json:"window"`
	AgentID string `json:"agent_id"`
	Data    bool   `json:"has_data"`
	Note    string `json:"note,omitzero"`
	// Success is the part of its calls that were carried out.
	Success rate `json:"task_success_rate"`
	// Consistency is the mean over its tools of that part: how far one can
	// rely on a tool whichever it is. Its count is of tools.
	Consistency rate `json:"consistency"`
	// SkillAdoption is the part of its calls that used a skill.
	SkillAdoption rate `json:"skill_adoption_rate"`
	// Fallback is the part of its model requests that another model served
	// than was asked for.
	Fallback rate `json:"fallback_rate"`
}

// rate is a part of a whole and how sure it is.
type rate struct {
	Value  *float64 `json:"value"` // nil: no data, which is neither good nor bad
	Count  int64    `json:"count"` // of how many
	Lowest *float64 `json:"lowest,omitempty"`
	// Highest and Lowest are the bounds of Wilson's interval: with a
	// probability of 95 % the true rate lies between them.
	Highest *float64 `json:"highest,omitempty"`
}

// reliability judges calls that were let through, not those the gate refused: a
// refusal says something of the lists, not of the agent.
func (c cost) reliability(ctx context.Context, who caller.Caller, a reliabilityArgs) (reliabilityResult, error) {
	if _, err := c.seen(ctx, who, a.AgentID); err != nil {
		return reliabilityResult{}, err
	}
	days := a.WindowDays
	if days == 0 {
		days = 7
	}
	w := newWindow(c.now().AddDate(0, 0, -days), c.now(), time.UTC)
	n, err := postgres.One[struct {
		Calls, Done, Skills, Tools, Fallbacks int64
		Consistency                           *float64
	}](ctx, c.db, reliabilitySQL, pgx.StrictNamedArgs{"agent": a.AgentID, "from": w.From, "to": w.To})
	if err != nil {
		return reliabilityResult{}, fmt.Errorf("read reliability: %w", err)
	}
	models, err := usage.Report(ctx, c.db, usage.Query{From: w.From, To: w.To, Agents: []string{a.AgentID}, Group: usage.ByModel})
	if err != nil {
		return reliabilityResult{}, err
	}
	var requests int64
	for _, m := range models {
		if m.Key != "" { // not of tools
			requests += m.Requests
		}
	}
	r := reliabilityResult{Window: w, AgentID: a.AgentID, Data: n.Calls+requests > 0,
		Success: rateOf(n.Done, n.Calls), SkillAdoption: rateOf(n.Skills, n.Calls), Fallback: rateOf(n.Fallbacks, requests),
		Consistency: rate{Count: n.Tools}}
	if n.Consistency != nil {
		r.Consistency.Value = ratio(*n.Consistency)
	}
	if !r.Data {
		r.Note = "no calls and no model requests in this window, so nothing is known"
	}
	return r, nil
}

// rateOf is a rate with Wilson's 95 % interval.
func rateOf(good, all int64) rate {
	r := rate{Count: all}
	if all == 0 {
		return r
	}
	const z = 1.959964
	n := float64(all)
	p := float64(good) / n
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	r.Value, r.Lowest, r.Highest = ratio(p), ratio(max(0, middle-half)), ratio(min(1, middle+half))
	return r
}
