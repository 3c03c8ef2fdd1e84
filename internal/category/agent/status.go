package agent

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

//go:embed status.sql
var statusSQL string

// window is how far back the counts and errors of agent_status go.
const window = 24 * time.Hour

// lastRows is how many calls, and how many errors, agent_status shows.
const lastRows = 5

type statusArgs struct {
	AgentID     string `json:"agent_id" doc:"-" maxlen:"64"`
	IncludeSoul bool   `json:"include_soul,omitempty" doc:"Show the persona"`
}

type statusResult struct {
	AgentID       string `json:"agent_id"`
	DisplayName   string `json:"display_name"`
	Role          string `json:"role"`
	State         string `json:"state"` // active, paused or archived
	Stopped       bool   `json:"stopped"`
	Stops         []stop `json:"stops"`
	ReportsTo     string `json:"reports_to,omitzero"`
	DirectReports int    `json:"direct_reports"`
	Model         string `json:"model,omitzero"`
	Icon          string `json:"icon,omitzero"`
	Trigger       string `json:"trigger,omitzero"`
	CreatedBy     string `json:"created_by,omitzero"` // the agent that made it; absent: an operator
	Version       int64  `json:"version"`             // for if_version of agent_update
	settings
	Soul       *soul     `json:"soul,omitzero"` // absent: it has none
	Keys       keys      `json:"keys"`
	LastDay    counts    `json:"last_24h"`
	LastCalls  []call    `json:"last_calls"`  // newest first, however old
	LastErrors []call    `json:"last_errors"` // newest first, of the last 24 hours
	Queue      queue     `json:"queue"`
	Agenda     agenda    `json:"agenda"`
	CostToday  cost      `json:"cost_today"`
	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
}

// settings are what agent_update sets besides who an agent is; one that is
// missing was never set.
type settings struct {
	FallbackModel    *string `json:"fallback_model,omitzero"`
	APIMode          *string `json:"api_mode,omitzero"`
	BudgetCents      *int64  `json:"budget_cents,omitzero"`
	MaxConcurrent    *int    `json:"max_concurrent,omitzero"`
	HeartbeatEnabled *bool   `json:"heartbeat_enabled,omitzero"`
	HeartbeatCron    *string `json:"heartbeat_cron,omitzero"`
}

// soul is the version of a persona that holds.
type soul struct {
	Version   int       `json:"version"` // for if_version of agent_update_soul
	Bytes     int       `json:"bytes"`
	SHA256    string    `json:"sha256"`
	WrittenBy string    `json:"written_by"`
	WrittenAt time.Time `json:"written_at"`
	Content   string    `json:"content,omitzero"` // if include_soul is set
}

// stop is an emergency stop in force that covers the agent.
type stop struct {
	Scope  string    `json:"scope"` // all or agent
	Reason string    `json:"reason,omitzero"`
	Since  time.Time `json:"since"`
}

// keys counts the agent's credentials.
type keys struct {
	Active     int        `json:"active"`
	Expired    int        `json:"expired"`
	Revoked    int        `json:"revoked"`
	LastUsedAt *time.Time `json:"last_used_at,omitzero"`
}

type counts struct {
	Calls   int `json:"calls"`   // all of them, refused ones included
	Refused int `json:"refused"` // by the gate
	Failed  int `json:"failed"`  // ran and answered with a fault, or had broken arguments
}

// queue is the work that others gave the agent.
type queue struct {
	Queued  int        `json:"queued"`
	Running int        `json:"running"`
	Oldest  *time.Time `json:"oldest_at,omitzero"` // since when the longest waiting one could have been done
	Done    int        `json:"done_24h"`
	Dead    int        `json:"dead_24h"` // given up after the last attempt
}

// agenda is what comes by itself.
type agenda struct {
	Schedules int        `json:"schedules"` // those that are on
	NextAt    *time.Time `json:"next_at,omitzero"`
	Reminders int        `json:"reminders"` // those that wait
}

// cost is what the agent's answers of models and paid calls cost.
type cost struct {
	Since        time.Time `json:"since"`          // the beginning of the day, UTC
	CostMicroUSD *int64    `json:"cost_micro_usd"` // null: there were requests, and the cost of none is known
	Requests     int64     `json:"requests"`
	Unpriced     int64     `json:"unpriced"` // requests of unknown cost, which the sum leaves out
}

type call struct {
	At         time.Time `json:"at"`
	Tool       string    `json:"tool"`
	Decision   string    `json:"decision"` // allowed or refused
	Outcome    string    `json:"outcome,omitzero"`
	Reason     string    `json:"reason,omitzero"`
	DurationMS float64   `json:"duration_ms"`
}

// status tells how one agent is doing. It fails with fault.NotFound alike for
// an agent that does not exist and one that the caller may not see.
func (c agent) status(ctx context.Context, who caller.Caller, a statusArgs) (statusResult, error) {
	now := c.now()
	result, err := postgres.One[statusResult](ctx, c.db, statusSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "operator": who.Operator(), "agent_id": a.AgentID,
		"soul": a.IncludeSoul, "now": now, "since": now.Add(-window), "today": now.UTC().Truncate(24 * time.Hour), "rows": lastRows,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return statusResult{}, noAgent(a.AgentID)
	}
	if err != nil {
		return statusResult{}, fmt.Errorf("read agent status: %w", err)
	}
	return result, nil
}
