package operator

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/agentfile"
	"pawgate/internal/budget"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/roster"
	"pawgate/internal/standing"
)

var (
	//go:embed agent_read.sql
	agentReadSQL string
	//go:embed agent_write.sql
	agentWriteSQL string
)

// stored is an agent's row, all of it.
type stored struct {
	agentRow
	Source string
	// SoftBudget is of an import; where a budget is there already, that one says
	// whether it stops.
	SoftBudget bool   `db:"-"`
	Policy     string // the argument rules, as a JSON list
	Evolution  string // what evolution_toggle has set, as a JSON object
}

// blank is a new agent with what is usual.
func blank() stored {
	return stored{agentRow: agentRow{State: "active", Approver: string(policy.ByOperator),
		ApprovalMinutes: defaultApprovalMinutes, GrantMinutes: defaultGrantMinutes, Limits: map[string]standing.Limit{}}, Policy: "[]", Evolution: "{}"}
}

// Of an agent that says nothing else.
const (
	defaultApprovalMinutes = 15
	defaultGrantMinutes    = 60
)

// agentRow is what is shown of an agent.
type agentRow struct {
	AgentID               string                    `json:"agent_id"`
	DisplayName           string                    `json:"display_name"`
	Role                  string                    `json:"role"`
	State                 string                    `json:"state"`
	Model                 string                    `json:"model,omitzero"`
	ReportsTo             string                    `json:"reports_to,omitzero"`
	Icon                  string                    `json:"icon,omitzero"`
	Trigger               string                    `json:"trigger,omitzero"`
	AllowedTools          []string                  `json:"allowed_tools"`
	DeniedTools           []string                  `json:"denied_tools"`
	ApprovalRequiredTools []string                  `json:"approval_required_tools"`
	ScopedTools           []string                  `json:"scoped_tools"`
	Approver              string                    `json:"approver"`         // operator, client or none
	ApprovalMinutes       int                       `json:"approval_minutes"` // how long a request waits
	GrantMinutes          int                       `json:"grant_minutes"`    // how long a grant lives
	ApprovalCard          string                    `json:"approval_card,omitzero"`
	Limits                map[string]standing.Limit `json:"limits,omitempty"` // by class, where they are not the usual ones
	// Of these, nobody has said anything where they are missing.
	FallbackModel    *string   `json:"fallback_model,omitzero"`
	APIMode          *string   `json:"api_mode,omitzero"`
	BudgetCents      *int64    `json:"budget_cents,omitzero"` // for a month
	MaxConcurrent    *int      `json:"max_concurrent,omitzero"`
	HeartbeatEnabled *bool     `json:"heartbeat_enabled,omitzero"`
	HeartbeatCron    *string   `json:"heartbeat_cron,omitzero"`
	CreatedBy        string    `json:"created_by,omitzero"` // the agent that made it
	Version          int64     `json:"version"`             // grows with every change
	CreatedAt        time.Time `json:"created_at"`
	UpdatedAt        time.Time `json:"updated_at"`
}

// read gets an agent for a change or a look; fault.NotFound when there is none.
func (s *session) read(ctx context.Context, agentID string) (stored, error) {
	s.about = agentID
	row, err := postgres.One[stored](ctx, s.db, agentReadSQL, pgx.StrictNamedArgs{"agent_id": agentID})
	if errors.Is(err, pgx.ErrNoRows) {
		s.about = ""
		return stored{}, fault.New(fault.NotFound, "no agent %s; pawgate agent list shows those there are", short(agentID))
	}
	if err != nil {
		return stored{}, fmt.Errorf("read agent: %w", err)
	}
	return row, nil
}

// only looks at one agent's part of a list, or at all of it: a name that is
// misspelt must not look like an agent without any.
func (s *session) only(ctx context.Context, agentID string) error {
	if agentID == "" {
		return nil
	}
	_, err := s.read(ctx, agentID)
	return err
}

