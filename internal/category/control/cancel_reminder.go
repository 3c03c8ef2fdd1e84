package control

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed cancel_reminder.sql
var cancelReminderSQL string

type cancelReminderArgs struct {
	ID string `json:"id" doc:"Of list_reminders" maxlen:"64"`
}

type cancelReminderResult struct {
	ID    string `json:"id"`
	State string `json:"state"` // cancelled
}

// cancelReminder ends a pending reminder of the caller, or of one that reports
// to it. Of a reminder that is cancelled at the moment at which it is due, one or
// the other happens. It fails with fault.Conflict when it is over, and with
// fault.NotFound alike for one that does not exist and one of somebody else.
func (c control) cancelReminder(ctx context.Context, who caller.Caller, a cancelReminderArgs) (cancelReminderResult, error) {
	done, err := postgres.One[struct {
		Before    string
		Cancelled bool
	}](ctx, c.db, cancelReminderSQL, pgx.StrictNamedArgs{"agent": who.Agent, "operator": who.Operator(), "id": a.ID})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return cancelReminderResult{}, fault.New(fault.NotFound, "no reminder %s of yours; list_reminders shows them", a.ID)
	case err != nil:
		return cancelReminderResult{}, fmt.Errorf("cancel reminder: %w", err)
	case done.Cancelled || done.Before == "cancelled":
		return cancelReminderResult{ID: a.ID, State: "cancelled"}, nil
	}
	return cancelReminderResult{}, fault.New(fault.Conflict, "reminder %s was due already and cannot be cancelled", a.ID)
}
