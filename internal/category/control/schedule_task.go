package control

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/schedule"
	"pawgate/internal/work"
)

var (
	//go:embed schedule_task.sql
	scheduleTaskSQL string
	//go:embed schedule_count.sql
	scheduleCountSQL string
	//go:embed schedule_over.sql
	scheduleOverSQL string
)

// maxSchedules is how many schedules one agent may have made.
const maxSchedules = 100

type scheduleTaskArgs struct {
	Cron     string  `json:"cron" doc:"5 fields, or 6 with seconds first; 0 is Sunday; or @at TIME" maxlen:"200"`
	Task     string  `json:"task" doc:"Prompt" maxlen:"20000"`
	Name     string  `json:"name" doc:"-" maxlen:"100"`
	AgentID  string  `json:"agent_id,omitempty" doc:"You if left out" maxlen:"64"`
	Channel  string  `json:"notify_channel,omitempty" doc:"-" maxlen:"32"`
	ChatID   string  `json:"notify_chat_id,omitempty" doc:"-" maxlen:"200"`
	ThreadID string  `json:"notify_thread_id,omitempty" doc:"-" maxlen:"200"`
	Timezone *string `json:"cron_timezone,omitempty" doc:"UTC if left out" maxlen:"64"`
	Misfire  string  `json:"misfire,omitempty" doc:"Missed slots; once if left out" enum:"skip,once,all"`
	Overlap  string  `json:"overlap,omitempty" doc:"skip if left out" enum:"skip,queue"`
	Jitter   int     `json:"jitter_seconds,omitempty" doc:"-" min:"0" max:"3600"`
}

// Validate checks what needs no database.
func (a scheduleTaskArgs) Validate() error {
	if err := cmp.Or(checkText("task", a.Task), checkName("name", a.Name)); err != nil {
		return err
	}
	return work.CheckNotify(a.place())
}

func (a scheduleTaskArgs) place() work.Notify {
	return work.Notify{Channel: a.Channel, ChatID: a.ChatID, ThreadID: a.ThreadID}
}

// notify is where results are told, as JSON; nil: nowhere.
func (a scheduleTaskArgs) notify() (*string, error) {
	if a.Channel == "" {
		return nil, nil
	}
	encoded, err := json.Marshal(a.place())
	if err != nil {
		return nil, fmt.Errorf("encode notify: %w", err)
	}
	return new(string(encoded)), nil
}

// scheduleTask makes a schedule. Its first slot is after now; what the other
// agent's runs may call is bounded by the caller's rights too. It fails with
// fault.NotFound for an agent that the caller may not schedule, and with
// fault.Conflict for a name that is taken.
func (c control) scheduleTask(ctx context.Context, who caller.Caller, a scheduleTaskArgs) (cronResult, error) {
	zone := "UTC"
	if a.Timezone != nil {
		zone = *a.Timezone
	}
	now := c.now()
	s, err := schedule.Parse(a.Cron, zone, now)
	if err != nil {
		return cronResult{}, err
	}
	agentID := cmp.Or(a.AgentID, who.Agent)
	if err := c.checkReach(ctx, who, agentID); err != nil {
		return cronResult{}, err
	}
	notify, err := a.notify()
	if err != nil {
		return cronResult{}, err
	}
	next := s.Next(now)
	task := cronTask{ID: newID("s"), AgentID: agentID, Name: a.Name, Cron: s.Cron, Timezone: zone, Enabled: true, NextSlot: &next}
	err = postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		have, err := postgres.One[struct{ N int }](ctx, tx, scheduleCountSQL, pgx.StrictNamedArgs{"agent": who.Agent})
		if err != nil {
			return fmt.Errorf("count schedules: %w", err)
		}
		if have.N >= maxSchedules {
			return fault.New(fault.TooLarge, "you have %d scheduled tasks, which is the most; delete one with delete_cron_task", have.N)
		}
		if _, err := postgres.Exec(ctx, tx, scheduleOverSQL, pgx.StrictNamedArgs{"agent": who.Agent, "agent_id": agentID, "name": a.Name}); err != nil {
			return fmt.Errorf("clear name: %w", err)
		}
		_, err = postgres.Exec(ctx, tx, scheduleTaskSQL, pgx.StrictNamedArgs{
			"id": task.ID, "agent": who.Agent, "agent_id": agentID, "name": a.Name, "cron": s.Cron, "timezone": zone, "task": a.Task,
			"notify": notify, "misfire": cmp.Or(a.Misfire, "once"), "overlap": cmp.Or(a.Overlap, "skip"), "jitter": a.Jitter,
			"scopes": work.Scopes(who), "run": work.Parent(who), "next": next, "now": now,
		})
		if err != nil {
			return taken(err, "name", a.Name)
		}
		return nil
	})
	if err != nil {
		return cronResult{}, err
	}
	r := resultOf(task, s, now)
	if a.Timezone == nil {
		r.Note = "times are UTC, because cron_timezone was left out"
	}
	return r, nil
}
