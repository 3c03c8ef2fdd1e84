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
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/standing"
)

var (
	//go:embed agent_read.sql
	agentReadSQL string
	//go:embed agent_write.sql
	agentWriteSQL string
	//go:embed agent_lock.sql
	agentLockSQL string
	//go:embed agent_above.sql
	agentAboveSQL string
)

// stored is an agent's row, all of it.
type stored struct {
	agentRow
	Source string
	Policy string // the argument rules, as a JSON list
}

// blank is a new agent with what is usual.
func blank() stored {
	return stored{agentRow: agentRow{State: "active", Approver: string(policy.ByOperator),
		ApprovalMinutes: defaultApprovalMinutes, GrantMinutes: defaultGrantMinutes, Limits: map[string]standing.Limit{}}, Policy: "[]"}
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
	Limits                map[string]standing.Limit `json:"limits,omitempty"` // by class, where they are not the usual ones
	CreatedAt             time.Time                 `json:"created_at"`
	UpdatedAt             time.Time                 `json:"updated_at"`
}

// read gets an agent for a change or a look; fault.NotFound when there is none.
func (s *session) read(ctx context.Context, agentID string) (stored, error) {
	s.about = agentID
	row, err := postgres.One[stored](ctx, s.db, agentReadSQL, pgx.StrictNamedArgs{"agent_id": agentID})
	if errors.Is(err, pgx.ErrNoRows) {
		s.about = ""
		return stored{}, fault.New(fault.NotFound, "no agent %s; agent list shows those there are", short(agentID))
	}
	if err != nil {
		return stored{}, fmt.Errorf("read agent: %w", err)
	}
	return row, nil
}

// write checks an agent and makes or replaces its row. The caller holds the
// lock.
func (s *session) write(ctx context.Context, a stored) (agentRow, error) {
	s.about = a.AgentID
	if err := s.checkTexts(a.agentRow); err != nil {
		return agentRow{}, err
	}
	if err := s.checkSuperior(ctx, a.agentRow); err != nil {
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
		"approver": a.Approver, "approval_minutes": a.ApprovalMinutes, "grant_minutes": a.GrantMinutes, "limits": string(limits), "policy": a.Policy,
	})
	if err != nil {
		return agentRow{}, fmt.Errorf("write agent: %w", err)
	}
	return written.agentRow, nil
}

// list is never nil, which would be null to the database.
func list(patterns []string) []string { return append([]string{}, patterns...) }

// lock keeps other operators from changing agents until the transaction ends:
// two changes at once could otherwise close a circle of superiors, or lose
// one another's patterns. Reading goes on meanwhile.
func (s *session) lock(ctx context.Context) error {
	if _, err := s.db.Exec(ctx, agentLockSQL); err != nil {
		return fmt.Errorf("lock agents: %w", postgres.Classify(err))
	}
	return nil
}

func (s *session) checkTexts(a agentRow) error {
	if !agentfile.IsID(a.AgentID) {
		return fault.Invalid("agent_id", "agent_id must start with a letter or digit and have only a-z, 0-9, - and _, at most 64 of them")
	}
	for _, text := range [][2]string{{"display_name", a.DisplayName}, {"role", a.Role}, {"model", a.Model}, {"icon", a.Icon}, {"trigger", a.Trigger}} {
		if !agentfile.IsText(text[1]) {
			return fault.Invalid(text[0], "%s must be one line of at most 200 characters", text[0])
		}
	}
	return nil
}

// checkSuperior refuses a superior that does not exist, and circles: whoever
// reports to himself through others could be stopped by everyone in between.
func (s *session) checkSuperior(ctx context.Context, a agentRow) error {
	if a.ReportsTo == "" {
		return nil
	}
	above, err := postgres.All[struct{ ID string }](ctx, s.db, agentAboveSQL, pgx.StrictNamedArgs{"agent_id": a.ReportsTo})
	switch {
	case err != nil:
		return fmt.Errorf("read superiors: %w", err)
	case len(above) == 0:
		return fault.New(missingSuperior, "reports_to: no agent %s; create or import it first", short(a.ReportsTo))
	}
	for _, superior := range above {
		if superior.ID == a.AgentID {
			return fault.Invalid("reports_to", "%s reports to %s already, directly or through others, so it cannot be its superior", a.ReportsTo, a.AgentID)
		}
	}
	return nil
}

// missingSuperior is the reason of a fault that goes away once another agent
// is there; an import of several files waits for it.
const missingSuperior fault.Reason = "missing_superior"

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

type exportResult struct {
	AgentID string `json:"agent_id"`
	Source  string `json:"source"`
	Note    string `json:"note,omitzero"`
}

func (s *session) agentExport(ctx context.Context, _ caller.Caller, a agentArgs) (exportResult, error) {
	row, err := s.read(ctx, a.AgentID)
	if err != nil {
		return exportResult{}, err
	}
	if row.Source == "" {
		return exportResult{}, fault.New(fault.NotFound, "agent %s was not imported from a file; agent show has what is known of it", a.AgentID)
	}
	r := exportResult{AgentID: row.AgentID, Source: row.Source}
	if row.UpdatedAt.After(row.CreatedAt) {
		r.Note = "this is the text as last imported; changes made since are in agent show"
	}
	return r, nil
}
