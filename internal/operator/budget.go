package operator

import (
	"context"

	"pawgate/internal/budget"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/near"
	"pawgate/internal/policy"
)

type budgetSetArgs struct {
	Limit    string `json:"limit" doc:"Dollars, such as 25.00; 0 allows nothing at all" maxlen:"20"`
	Period   string `json:"period,omitempty" doc:"month if left out" enum:"hour,day,week,month"`
	AgentID  string `json:"agent_id,omitempty" doc:"Only this agent; * for each agent by itself; all together if left out" maxlen:"64"`
	UserID   string `json:"user_id,omitempty" doc:"Only this user; * for each by itself" maxlen:"200"`
	Tool     string `json:"tool,omitempty" doc:"Only this tool's own price; * for each by itself" maxlen:"64"`
	Timezone string `json:"timezone,omitempty" doc:"Where the period begins, such as Asia/Taipei; UTC if left out" maxlen:"60"`
	Warn     int    `json:"warn,omitempty" doc:"Per cent of it from which it warns; 80 if left out" min:"1" max:"100"`
	Soft     bool   `json:"soft,omitempty" doc:"Only warn, never refuse"`
	Unpriced string `json:"unpriced,omitempty" doc:"What a cost means that nobody knows; stop if left out" enum:"stop,warn"`
}

type budgetWas struct {
	ID      string `json:"budget_id"`
	Changed bool   `json:"changed"`
}

func (s *session) budgetSet(ctx context.Context, _ caller.Caller, a budgetSetArgs) (budgetWas, error) {
	if a.AgentID != "" && a.AgentID != "*" {
		if _, err := s.read(ctx, a.AgentID); err != nil {
			return budgetWas{}, err
		}
	}
	if a.Tool != "" && a.Tool != "*" && s.Catalog != nil && s.Catalog.Find(a.Tool) == nil {
		return budgetWas{}, fault.New(fault.NotFound, "no tool is named %s%s", short(a.Tool), near.DidYouMean(a.Tool, s.toolNames()))
	}
	limit, err := dollars("limit", a.Limit, 1e6)
	if err != nil {
		return budgetWas{}, err
	}
	period := a.Period
	if period == "" {
		period = "month"
	}
	id, err := budget.Set(ctx, s.db, budget.Budget{AgentID: a.AgentID, UserID: a.UserID, Tool: a.Tool, Period: period, Zone: a.Timezone, Limit: limit,
		WarnPercent: a.Warn, Hard: !a.Soft, Unpriced: a.Unpriced}, s.By)
	return budgetWas{ID: id, Changed: err == nil}, err
}

type budgetListArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only what covers this agent" maxlen:"64"`
}

type budgetListed struct {
	Budgets []budgetShown `json:"budgets"`
}

// budgetShown is a budget with its money in words.
type budgetShown struct {
	budget.Standing
	Allowed  string `json:"allowed"`
	Spent    string `json:"spent"`
	Expected string `json:"expected,omitzero"` // at the end of the period
}

func (s *session) budgetList(ctx context.Context, _ caller.Caller, a budgetListArgs) (budgetListed, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return budgetListed{}, err
	}
	var agents []string
	if a.AgentID != "" {
		agents = []string{a.AgentID}
	}
	list, err := budget.List(ctx, s.db, agents, s.Now())
	shown := make([]budgetShown, len(list))
	for i, b := range list {
		shown[i] = budgetShown{b, policy.Dollars(b.Limit), policy.Dollars(b.Settled), dollarsOr(b.Forecast, "")}
	}
	return budgetListed{shown}, err
}

type budgetRemoveArgs struct {
	BudgetID string `json:"budget_id" doc:"As pawgate budget list shows it" maxlen:"64"`
}

func (s *session) budgetRemove(ctx context.Context, _ caller.Caller, a budgetRemoveArgs) (budgetWas, error) {
	gone, err := budget.Remove(ctx, s.db, a.BudgetID)
	return budgetWas{ID: a.BudgetID, Changed: gone}, err
}
