package operator

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

//go:embed agent_status.sql
var agentStatusSQL string

type agentStatusArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only this agent" maxlen:"64"`
	All     bool   `json:"all,omitempty" doc:"Show archived agents too"`
}

// agentHealth is how one agent is doing.
type agentHealth struct {
	AgentID    string     `json:"agent_id"`
	State      string     `json:"state"` // active, paused, archived, or stopped by an emergency stop
	ReportsTo  string     `json:"reports_to,omitzero"`
	Calls      int        `json:"calls_24h"`
	Refused    int        `json:"refused_24h"`
	Failed     int        `json:"failed_24h"`
	LastCallAt *time.Time `json:"last_call_at,omitzero"` // of the last 24 hours
	LastError  string     `json:"last_error,omitzero"`   // tool and reason, of the last 24 hours
	Queued     int        `json:"queued"`
	Running    int        `json:"running"`
	Dead       int        `json:"dead_24h"`
	NextAt     *time.Time `json:"next_at,omitzero"`     // the next slot of its schedules
	CostMicros *int64     `json:"cost_today_micro_usd"` // since the beginning of the day, UTC; null: of no request known
	Unpriced   int64      `json:"unpriced_today"`       // requests of unknown cost, which the sum leaves out
	CostToday  string     `json:"cost_today" db:"-"`    // the two in words
	Asks       int        `json:"approvals_pending"`
}

type agentStatusResult struct {
	Agents []agentHealth `json:"agents"`
}

// agentStatus tells how the agents are doing, those first that need a look.
func (s *session) agentStatus(ctx context.Context, _ caller.Caller, a agentStatusArgs) (agentStatusResult, error) {
	if a.AgentID != "" {
		if _, err := s.read(ctx, a.AgentID); err != nil {
			return agentStatusResult{}, err
		}
	}
	now := s.Now()
	agents, err := postgres.All[agentHealth](ctx, s.db, agentStatusSQL, pgx.StrictNamedArgs{
		"agent_id": a.AgentID, "all": a.All, "since": now.Add(-24 * time.Hour), "today": now.UTC().Truncate(24 * time.Hour),
	})
	if err != nil {
		return agentStatusResult{}, fmt.Errorf("read status of agents: %w", err)
	}
	for i := range agents {
		agents[i].CostToday = agents[i].cost()
	}
	return agentStatusResult{agents}, nil
}

// cost says what the day cost, and what of it nobody knows.
func (h agentHealth) cost() string {
	switch {
	case h.CostMicros == nil:
		return "unknown"
	case h.Unpriced > 0:
		return fmt.Sprintf("$%.4f and %d unknown", float64(*h.CostMicros)/1e6, h.Unpriced)
	}
	return fmt.Sprintf("$%.4f", float64(*h.CostMicros)/1e6)
}
