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
)

//go:embed list_reminders.sql
var listRemindersSQL string

type listRemindersArgs struct {
	Status  string `json:"status,omitempty" doc:"pending if left out" enum:"pending,sending,delivered,failed,cancelled,all"`
	AgentID string `json:"agent_id,omitempty" doc:"You if left out" maxlen:"64"`
	Limit   int    `json:"limit,omitempty" doc:"50 if left out" min:"1" max:"100"`
}

type listedReminder struct {
	ID        string    `json:"id"`
	AgentID   string    `json:"agent_id"`
	State     string    `json:"state"` // pending, sending, delivered, failed or cancelled
	TriggerAt time.Time `json:"trigger_at"`
	Mode      string    `json:"mode"`
	Channel   string    `json:"channel"`
	ChatID    string    `json:"chat_id"`
	Message   string    `json:"message,omitzero"`
	Prompt    string    `json:"prompt,omitzero"`
	Error     string    `json:"error,omitzero"`
}

type listRemindersResult struct {
	Reminders []listedReminder `json:"reminders"`
	More      bool             `json:"more,omitzero"` // there are more than limit
}

// listReminders shows the reminders of the caller, or of one that reports to
// it, in the order in which they are due; those that are over, the newest first.
func (c control) listReminders(ctx context.Context, who caller.Caller, a listRemindersArgs) (listRemindersResult, error) {
	agentID, limit := cmp.Or(a.AgentID, who.Agent), cmp.Or(a.Limit, 50)
	if err := c.checkReach(ctx, who, agentID); err != nil {
		return listRemindersResult{}, err
	}
	found, err := postgres.All[listedReminder](ctx, c.db, listRemindersSQL, pgx.StrictNamedArgs{
		"agent": agentID, "state": cmp.Or(a.Status, "pending"), "limit": limit + 1})
	if err != nil {
		return listRemindersResult{}, fmt.Errorf("list reminders: %w", err)
	}
	if len(found) <= limit {
		return listRemindersResult{Reminders: found}, nil
	}
	return listRemindersResult{Reminders: found[:limit], More: true}, nil
}
