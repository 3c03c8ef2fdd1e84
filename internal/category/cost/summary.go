package cost

import (
	"context"
	"slices"
	"time"

	"pawgate/internal/budget"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/usage"
)

type summaryArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"-" maxlen:"64"`
	windowArgs
	Timezone  string `json:"timezone,omitempty" doc:"As Asia/Taipei"`
	GroupBy   string `json:"group_by,omitempty" doc:"Lines" enum:"agent,user,model,provider,tool,request_type,session,hour,day,week,month"`
	UserID    string `json:"user_id,omitempty" doc:"-" maxlen:"256"`
	SessionID string `json:"session_id,omitempty" doc:"-" maxlen:"256"`
	Compare   bool   `json:"compare,omitempty" doc:"With the window before"`
}

type summaryResult struct {
	Window  window      `json:"window"`
	AgentID string      `json:"agent_id,omitzero"`
	Data    bool        `json:"has_data"`
	Note    string      `json:"note,omitzero"`
	Total   sums        `json:"total"`
	Lines   []line      `json:"lines"`            // empty without group_by
	Before  *comparison `json:"before,omitempty"` // with compare
	// Budgets are those that cover the agents, in their current period, with
	// what it will have cost at its end.
	Budgets []budget.Standing `json:"budgets"`
}

// line is one group of a report: its key, or the first moment of its period.
type line struct {
	Key    *string    `json:"key,omitempty"`
	Period *time.Time `json:"period,omitempty"`
	sums
}

// comparison is the window before and how much more this one cost.
type comparison struct {
	Window        window   `json:"window"`
	Data          bool     `json:"has_data"`
	Total         sums     `json:"total"`
	CostChange    *float64 `json:"cost_change"`    // 0.25: a quarter more; nil when there is nothing to compare with
	RequestChange *float64 `json:"request_change"` // the same of requests
}

// maxLines bounds the lines of an answer.
const maxLines = 1000

func (c cost) summary(ctx context.Context, who caller.Caller, a summaryArgs) (summaryResult, error) {
	zone, err := zoneOf(a.Timezone)
	if err != nil {
		return summaryResult{}, err
	}
	w, err := a.at(c.now(), zone)
	if err != nil {
		return summaryResult{}, err
	}
	agents, err := c.seen(ctx, who, a.AgentID)
	if err != nil {
		return summaryResult{}, err
	}
	q := usage.Query{From: w.From, To: w.To, Zone: w.zone, Agents: agents, User: a.UserID, Session: a.SessionID, Group: usage.Group(a.GroupBy)}
	lines, err := usage.Report(ctx, c.db, q)
	if err != nil {
		return summaryResult{}, err
	}
	all := total(lines)
	r := summaryResult{Window: w, AgentID: a.AgentID, Data: len(lines) > 0, Note: note(all), Total: sumsOf(all), Lines: []line{}}
	if q.Group != usage.Total {
		if len(lines) > maxLines {
			return summaryResult{}, fault.Invalid("group_by", "there are %d lines, more than %d; take a shorter window or another grouping", len(lines), maxLines)
		}
		r.Lines = linesOf(lines, q)
	}
	if r.Budgets, err = c.budgets(ctx, who, agents); err != nil {
		return summaryResult{}, err
	}
	if a.Compare {
		r.Before, err = c.compare(ctx, q, w.before(), all)
	}
	return r, err
}

// budgets are those that an agent may see: not what single users have left.
func (c cost) budgets(ctx context.Context, who caller.Caller, agents []string) ([]budget.Standing, error) {
	list, err := budget.List(ctx, c.db, agents, c.now())
	if !who.Operator() {
		list = slices.DeleteFunc(list, func(b budget.Standing) bool { return b.UserID != "" })
	}
	return list, err
}

func linesOf(lines []usage.Line, q usage.Query) []line {
	out := make([]line, len(lines))
	for i, l := range lines {
		out[i] = line{sums: sumsOf(l)}
		if l.Period.IsZero() {
			out[i].Key = &l.Key
			continue
		}
		begin := l.Period.In(q.Zone)
		out[i].Period = &begin
	}
	return out
}

// compare tells how much more this window cost than the one before.
func (c cost) compare(ctx context.Context, q usage.Query, before window, now usage.Line) (*comparison, error) {
	q.From, q.To, q.Group = before.From, before.To, usage.Total
	lines, err := usage.Report(ctx, c.db, q)
	if err != nil {
		return nil, err
	}
	then := total(lines)
	r := comparison{Window: before, Data: len(lines) > 0, Total: sumsOf(then), RequestChange: change(now.Requests, then.Requests)}
	if now.Unpriced == 0 && then.Unpriced == 0 {
		r.CostChange = change(now.Cost, then.Cost)
	}
	return &r, nil
}

func change(now, then int64) *float64 {
	if then == 0 {
		return nil
	}
	return ratio(float64(now)/float64(then) - 1)
}
