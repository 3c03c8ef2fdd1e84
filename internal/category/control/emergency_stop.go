package control

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed emergency_stop.sql
	stopSQL string
	//go:embed resume.sql
	resumeSQL string
	//go:embed in_force.sql
	inForceSQL string
	//go:embed reach.sql
	reachSQL string
)

type stopArgs struct {
	Action  string `json:"action" doc:"Only an operator resumes" enum:"stop,resume,status"`
	AgentID string `json:"agent_id,omitempty" doc:"You, or one that reports to you; left out: all" maxlen:"64"`
	Reason  string `json:"reason,omitempty" doc:"-" maxlen:"500"`
}

type stopResult struct {
	State   string    `json:"state"`  // stopped or running: whether a stop covers the target
	Target  string    `json:"target"` // an agent's id, or "all"
	Changed bool      `json:"changed"`
	Stops   []inForce `json:"stops"`
	// Cancelled counts the pending approvals that the stop ended.
	Cancelled int `json:"approvals_cancelled,omitzero"`
	// Killed counts the pieces of work, queued and running, that the stop ended.
	Killed int    `json:"work_cancelled,omitzero"`
	Note   string `json:"note,omitzero"`
}

// inForce is a stop that nobody has lifted.
type inForce struct {
	Scope     string    `json:"scope"` // all or agent
	AgentID   string    `json:"agent_id,omitzero"`
	Reason    string    `json:"reason,omitzero"`
	StoppedBy string    `json:"stopped_by"`
	Since     time.Time `json:"since"`
}

// everyone is the target of a stop without an agent.
const everyone = "all"

// emergencyStop stops, resumes or shows. It fails with fault.Denied when the
// caller may not do that, with fault.NotFound for an agent that does not exist
// or that the caller may not touch, and with fault.Stopped when a stopped
// agent tries to stop another.
func (c control) emergencyStop(ctx context.Context, who caller.Caller, a stopArgs) (stopResult, error) {
	if a.Action == "status" && a.AgentID == "" && !who.Operator() {
		a.AgentID = who.Agent
		return c.status(ctx, who, a, true)
	}
	if a.AgentID != "" {
		if err := c.checkReach(ctx, who, a.AgentID); err != nil {
			return stopResult{}, err
		}
	}
	switch a.Action {
	case "stop":
		return c.stop(ctx, who, a)
	case "resume":
		return c.resume(ctx, who, a)
	}
	return c.status(ctx, who, a, false)
}

func (c control) stop(ctx context.Context, who caller.Caller, a stopArgs) (stopResult, error) {
	if a.AgentID == "" && !who.Operator() {
		return stopResult{}, fault.New(fault.Denied,
			"only an operator can stop every agent; give agent_id to stop yourself (%s) or an agent that reports to you", who.Agent)
	}
	before, err := c.status(ctx, who, a, false)
	if err != nil {
		return stopResult{}, err
	}
	if a.AgentID != "" && before.has(a.AgentID) || a.AgentID == "" && before.State == "stopped" {
		before.Note = "was already stopped"
		return before, nil
	}
	if err := c.checkStanding(ctx, who, before); err != nil {
		return stopResult{}, err
	}
	done, err := postgres.One[struct{ Stops, Cancelled, Killed int }](ctx, c.db, stopSQL, pgx.StrictNamedArgs{
		"agent_id": a.AgentID, "reason": strings.TrimSpace(a.Reason), "by": author(who),
	})
	if err != nil {
		return stopResult{}, fmt.Errorf("write stop: %w", err)
	}
	after, err := c.status(ctx, who, a, false)
	after.Changed, after.Cancelled, after.Killed = done.Stops > 0, done.Cancelled, done.Killed
	return after, err
}

// checkStanding keeps an agent that is stopped from acting on others.
func (c control) checkStanding(ctx context.Context, who caller.Caller, target stopResult) error {
	if who.Operator() || target.Target == who.Agent {
		return nil
	}
	own, err := c.status(ctx, who, stopArgs{AgentID: who.Agent}, false)
	if err != nil {
		return err
	}
	if own.State == "stopped" {
		return fault.New(fault.Stopped, "you are stopped yourself and can only ask for the status; an operator can resume you")
	}
	return nil
}

func (c control) resume(ctx context.Context, who caller.Caller, a stopArgs) (stopResult, error) {
	if !who.Operator() {
		return stopResult{}, fault.New(fault.Denied, "only an operator can resume; ask a person to")
	}
	changed, err := postgres.Exec(ctx, c.db, resumeSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "by": author(who)})
	if err != nil {
		return stopResult{}, fmt.Errorf("lift stop: %w", err)
	}
	after, err := c.status(ctx, who, a, false)
	after.Changed = changed > 0
	switch {
	case after.State == "stopped":
		after.Note = "still stopped: the stop of every agent is in force; resume without agent_id to lift it"
	case a.AgentID == "" && len(after.Stops) > 0:
		after.Note = "the stops of single agents stay in force"
	}
	return after, err
}

// status shows the stops in force for one target; with all, also those of
// other agents that the caller may see.
func (c control) status(ctx context.Context, who caller.Caller, a stopArgs, all bool) (stopResult, error) {
	r := stopResult{State: "running", Target: a.AgentID}
	only := a.AgentID
	if r.Target == "" {
		r.Target = everyone
	}
	if all {
		only = ""
	}
	var err error
	r.Stops, err = postgres.All[inForce](ctx, c.db, inForceSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "operator": who.Operator(), "only": only,
	})
	if err != nil {
		return stopResult{}, fmt.Errorf("read stops: %w", err)
	}
	if r.has("") || a.AgentID != "" && r.has(a.AgentID) {
		r.State = "stopped"
	}
	return r, nil
}

// has reports whether the stop of exactly this agent, or with "" the stop of
// everyone, is in force.
func (r stopResult) has(agentID string) bool {
	return slices.ContainsFunc(r.Stops, func(s inForce) bool { return s.AgentID == agentID })
}

// checkReach answers alike for an agent that does not exist and one that the
// caller may not touch.
func (c control) checkReach(ctx context.Context, who caller.Caller, agentID string) error {
	var reached bool
	err := c.db.QueryRow(ctx, reachSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "operator": who.Operator(), "agent_id": agentID,
	}).Scan(&reached)
	switch {
	case err != nil:
		return fmt.Errorf("look up agent: %w", postgres.Classify(err))
	case reached:
		return nil
	case who.Operator():
		return fault.New(fault.NotFound, "no agent %s; pawgate agent list shows those there are", agentID)
	}
	return fault.New(fault.NotFound, "no agent %s that reports to you", agentID)
}

// author is how the record names who stopped or resumed.
func author(who caller.Caller) string {
	if who.Agent == "" {
		return who.Credential
	}
	return who.Agent + " (" + who.Credential + ")"
}
