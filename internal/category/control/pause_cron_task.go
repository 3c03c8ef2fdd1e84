package control

import (
	"context"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/schedule"
)

type pauseCronTaskArgs struct {
	cronKey
	Enabled bool `json:"enabled,omitempty" doc:"true resumes"`
}

// pauseCronTask pauses a schedule, or resumes it from now on: what was due
// meanwhile is not made up for.
func (c control) pauseCronTask(ctx context.Context, who caller.Caller, a pauseCronTaskArgs) (cronResult, error) {
	var result cronResult
	now := c.now()
	err := c.onCron(ctx, who, a.cronKey, func(tx pgx.Tx, t cronTask) error {
		s, err := schedule.Parse(t.Cron, t.Timezone, now)
		if err != nil && a.Enabled {
			return err // it is never due any more
		}
		if next := s.Next(now); a.Enabled && !t.Enabled {
			t.NextSlot = &next
		}
		t.Enabled = a.Enabled
		result = resultOf(t, s, now)
		return c.writeCron(ctx, tx, t, "name")
	})
	return result, err
}
