package control

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

//go:embed delete_cron_task.sql
var deleteCronTaskSQL string

type deletedCron struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	AgentID string `json:"agent_id"`
	Deleted bool   `json:"deleted"`
}

// deleteCronTask removes one schedule and the record of its slots. A run that
// it has queued goes on.
func (c control) deleteCronTask(ctx context.Context, who caller.Caller, a cronKey) (deletedCron, error) {
	var result deletedCron
	err := c.onCron(ctx, who, a, func(tx pgx.Tx, t cronTask) error {
		if _, err := postgres.Exec(ctx, tx, deleteCronTaskSQL, pgx.StrictNamedArgs{"id": t.ID}); err != nil {
			return fmt.Errorf("delete schedule: %w", err)
		}
		result = deletedCron{ID: t.ID, Name: t.Name, AgentID: t.AgentID, Deleted: true}
		return nil
	})
	return result, err
}
