package control

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/work"
)

var (
	//go:embed run_cron_task.sql
	runCronTaskSQL string
	//go:embed run_cron_busy.sql
	runCronBusySQL string
)

type ranCron struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	AgentID string `json:"agent_id"`
	RunID   string `json:"run_id"`
	State   string `json:"state"` // queued
	Note    string `json:"note"`
}

// runCronTask queues one run of a schedule now, also of a paused one; its next
// slot stays. It fails with fault.InProgress while a run goes on and the
// schedule does not let runs overlap.
func (c control) runCronTask(ctx context.Context, who caller.Caller, a cronKey) (ranCron, error) {
	var result ranCron
	err := c.onCron(ctx, who, a, func(tx pgx.Tx, t cronTask) error {
		busy, err := postgres.One[struct{ Busy bool }](ctx, tx, runCronBusySQL, pgx.StrictNamedArgs{"id": t.ID})
		if err != nil {
			return fmt.Errorf("look for a run: %w", err)
		}
		if busy.Busy && t.Overlap == "skip" {
			return fault.New(fault.InProgress, "a run of %s goes on or waits; list_cron_tasks shows when it is done", t.Name)
		}
		queued, err := work.Enqueue(ctx, tx, c.runOf(who, t))
		if err != nil {
			return err
		}
		if _, err := postgres.Exec(ctx, tx, runCronTaskSQL, pgx.StrictNamedArgs{"id": t.ID, "work_id": queued.ID}); err != nil {
			return fmt.Errorf("record run: %w", err)
		}
		result = ranCron{ID: t.ID, Name: t.Name, AgentID: t.AgentID, RunID: queued.ID.String(), State: "queued",
			Note: "it runs in the background; list_cron_tasks shows what it came to"}
		return nil
	})
	if err == nil && c.Tell != nil {
		c.Tell(ctx)
	}
	return result, err
}

// runOf is the work of a run that somebody asked for: no more may be called
// than the maker of the schedule may and the one who asks.
func (c control) runOf(who caller.Caller, t cronTask) work.Item {
	item := work.Item{ID: uuid.Must(uuid.NewV7()), Kind: work.KindPrompt, Source: "schedule", Agent: t.AgentID, From: t.CreatedBy,
		Payload: work.Prompt{Prompt: fmt.Sprintf("[Scheduled task %s, run by hand]\n%s", t.Name, t.Task)},
		Scopes:  caller.Within(t.Scopes, work.Scopes(who)), Notify: t.Notify, NarrowedBy: slices.Clone(t.NarrowedBy),
		Parent: work.Parent(who), RunBy: who.Agent}
	for _, other := range []string{t.CreatedBy, who.Agent} {
		if other != t.AgentID && !(other == who.Agent && who.Operator()) {
			item.NarrowedBy = append(item.NarrowedBy, other)
		}
	}
	return item
}