// write checks an agent and makes or replaces its row. The caller holds the
// lock.
func (s *session) write(ctx context.Context, a stored) (agentRow, error) {
	s.about = a.AgentID
	if err := s.checkTexts(a.agentRow); err != nil {
		return agentRow{}, err
	}
	if err := roster.CheckSuperior(ctx, s.db, a.AgentID, a.ReportsTo); err != nil {
		return agentRow{}, err
	}
	limits, err := json.Marshal(a.Limits)
	if err != nil {
		return agentRow{}, fmt.Errorf("encode limits: %w", err)
	}
	written, err := postgres.One[stored](ctx, s.db, agentWriteSQL, pgx.StrictNamedArgs{
		"agent_id": a.AgentID, "display_name": a.DisplayName, "role": a.Role, "state": a.State, "model": a.Model,
		"reports_to": a.ReportsTo, "icon": a.Icon, "trigger": a.Trigger, "allowed": list(a.AllowedTools), "denied": list(a.DeniedTools),
		"approval": list(a.ApprovalRequiredTools), "scoped": list(a.ScopedTools), "source": a.Source, "now": s.Now(),
		"approver": a.Approver, "approval_minutes": a.ApprovalMinutes, "grant_minutes": a.GrantMinutes, "limits": string(limits), "policy": a.Policy, "approval_card": a.ApprovalCard,
		"fallback_model": a.FallbackModel, "api_mode": a.APIMode, "budget_cents": a.BudgetCents, "max_concurrent": a.MaxConcurrent,
		"heartbeat_enabled": a.HeartbeatEnabled, "heartbeat_cron": a.HeartbeatCron,
	})
	if err != nil {
		return agentRow{}, fmt.Errorf("write agent: %w", err)
	}
	return written.agentRow, nil
}

// replace is write for an agent that is there. One that comes back from the
// archive needs a place in the licence; one that goes there leaves nothing
// running.
func (s *session) replace(ctx context.Context, before, after stored) (agentRow, error) {
	goes := after.State == archived && before.State != archived
	switch {
	case before.State == archived && after.State != archived:
		if err := s.checkAgentLimit(ctx); err != nil {
			return agentRow{}, err
		}
	case goes:
		after.State = before.State
	}
	// One that is as before keeps the fractions of a cent that the column lacks.
	spends := after.BudgetCents != nil && (before.BudgetCents == nil || *before.BudgetCents != *after.BudgetCents)
	if spends {
		if err := budget.Alone(ctx, s.db); err != nil {
			return agentRow{}, err
		}
	}
	row, err := s.write(ctx, after)
	if err == nil && spends {
		err = budget.SetMonth(ctx, s.db, budget.Month{AgentID: after.AgentID, Cents: *after.BudgetCents, Soft: after.SoftBudget, By: s.By})
	}
	if err != nil || !goes {
		return row, err
	}
	if _, err := roster.Archive(ctx, s.db, after.AgentID, s.By, s.Now()); err != nil {
		return agentRow{}, err
	}
	gone, err := s.read(ctx, after.AgentID)
	return gone.agentRow, err
}

// list is never nil, which would be null to the database.
func list(patterns []string) []string { return append([]string{}, patterns...) }

// lock keeps others from changing agents until the transaction ends.
func (s *session) lock(ctx context.Context) error { return roster.Lock(ctx, s.db) }

func (s *session) checkTexts(a agentRow) error {
	if !agentfile.IsID(a.AgentID) {
		return fault.Invalid("agent_id", "agent_id must start with a letter or digit and have only a-z, 0-9, - and _, at most 64 of them")
	}
	for _, text := range [][2]string{{"display_name", a.DisplayName}, {"role", a.Role}, {"model", a.Model}, {"icon", a.Icon}, {"trigger", a.Trigger},
		{"fallback_model", deref(a.FallbackModel)}, {"heartbeat_cron", deref(a.HeartbeatCron)}} {
		if err := roster.CheckText(text[0], text[1]); err != nil {
			return err
		}
	}
	return nil
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

type agentArgs struct {
	AgentID string `json:"agent_id" doc:"The agent's id" maxlen:"64"`
}

type agentShown struct {
	agentRow
	Rules    []string      `json:"rules"`    // agent rules has them as they are written
	Imported bool          `json:"imported"` // agent export has its text
	Stops    []stopInForce `json:"stops"`
	Keys     []keyShown    `json:"keys"`
}

func (s *session) agentShow(ctx context.Context, who caller.Caller, a agentArgs) (agentShown, error) {
	row, err := s.read(ctx, a.AgentID)
	if err != nil {
		return agentShown{}, err
	}
	stops, err := s.emergencyStop(ctx, who, "status", stopArgs{AgentID: a.AgentID})
	if err != nil {
		return agentShown{}, err
	}
	keys, err := s.keys(ctx, keyListArgs{AgentID: a.AgentID})
	if err != nil {
		return agentShown{}, err
	}
	rules, err := row.rules()
	if err != nil {
		return agentShown{}, err
	}
	return agentShown{agentRow: row.agentRow, Rules: sentences(rules), Imported: row.Source != "", Stops: stops.Stops, Keys: keys}, nil
}
