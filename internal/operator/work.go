package operator

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
	"pawgate/internal/work"
)

var (
	//go:embed queue_list.sql
	queueListSQL string
	//go:embed queue_retry.sql
	queueRetrySQL string
)

// workCommands are about what happens later.
func (s *session) workCommands() []tool.Tool {
	return []tool.Tool{
		tool.Read("schedule_list", "List the scheduled tasks with next run and last result.", s.scheduleList),
		tool.Write("schedule_import", "Take over scheduled tasks of DuDuClaw, and say what was changed.", s.scheduleImport),
		tool.Read("queue_list", "List the work of agents: what waits, what runs, and dead letters.", s.queueList),
		tool.Write("queue_retry", "Queue a dead or cancelled piece of work again.", s.queueRetry),
	}
}

type scheduleListArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Whose; left out: everybody's" maxlen:"64"`
	Limit   int    `json:"limit,omitempty" doc:"Most to show; 100 if left out" min:"1" max:"200"`
	After   string `json:"after,omitempty" doc:"Go on after this id" maxlen:"64"`
}

type scheduleLine struct {
	ID        string       `json:"id"`
	Name      string       `json:"name"`
	AgentID   string       `json:"agent_id"`
	CreatedBy string       `json:"created_by"`
	State     string       `json:"state"`
	Cron      string       `json:"cron"`
	Timezone  string       `json:"cron_timezone"`
	Task      string       `json:"task"`
	Notify    *work.Notify `json:"notify,omitzero"`
	NextRun   *time.Time   `json:"next_run"`
	LastRun   *time.Time   `json:"last_run"`
	LastState string       `json:"last_state"`
	LastError string       `json:"last_error,omitzero"`
	Delivery  string       `json:"last_delivery"`
	Runs      int          `json:"runs"`
	Failures  int          `json:"failures"`
}

type scheduleListResult struct {
	Tasks []scheduleLine `json:"tasks"`
	Next  string         `json:"next_after,omitzero"`
}

// scheduleList asks the agents' own tool with an operator's rights.
func (s *session) scheduleList(ctx context.Context, who caller.Caller, a scheduleListArgs) (scheduleListResult, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return scheduleListResult{}, err
	}
	page, err := ask[struct {
		Tasks []scheduleLine `json:"tasks"`
		Next  string         `json:"next_cursor"`
	}](ctx, s, who, "list_cron_tasks", map[string]any{"agent_id": a.AgentID, "limit": cmp.Or(a.Limit, 100), "cursor": a.After})
	return scheduleListResult{Tasks: page.Tasks, Next: page.Next}, err
}

type queueListArgs struct {
	State   string `json:"state,omitempty" doc:"Left out: open, which is queued, running and dead" enum:"open,queued,running,done,dead,cancelled,all"`
	AgentID string `json:"agent_id,omitempty" doc:"Who does it, or who asked" maxlen:"64"`
	Limit   int    `json:"limit,omitempty" doc:"Most to show, newest first; 50 if left out" min:"1" max:"1000"`
	After   string `json:"after,omitempty" doc:"Go on after this id" maxlen:"36"`
}

type queueLine struct {
	ID        uuid.UUID  `json:"id"`
	State     string     `json:"state"`
	Source    string     `json:"source"`
	Agent     string     `json:"agent_id"`
	From      string     `json:"from_agent"`
	Depth     int        `json:"depth"`
	Attempts  string     `json:"attempts"` // 1/3
	CreatedAt time.Time  `json:"created_at"`
	RunAt     time.Time  `json:"run_at"`
	Lease     *time.Time `json:"lease_until,omitzero"`
	Finished  *time.Time `json:"finished_at,omitzero"`
	Worker    string     `json:"worker,omitzero"`
	Error     string     `json:"error,omitzero"`
}

type queueListResult struct {
	Work []queueLine `json:"work"`
	Next string      `json:"next_after,omitzero"`
}

func (s *session) queueList(ctx context.Context, _ caller.Caller, a queueListArgs) (queueListResult, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return queueListResult{}, err
	}
	before := uuid.Max
	if a.After != "" {
		var err error
		if before, err = uuid.Parse(a.After); err != nil {
			return queueListResult{}, fault.Invalid("after", "after must be the id of a piece of work")
		}
	}
	limit := cmp.Or(a.Limit, 50)
	lines, err := postgres.All[queueLine](ctx, s.db, queueListSQL, pgx.StrictNamedArgs{
		"state": cmp.Or(a.State, "open"), "agent_id": a.AgentID, "before": before, "limit": limit + 1})
	if err != nil {
		return queueListResult{}, fmt.Errorf("list work: %w", err)
	}
	if len(lines) <= limit {
		return queueListResult{Work: lines}, nil
	}
	return queueListResult{Work: lines[:limit], Next: lines[limit-1].ID.String()}, nil
}

type queueRetryArgs struct {
	ID string `json:"id" doc:"Which piece of work" maxlen:"36"`
}

type queueRetryResult struct {
	ID    uuid.UUID `json:"id"` // of the new one
	Agent string    `json:"agent_id"`
	State string    `json:"state"`
}

// queueRetry queues a copy: what has ended stays as it ended.
func (s *session) queueRetry(ctx context.Context, _ caller.Caller, a queueRetryArgs) (queueRetryResult, error) {
	id, err := uuid.Parse(a.ID)
	if err != nil {
		return queueRetryResult{}, fault.Invalid("id", "id must be the id of a piece of work; pawgate queue list shows them")
	}
	made, err := postgres.One[queueRetryResult](ctx, s.db, queueRetrySQL, pgx.StrictNamedArgs{"id": id, "new": uuid.Must(uuid.NewV7())})
	if errors.Is(err, pgx.ErrNoRows) {
		return queueRetryResult{}, fault.New(fault.NotFound, "no dead or cancelled work %s; pawgate queue list shows it", id)
	}
	if err != nil {
		return queueRetryResult{}, fmt.Errorf("queue work again: %w", err)
	}
	s.about = made.Agent
	return made, nil
}
