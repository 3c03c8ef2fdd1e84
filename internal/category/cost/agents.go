package cost

import (
	"context"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/usage"
)

type agentsArgs struct {
	windowArgs
}

type agentsResult struct {
	Window window      `json:"window"`
	Note   string      `json:"note,omitzero"`
	Agents []agentLine `json:"agents"`
	More   int         `json:"more"` // agents left out
}

type agentLine struct {
	AgentID string `json:"agent_id"`
	sums
	CacheHealth string `json:"cache_health,omitzero"` // healthy above 0.5, normal above 0.3, else degraded; absent without a prompt
}

func (c cost) agents(ctx context.Context, who caller.Caller, a agentsArgs) (agentsResult, error) {
	w, lines, more, err := c.ranked(ctx, who, a.windowArgs, "", usage.ByAgent)
	if err != nil {
		return agentsResult{}, err
	}
	r := agentsResult{Window: w, Note: note(total(lines)), Agents: []agentLine{}, More: more}
	for _, l := range lines {
		s := sumsOf(l)
		r.Agents = append(r.Agents, agentLine{AgentID: l.Key, sums: s, CacheHealth: health(s.CacheEfficiency)})
	}
	return r, nil
}

// ranked is a report of the dearest first, cut where an answer grows too long.
func (c cost) ranked(ctx context.Context, who caller.Caller, a windowArgs, agent string, group usage.Group) (w window, lines []usage.Line, more int, err error) {
	if w, err = a.at(c.now(), time.UTC); err != nil {
		return w, nil, 0, err
	}
	agents, err := c.seen(ctx, who, agent)
	if err != nil {
		return w, nil, 0, err
	}
	lines, err = usage.Report(ctx, c.db, usage.Query{From: w.From, To: w.To, Zone: w.zone, Agents: agents, Group: group})
	if len(lines) > maxLines {
		lines, more = lines[:maxLines], len(lines)-maxLines
	}
	return w, lines, more, err
}

func health(efficiency *float64) string {
	switch {
	case efficiency == nil:
		return ""
	case *efficiency > 0.5:
		return "healthy"
	case *efficiency > 0.3:
		return "normal"
	}
	return "degraded"
}
