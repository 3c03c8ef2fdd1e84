package control

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/schedule"
	"pawgate/internal/work"
)

//go:embed cron_find.sql
var cronFindSQL string

// runsShown is how many of its next runs a schedule is answered with, so that
// whoever made it sees what was understood.
const runsShown = 5

// cronKey names a schedule, by its id or by its name.
type cronKey struct {
	ID   string `json:"id,omitempty" doc:"Or name" maxlen:"64"`
	Name string `json:"name,omitempty" doc:"Or id" maxlen:"100"`
}

// Validate checks that there is exactly one of the two.
func (k cronKey) Validate() error {
	if (k.ID == "") == (k.Name == "") {
		return fault.Invalid("id", "give either id or name; list_cron_tasks shows both")
	}
	return nil
}

func (k cronKey) String() string {
	if k.ID != "" {
		return k.ID
	}
	return k.Name
}

// cronTask is a schedule as it is stored.
type cronTask struct {
	ID, AgentID, CreatedBy, Name string
	Cron, Timezone, Task         string
	Enabled                      bool
	Misfire, Overlap             string
	JitterSeconds                int
	Notify                       *work.Notify
	Scopes                       []string
	NarrowedBy                   []string // besides CreatedBy
	RunNarrowedBy                []string // what bounds the run that the caller is, if it is one
	NextSlot                     *time.Time
}

// findCron locks a schedule that the caller may change: its own and those that
// agents below it made, or any for an operator. One that does not exist and one
// of somebody else get the same answer.
func findCron(ctx context.Context, tx pgx.Tx, who caller.Caller, k cronKey) (cronTask, error) {
	found, err := postgres.All[cronTask](ctx, tx, cronFindSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "operator": who.Operator(), "id": k.ID, "name": k.Name, "run": work.Parent(who)})
	switch {
	case err != nil:
		return cronTask{}, fmt.Errorf("find schedule: %w", err)
	case len(found) == 0:
		return cronTask{}, fault.New(fault.NotFound, "no scheduled task %s of yours; list_cron_tasks shows them", k)
	case len(found) > 1 && found[0].AgentID == who.Agent:
		return found[0], nil // its own comes first
	case len(found) > 1:
		return cronTask{}, fault.New(fault.Conflict, "%d agents have a scheduled task %s; give its id", len(found), k)
	}
	return found[0], nil
}

// onCron runs a change of one schedule in a transaction.
func (c control) onCron(ctx context.Context, who caller.Caller, k cronKey, change func(pgx.Tx, cronTask) error) error {
	return postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		task, err := findCron(ctx, tx, who, k)
		if err != nil {
			return err
		}
		return change(tx, task)
	})
}

// cronResult is a schedule after a change.
type cronResult struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	AgentID  string   `json:"agent_id"`
	Cron     string   `json:"cron"`
	Timezone string   `json:"cron_timezone"`
	Enabled  bool     `json:"enabled"`
	NextRuns []string `json:"next_runs"` // in the schedule's own zone
	Note     string   `json:"note,omitzero"`
}

func resultOf(t cronTask, s schedule.Schedule, now time.Time) cronResult {
	r := cronResult{ID: t.ID, Name: t.Name, AgentID: t.AgentID, Cron: t.Cron, Timezone: t.Timezone, Enabled: t.Enabled, NextRuns: []string{}}
	if !t.Enabled {
		r.Note = "it is paused and does not run until it is resumed"
		return r
	}
	loc, err := schedule.Zone(t.Timezone)
	if err != nil {
		return r
	}
	for _, slot := range s.Upcoming(now, runsShown) {
		r.NextRuns = append(r.NextRuns, slot.In(loc).Format(time.RFC3339))
	}
	return r
}

// newID is a short random id, with a letter that says of what.
func newID(kind string) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return kind + hex.EncodeToString(b[:])
}

// checkText refuses a text of nothing but spaces.
func checkText(parameter, text string) error {
	if strings.TrimSpace(text) == "" {
		return fault.Invalid(parameter, "%s must not be empty", parameter)
	}
	return nil
}

// checkName keeps names apart from ids, and readable.
func checkName(parameter, name string) error {
	if err := checkText(parameter, name); err != nil {
		return err
	}
	if name != strings.TrimSpace(name) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fault.Invalid(parameter, "%s must be one line, without spaces at its ends", parameter)
	}
	return nil
}

// taken words the violation of a name that another schedule of the agent has.
func taken(err error, parameter, name string) error {
	if postgres.Violates(err, "schedules_agent_id_name_key") {
		return fault.New(fault.Conflict, "the agent has a scheduled task named %s; choose another %s, or change that one with update_cron_task", name, parameter)
	}
	return fmt.Errorf("write schedule: %w", err)
}
