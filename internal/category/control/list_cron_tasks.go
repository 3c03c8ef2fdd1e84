package control

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
	"pawgate/internal/work"
)

//go:embed list_cron_tasks.sql
var listCronTasksSQL string

type listCronTasksArgs struct {
	AgentID     string `json:"agent_id,omitempty" doc:"-" maxlen:"64"`
	EnabledOnly bool   `json:"enabled_only,omitempty" doc:"Not the paused ones"`
	Limit       int    `json:"limit,omitempty" doc:"50 if left out" min:"1" max:"200"`
	Cursor      string `json:"cursor,omitempty" doc:"-" maxlen:"64"`
}

type listedCron struct {
	ID        string       `json:"id"`
	Name      string       `json:"name"`
	AgentID   string       `json:"agent_id"`
	CreatedBy string       `json:"created_by"`
	State     string       `json:"state"` // active, paused, suspended (its agent is not at work) or finished
	Cron      string       `json:"cron"`
	Timezone  string       `json:"cron_timezone"`
	Task      string       `json:"task"` // its first 200 characters
	Notify    *work.Notify `json:"notify,omitzero"`
	NextRun   *time.Time   `json:"next_run,omitzero"`
	LastRun   *time.Time   `json:"last_run,omitzero"`
	// LastState is queued, running, done, dead or cancelled, or why the slot did
	// not run: missed, overlapped or suspended.
	LastState string `json:"last_state,omitzero"`
	LastError string `json:"last_error,omitzero"`
	// LastDelivery is sending, delivered or failed, where results are told.
	LastDelivery string `json:"last_delivery,omitzero"`
	Runs         int    `json:"runs"`     // of the last 30 days
	Failures     int    `json:"failures"` // of them
}

type listCronTasksResult struct {
	Tasks      []listedCron `json:"tasks"`
	NextCursor string       `json:"next_cursor,omitzero"`
}

// listCronTasks shows the schedules of the caller and of those below it, and
// those that it made, in the order of their ids.
func (c control) listCronTasks(ctx context.Context, who caller.Caller, a listCronTasksArgs) (listCronTasksResult, error) {
	limit := cmp.Or(a.Limit, 50)
	tasks, err := postgres.All[listedCron](ctx, c.db, listCronTasksSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "operator": who.Operator(), "agent_id": a.AgentID, "enabled_only": a.EnabledOnly, "after": a.Cursor, "limit": limit + 1})
	if err != nil {
		return listCronTasksResult{}, fmt.Errorf("list schedules: %w", err)
	}
	if len(tasks) <= limit {
		return listCronTasksResult{Tasks: tasks}, nil
	}
	return listCronTasksResult{Tasks: tasks[:limit], NextCursor: tasks[limit-1].ID}, nil
}
