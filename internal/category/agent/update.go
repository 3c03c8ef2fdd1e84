package agent

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/budget"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/roster"
	"pawgate/internal/schedule"
)

//go:embed update.sql
var updateSQL string

// updateArgs has nothing that says what the agent may call or who approves it:
// such a member would be refused as unknown.
type updateArgs struct {
	AgentID          string  `json:"agent_id" doc:"-" maxlen:"64"`
	DisplayName      *string `json:"display_name,omitempty" doc:"-" maxlen:"200"`
	Role             *string `json:"role,omitempty" doc:"As in create_agent" maxlen:"64"`
	Status           *string `json:"status,omitempty" doc:"-" enum:"active,paused"`
	Trigger          *string `json:"trigger,omitempty" doc:"Chat name" maxlen:"200"`
	Icon             *string `json:"icon,omitempty" doc:"-" maxlen:"200"`
	ReportsTo        *string `json:"reports_to,omitempty" doc:"-" maxlen:"64"`
	Model            *string `json:"model,omitempty" doc:"-" maxlen:"200"`
	FallbackModel    *string `json:"fallback_model,omitempty" doc:"-" maxlen:"200"`
	APIMode          *string `json:"api_mode,omitempty" doc:"-" enum:"cli,direct,auto"`
	BudgetCents      *int64  `json:"budget_cents,omitempty" doc:"A month; operators only" min:"0" max:"100000000"`
	MaxConcurrent    *int    `json:"max_concurrent,omitempty" doc:"Prompts at once" min:"1" max:"100"`
	HeartbeatEnabled *bool   `json:"heartbeat_enabled,omitempty" doc:"-"`
	HeartbeatCron    *string `json:"heartbeat_cron,omitempty" doc:"-" maxlen:"200"`
	IfVersion        *int64  `json:"if_version,omitempty" doc:"Refuse if another version holds"`
}

// Validate asks for something to change and checks the texts.
func (a updateArgs) Validate() error {
	if a == (updateArgs{AgentID: a.AgentID, IfVersion: a.IfVersion}) {
		return fault.Invalid("arguments", "nothing to change; give display_name, icon, trigger or another of the arguments")
	}
	if a.DisplayName != nil {
		if err := roster.CheckName("display_name", *a.DisplayName); err != nil {
			return err
		}
	}
	if a.Role != nil && !roster.IsRole(*a.Role) {
		return fault.Invalid("role", "role must be one of %s", strings.Join(roster.Roles, ", "))
	}
	for _, text := range []struct {
		parameter string
		value     *string
	}{{"trigger", a.Trigger}, {"icon", a.Icon}, {"model", a.Model}, {"fallback_model", a.FallbackModel}, {"heartbeat_cron", a.HeartbeatCron}} {
		if text.value == nil {
			continue
		}
		if err := roster.CheckText(text.parameter, *text.value); err != nil {
			return err
		}
	}
	return nil
}

// checkHeartbeat refuses an expression that is never due.
func (a updateArgs) checkHeartbeat(now time.Time) error {
	if a.HeartbeatCron == nil || *a.HeartbeatCron == "" {
		return nil
	}
	_, err := schedule.Parse(*a.HeartbeatCron, "UTC", now)
	if e, ok := fault.InvalidOf(err); ok {
		return fault.Invalid("heartbeat_cron", "heartbeat_cron: %s", e.Message)
	}
	return err
}

type updateResult struct {
	AgentID string   `json:"agent_id"`
	Changed []string `json:"changed"` // the arguments that made a difference
	Version int64    `json:"version"`
	Note    string   `json:"note,omitzero"`
}

// written is what update.sql returns.
type written struct {
	AgentID string
	Changed []string
	Version int64
}

func (w written) result() updateResult {
	return updateResult{AgentID: w.AgentID, Changed: w.Changed, Version: w.Version, Note: roster.IdleNote(w.Changed...)}
}

// update changes what was given and nothing else, so two changes of different
// things never undo each other. It fails with fault.NotFound for an agent that
// the caller may not see, with fault.Denied for a change that is not the
// caller's to make, and with fault.Conflict when if_version does not hold.
func (c agent) update(ctx context.Context, who caller.Caller, a updateArgs) (updateResult, error) {
	if err := a.checkHeartbeat(c.now()); err != nil {
		return updateResult{}, err
	}
	var done updateResult
	err := postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		if err := roster.Lock(ctx, tx); err != nil {
			return err
		}
		before, err := findLive(ctx, tx, who, a.AgentID)
		if err != nil {
			return err
		}
		if err := mayUpdate(ctx, tx, who, before, a); err != nil {
			return err
		}
		if a.BudgetCents != nil {
			if err := budget.Alone(ctx, tx); err != nil {
				return err
			}
		}
		if a.Trigger, err = trigger(ctx, tx, before, a); err != nil {
			return err
		}
		written, err := postgres.One[written](ctx, tx, updateSQL, pgx.StrictNamedArgs{
			"agent": who.Agent, "operator": who.Operator(), "agent_id": a.AgentID, "display_name": a.DisplayName, "role": a.Role, "state": a.Status, "trigger": a.Trigger,
			"icon": a.Icon, "reports_to": a.ReportsTo, "model": a.Model, "fallback_model": a.FallbackModel, "api_mode": a.APIMode,
			"budget_cents": a.BudgetCents, "max_concurrent": a.MaxConcurrent, "heartbeat_enabled": a.HeartbeatEnabled,
			"heartbeat_cron": a.HeartbeatCron, "now": c.now(),
		})
		if err != nil {
			return fmt.Errorf("update agent: %w", err)
		}
		done = written.result()
		if !slices.Contains(done.Changed, "budget_cents") {
			return nil
		}
		return budget.SetMonth(ctx, tx, budget.Month{AgentID: a.AgentID, Cents: *a.BudgetCents, By: author(who)})
	})
	return done, err
}
