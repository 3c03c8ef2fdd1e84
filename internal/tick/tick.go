// Package tick makes what is due happen: slots of schedules and reminders
// become work, what lost its worker is taken back, and SQS is told.
//
// Any number of tickers may run at once, late, twice or with wrong clocks: the
// clock is the database's, a schedule is moved on and its slots are recorded
// in one statement that only one ticker wins, and a slot has one row whatever
// happens. A slot that nobody was there for follows the schedule's policy; a
// burst of old ones never runs.
//
// The package runs no model and sends no message; that is the worker's.
package tick

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
	"pawgate/internal/schedule"
	"pawgate/internal/work"
)

var (
	//go:embed due.sql
	dueSQL string
	//go:embed fire.sql
	fireSQL string
	//go:embed remind.sql
	remindSQL string
)

// grace is how late a slot may be claimed and still counts as in time: EventBridge
// comes once a minute and may be late itself.
const grace = 3 * time.Minute

// maxCaughtUp is how many slots the policy "all" makes up for, the newest ones.
const maxCaughtUp = 20

// batch is how many schedules, or reminders, one statement takes.
const batch = 200

// Done counts what one tick did.
type Done struct {
	Fired     int        `json:"fired"`  // slots that became work
	Passed    int        `json:"passed"` // slots recorded as missed, overlapped or suspended
	Reminders int        `json:"reminders"`
	Swept     work.Swept `json:"swept"`
	Sent      int        `json:"sent"` // items that SQS was told of
}

// Ticker ticks.
type Ticker struct {
	DB     postgres.DB
	Sender work.Sender      // nil: workers look for themselves
	Now    func() time.Time // nil: the database's clock
}

// Tick does everything that is due. It is safe at any time and from any number
// of processes; after an error the next tick does what is left.
func (t Ticker) Tick(ctx context.Context) (Done, error) {
	var done Done
	if err := t.schedules(ctx, &done); err != nil {
		return done, err
	}
	if err := t.reminders(ctx, &done); err != nil {
		return done, err
	}
	var err error
	if done.Swept, err = work.Sweep(ctx, t.DB); err != nil || t.Sender == nil {
		return done, err
	}
	done.Sent, err = work.Dispatch(ctx, t.DB, t.Sender)
	return done, err
}

// due is a schedule with a slot that is due.
type due struct {
	ID, Cron, Timezone, Misfire string
	NextSlot, Now               time.Time
}

// plan is what becomes of a schedule, if it is still as it was seen.
type plan struct {
	ID    string     `json:"id"`
	Seen  time.Time  `json:"seen"`
	Next  *time.Time `json:"next"` // nil: no slot any more
	Slots []slot     `json:"slots"`
}

type slot struct {
	Slot   time.Time `json:"slot"`
	Run    bool      `json:"run"`
	Missed int       `json:"missed"` // older slots, passed over
}

func (t Ticker) schedules(ctx context.Context, done *Done) error {
	for {
		var now *time.Time
		if t.Now != nil {
			now = new(t.Now())
		}
		found, err := postgres.All[due](ctx, t.DB, dueSQL, pgx.StrictNamedArgs{"now": now, "limit": batch})
		if err != nil {
			return fmt.Errorf("find due schedules: %w", err)
		}
		if len(found) == 0 {
			return nil
		}
		plans := make([]plan, len(found))
		for i, d := range found {
			plans[i] = planOf(d)
		}
		if err := t.fire(ctx, plans, done); err != nil {
			return err
		}
		if len(found) < batch {
			return nil
		}
	}
}

func (t Ticker) fire(ctx context.Context, plans []plan, done *Done) error {
	encoded, err := json.Marshal(plans)
	if err != nil {
		return fmt.Errorf("encode plans: %w", err)
	}
	n, err := postgres.One[struct{ Fired, Passed int }](ctx, t.DB, fireSQL, pgx.StrictNamedArgs{"plans": string(encoded)})
	if err != nil {
		return fmt.Errorf("fire schedules: %w", err)
	}
	done.Fired += n.Fired
	done.Passed += n.Passed
	return nil
}

// planOf applies a schedule's policy to its due slots.
func planOf(d due) plan {
	p := plan{ID: d.ID, Seen: d.NextSlot}
	s, err := schedule.Parse(d.Cron, d.Timezone, d.NextSlot.Add(-time.Second))
	if err != nil { // the zone is gone from the database of zones; people see that it has no next run
		p.Slots = []slot{{Slot: d.NextSlot}}
		return p
	}
	if next := s.Next(d.Now); !next.IsZero() {
		p.Next = &next
	}
	most := 1
	if d.Misfire == "all" {
		most = maxCaughtUp
	}
	slots, older := s.Due(d.NextSlot, d.Now, most)
	for i, at := range slots {
		late := d.Now.Sub(at) > grace
		fired := slot{Slot: at, Run: !late || d.Misfire != "skip"}
		if i == 0 {
			fired.Missed = older
		}
		p.Slots = append(p.Slots, fired)
	}
	return p
}

func (t Ticker) reminders(ctx context.Context, done *Done) error {
	for {
		n, err := postgres.One[struct{ Count int }](ctx, t.DB, remindSQL, pgx.StrictNamedArgs{"limit": batch})
		if err != nil {
			return fmt.Errorf("fire reminders: %w", err)
		}
		done.Reminders += n.Count
		if n.Count < batch {
			return nil
		}
	}
}
