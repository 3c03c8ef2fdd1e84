// Package control holds the tools that hold agents back, and those by which
// people let them go on: the emergency stop, approvals and grants, the audit
// trail, choices and feedback; and what is to happen later: scheduled tasks
// and reminders. When they are due is computed by package schedule; package
// tick makes it happen.
//
// An emergency stop is a row in Postgres: every door reads it with the next
// call, and it outlives every process. It covers one agent or all of them.
// Any agent may stop itself and those that report to it, directly or through
// others; only an operator may stop everyone or somebody else, and only an
// operator resumes. Stopping needs no approval, is no error when the stop is
// already in force, and ends the approvals that are pending.
//
// An approval is decided once, by somebody who may approve and is not the
// agent that asked, before it expires by the database's clock. A grant is
// asked for here and given in the same way. tool_preflight asks the gate's own
// decision and takes nothing from any limit.
//
// The package never lifts a stop on an agent's word, never lifts a second
// stop along with the one that was named, never tells an agent of others than
// those that report to it, and never tells it more of a tool that it may not
// call than that it is unknown.
package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/client/sqs"
	"pawgate/internal/licence"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
	"pawgate/internal/work"
)

// Config is what the category reads from its environment.
type Config struct {
	postgres.Config
	Licence licence.Config
	Queue   sqs.Config
}

// Options are what the category needs besides the database, all optional.
type Options struct {
	// Catalog has the tools that there are; nil: the embedded ones.
	Catalog func() (*catalog.Catalog, error)
	// Edition is what the licence pays for at a time; nil: community.
	Edition func(now time.Time) tool.Edition
	// Tell tells those who do the work that something was queued; nil: they
	// look for themselves.
	Tell func(context.Context)
}

// Open connects to what the tools need.
func Open(ctx context.Context, cfg Config) (tool.Category, error) {
	paid, err := cfg.Licence.Check(time.Now())
	if err != nil {
		return tool.Category{}, fmt.Errorf("open control: %w", err)
	}
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open control: %w", err)
	}
	queue, told := sqs.New(cfg.Queue)
	c := With(db, time.Now, Options{Edition: paid.EditionAt, Tell: work.Teller(db, queue, told)})
	c.Close = db.Close
	return c, nil
}

// New is the category over an open database. It does no I/O.
func New(db postgres.DB, now func() time.Time) tool.Category { return With(db, now, Options{}) }

// With is New with options.
func With(db postgres.DB, now func() time.Time, o Options) tool.Category {
	if o.Catalog == nil {
		o.Catalog = sync.OnceValues(catalog.Load)
	}
	if o.Edition == nil {
		o.Edition = licence.Licence{}.EditionAt
	}
	c := control{db: db, now: now, Options: o}
	return tool.Category{Name: "control", Tools: []tool.Tool{
		tool.Destroy("emergency_stop", "Halt agents at once, until an operator resumes.",
			c.emergencyStop, tool.Idempotent, tool.PassesStop),
		tool.Write("tool_approve", "Decide what another agent waits for.",
			c.toolApprove, tool.Idempotent, tool.NeedsScope(caller.ScopeApprove)),
		// Secret, because the arguments hold those of other tools, secrets and all.
		tool.Read("tool_preflight", "Tell whether calls would run now, without running them.", c.toolPreflight, tool.Secret("arguments")),
		tool.Read("audit_trail_query", "List calls and refusals of yours and your reports, newest first.", c.auditTrailQuery),
		tool.Write("capability_request", "Ask a person for a grant to use a scoped tool for a while.", c.capabilityRequest, tool.Idempotent),
		tool.Read("decision_list", "List the choices you offered that are still open, newest first.", c.decisionList),
		tool.Write("decision_resolve", "Record the chosen option of a choice.", c.decisionResolve, tool.Idempotent),
		tool.Write("submit_feedback", "Record what somebody said of an agent's work.", c.submitFeedback),
		tool.Write("schedule_task", "Have a task done again and again, or once at a time.", c.scheduleTask),
		tool.Read("list_cron_tasks", "List scheduled tasks with next run and last result.", c.listCronTasks),
		tool.Write("update_cron_task", "Change a scheduled task.", c.updateCronTask, tool.Idempotent),
		tool.Destroy("delete_cron_task", "Delete a scheduled task.", c.deleteCronTask),
		tool.Write("pause_cron_task", "Pause a scheduled task, or resume it.", c.pauseCronTask, tool.Idempotent),
		tool.Write("run_cron_task", "Run a scheduled task now.", c.runCronTask, tool.Rate(tool.ClassExecute)),
		tool.Write("create_reminder", "Send a message later, or be asked something later.", c.createReminder),
		tool.Read("list_reminders", "List reminders.", c.listReminders),
		tool.Write("cancel_reminder", "Cancel a pending reminder.", c.cancelReminder, tool.Idempotent),
	}}
}

type control struct {
	db  postgres.DB
	now func() time.Time
	Options
}
