package control

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/schedule"
	"pawgate/internal/work"
)

var (
	//go:embed create_reminder.sql
	createReminderSQL string
	//go:embed reminder_count.sql
	reminderCountSQL string
)

// Bounds of reminders.
const (
	maxReminders = 100 // pending ones of an agent
	maxAhead     = 365 * 24 * time.Hour
)

// The modes of a reminder.
const (
	direct   = "direct"
	callback = "agent_callback"
)

type createReminderArgs struct {
	Time     string `json:"time" doc:"1h30m, 2d or ISO 8601" maxlen:"64"`
	Message  string `json:"message,omitempty" doc:"-" maxlen:"4000"`
	Channel  string `json:"channel" doc:"telegram, line …" maxlen:"32"`
	ChatID   string `json:"chat_id" doc:"-" maxlen:"200"`
	Mode     string `json:"mode,omitempty" doc:"direct if left out" enum:"direct,agent_callback"`
	Prompt   string `json:"prompt,omitempty" doc:"agent_callback: you answer it there" maxlen:"4000"`
	Timezone string `json:"timezone,omitempty" doc:"Of a time without offset" maxlen:"64"`
}

// Validate checks what needs neither the clock nor the database.
func (a createReminderArgs) Validate() error {
	if err := cmp.Or(work.CheckChannel("channel", a.Channel), checkText("chat_id", a.ChatID)); err != nil {
		return err
	}
	if a.Mode == callback {
		return checkText("prompt", a.Prompt)
	}
	if a.Prompt != "" {
		return fault.Invalid("prompt", "prompt is for mode agent_callback; in mode direct the message is sent as it is")
	}
	return checkText("message", a.Message)
}

type reminderResult struct {
	ID        string    `json:"id"`
	TriggerAt time.Time `json:"trigger_at"`
	Mode      string    `json:"mode"`
	Channel   string    `json:"channel"`
	ChatID    string    `json:"chat_id"`
}

// createReminder makes a reminder of the caller's own. What is sent goes through
// the gate when it is due, with the caller's rights of that moment.
func (c control) createReminder(ctx context.Context, who caller.Caller, a createReminderArgs) (reminderResult, error) {
	now := c.now()
	at, err := schedule.Moment(a.Time, a.Timezone, now)
	if err != nil {
		return reminderResult{}, err
	}
	switch {
	case !at.After(now):
		return reminderResult{}, fault.Invalid("time", "%s is not in the future; it is %s now", a.Time, now.UTC().Format(time.RFC3339))
	case at.Sub(now) > maxAhead:
		return reminderResult{}, fault.Invalid("time", "a reminder is at most %d days ahead", int(maxAhead.Hours()/24))
	}
	r := reminderResult{ID: newID("r"), TriggerAt: at.UTC().Truncate(time.Millisecond), Mode: cmp.Or(a.Mode, direct), Channel: a.Channel, ChatID: a.ChatID}
	err = postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		have, err := postgres.One[struct{ N int }](ctx, tx, reminderCountSQL, pgx.StrictNamedArgs{"agent": who.Agent})
		if err != nil {
			return fmt.Errorf("count reminders: %w", err)
		}
		if have.N >= maxReminders {
			return fault.New(fault.TooLarge, "%d reminders of yours are pending, which is the most; cancel one with cancel_reminder", have.N)
		}
		_, err = postgres.Exec(ctx, tx, createReminderSQL, pgx.StrictNamedArgs{
			"id": r.ID, "agent": who.Agent, "due_at": r.TriggerAt, "mode": r.Mode, "channel": a.Channel, "chat_id": a.ChatID,
			"message": a.Message, "prompt": a.Prompt, "scopes": work.Scopes(who), "run": work.Parent(who), "now": now,
		})
		if err != nil {
			return fmt.Errorf("write reminder: %w", err)
		}
		return nil
	})
	return r, err
}
