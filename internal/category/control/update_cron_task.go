package control

import (
	"cmp"
	"context"
	_ "embed"
	"slices"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/schedule"
	"pawgate/internal/work"
)

//go:embed update_cron_task.sql
var updateCronTaskSQL string

type updateCronTaskArgs struct {
	cronKey
	Cron     string  `json:"cron,omitempty" doc:"-" maxlen:"200"`
	Task     *string `json:"task,omitempty" doc:"-" maxlen:"20000"`
	NewName  *string `json:"new_name,omitempty" doc:"-" maxlen:"100"`
	Timezone *string `json:"cron_timezone,omitempty" doc:"-" maxlen:"64"`
}

// Validate checks what needs no database.
func (a updateCronTaskArgs) Validate() error {
	if err := a.cronKey.Validate(); err != nil {
		return err
	}
	if a.Cron == "" && a.Task == nil && a.NewName == nil && a.Timezone == nil {
		return fault.Invalid("cron", "nothing to change; give cron, task, new_name or cron_timezone")
	}
	if a.Task != nil {
		if err := checkText("task", *a.Task); err != nil {
			return err
		}
	}
	if a.NewName != nil {
		return checkName("new_name", *a.NewName)
	}
	return nil
}

// updateCronTask changes a schedule. After a change of the expression or the
// zone the next slot is the first one after now.
func (c control) updateCronTask(ctx context.Context, who caller.Caller, a updateCronTaskArgs) (cronResult, error) {
	var result cronResult
	now := c.now()
	err := c.onCron(ctx, who, a.cronKey, func(tx pgx.Tx, t cronTask) error {
		t.Cron = cmp.Or(a.Cron, t.Cron)
		if a.Timezone != nil {
			t.Timezone = *a.Timezone
		}
		if a.NewName != nil {
			t.Name = *a.NewName
		}
		if a.Task != nil {
			t.Task = *a.Task
			t.bound(who)
		}
		s, err := schedule.Parse(t.Cron, t.Timezone, now)
		if err != nil {
			return err
		}
		t.Cron = s.Cron
		if next := s.Next(now); a.Cron != "" || a.Timezone != nil {
			t.NextSlot = &next
		}
		result = resultOf(t, s, now)
		return c.writeCron(ctx, tx, t, "new_name")
	})
	return result, err
}

// bound keeps whoever writes a task from having done by a schedule what they may
// not do: its runs have no scope that the writer has not, and may call nothing
// that the writer, or whoever bounds the writer's run, may not. A new schedule
// is the way to more.
func (t *cronTask) bound(who caller.Caller) {
	if who.Operator() {
		return
	}
	t.Scopes = caller.Within(t.Scopes, work.Scopes(who))
	by := t.RunNarrowedBy
	if who.Agent != t.AgentID {
		by = append(by, who.Agent)
	}
	for _, agent := range by {
		if agent != t.CreatedBy && !slices.Contains(t.NarrowedBy, agent) {
			t.NarrowedBy = append(t.NarrowedBy, agent)
		}
	}
}

// writeCron writes back a schedule that findCron has locked.
func (c control) writeCron(ctx context.Context, tx pgx.Tx, t cronTask, nameParameter string) error {
	_, err := postgres.Exec(ctx, tx, updateCronTaskSQL, pgx.StrictNamedArgs{
		"id": t.ID, "name": t.Name, "cron": t.Cron, "timezone": t.Timezone, "task": t.Task, "enabled": t.Enabled,
		"next": t.NextSlot, "scopes": t.Scopes, "narrowed_by": t.NarrowedBy, "now": c.now(),
	})
	if err != nil {
		return taken(err, nameParameter, t.Name)
	}
	return nil
}
