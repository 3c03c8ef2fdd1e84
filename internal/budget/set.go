package budget

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/usage"
)

var (
	//go:embed alone.sql
	aloneSQL string
	//go:embed set.sql
	setSQL string
	//go:embed count.sql
	countSQL string
	//go:embed list.sql
	listSQL string
	//go:embed remove.sql
	removeSQL string
)

// Budget is how much may be spent, by whom, in a period. There is one for each
// agent, user, tool and period.
type Budget struct {
	// Whose: "" all of them together, "*" each by itself, or one by name. An
	// agent's budget pays for the agents that it made, too.
	AgentID, UserID, Tool string
	Period                string // hour, day, week or month
	Zone                  string // "": UTC
	Limit                 int64  // micro-dollars; 0: nothing at all
	WarnPercent           int    // 0: 80
	Hard                  bool   // refuse; otherwise only warn
	Unpriced              string // stop or warn, when a cost is not known; "": stop
}

// Set makes a budget, or changes the one for the same agent, user, tool and
// period, and counts what its current period spent already. Gives its id.
func Set(ctx context.Context, db postgres.DB, b Budget, by string) (string, error) {
	if err := b.fill(); err != nil {
		return "", err
	}
	var id string
	err := postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		if err := Alone(ctx, tx); err != nil {
			return err
		}
		row, err := postgres.One[struct{ ID string }](ctx, tx, setSQL, pgx.StrictNamedArgs{
			"id": "b" + strings.ToLower(rand.Text()[:9]), "agent": b.AgentID, "user": b.UserID, "tool": b.Tool, "period": b.Period, "zone": b.Zone,
			"limit": b.Limit, "percent": b.WarnPercent, "hard": b.Hard, "unpriced": b.Unpriced, "by": by})
		if err != nil {
			return err
		}
		id = row.ID
		_, err = tx.Exec(ctx, countSQL, id)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("set budget: %w", err)
	}
	return id, nil
}

// Alone waits for those who reserve and record, and lets none in until the
// transaction ends. Whoever changes a budget along with something else calls it
// before it locks anything, so that nobody waits in a circle.
func Alone(ctx context.Context, tx postgres.DB) error {
	if _, err := tx.Exec(ctx, aloneSQL); err != nil {
		return fmt.Errorf("wait for budgets: %w", postgres.Classify(err))
	}
	return nil
}

// maxLimit bounds a budget, in micro-dollars: a billion dollars.
const maxLimit = 1_000_000_000_000_000

func (b *Budget) fill() error {
	if b.Zone == "" {
		b.Zone = "UTC"
	}
	if b.WarnPercent == 0 {
		b.WarnPercent = 80
	}
	if b.Unpriced == "" {
		b.Unpriced = "stop"
	}
	switch {
	case b.Period != "hour" && b.Period != "day" && b.Period != "week" && b.Period != "month":
		return fault.Invalid("period", "period must be hour, day, week or month")
	case b.Limit < 0 || b.Limit > maxLimit:
		return fault.Invalid("limit", "limit must be between nothing and a billion dollars; 0 allows nothing at all")
	case b.WarnPercent < 1 || b.WarnPercent > 100:
		return fault.Invalid("warn_percent", "warn_percent must be between 1 and 100")
	case b.Unpriced != "stop" && b.Unpriced != "warn":
		return fault.Invalid("unpriced", "unpriced must be stop or warn")
	}
	if _, err := time.LoadLocation(b.Zone); err != nil || b.Zone == "Local" {
		return fault.Invalid("timezone", "there is no time zone %.60s; write it as Asia/Taipei", b.Zone)
	}
	return nil
}

// Remove takes a budget away, and says whether it was there.
func Remove(ctx context.Context, db postgres.DB, id string) (bool, error) {
	done, err := postgres.First[struct{ Removed bool }](ctx, db, removeSQL, id)
	if err != nil {
		return false, fmt.Errorf("remove budget: %w", err)
	}
	return done.Removed, nil
}

// Standing is a budget in its current period. One for each agent, user or tool
// is a line for each that spent something.
type Standing struct {
	policy.Budget
	WarnPercent int    `json:"warn_percent"`
	OnUnpriced  string `json:"on_unpriced"`
	// State is ok, warned, or used_up.
	State string `json:"state"`
	// Forecast is what the period will have cost at its end if it goes on as in
	// the last seven days, in micro-dollars; nil where there is too little to
	// tell, for tools, and for each of the users by itself.
	Forecast *int64 `json:"forecast,omitempty"`
}

// List tells how budgets stand: those that cover the agents, or all when agents
// is nil.
func List(ctx context.Context, db postgres.DB, agents []string, now time.Time) ([]Standing, error) {
	rows, err := postgres.All[struct {
		Shown       policy.Budget
		WarnPercent int
		Unpriced    string
		Used        bool
		Warned      bool
		Payers      []string
		EachUser    bool
	}](ctx, db, listSQL, pgx.StrictNamedArgs{"agents": agents})
	if err != nil {
		return nil, fmt.Errorf("list budgets: %w", err)
	}
	list := make([]Standing, len(rows))
	week := lately{db: db, now: now}
	for i, r := range rows {
		list[i] = Standing{Budget: r.Shown, WarnPercent: r.WarnPercent, OnUnpriced: r.Unpriced, State: "ok"}
		switch {
		case r.Used:
			list[i].State = "used_up"
		case r.Warned:
			list[i].State = "warned"
		}
		if list[i].Forecast, err = week.forecast(ctx, list[i], r.Payers, r.EachUser); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// forecastDays is how much of the past a forecast goes by.
const forecastDays = 7

// lately is what the last days cost, which many budgets ask for.
type lately struct {
	db   postgres.DB
	now  time.Time
	read bool
	days []usage.Line // by day and agent
}

// forecast goes by the mean of the last days, or of as many as there are, which
// a quiet or busy first day of the month does not upset. payers are those whose
// usage the budget pays; nil: all.
func (l *lately) forecast(ctx context.Context, s Standing, payers []string, eachUser bool) (*int64, error) {
	if s.Tool != "" || s.AgentID == "*" || eachUser || l.now.After(s.ResetsAt) {
		return nil, nil
	}
	days, err := l.of(ctx, s.UserID)
	if err != nil {
		return nil, err
	}
	var cost int64
	var first time.Time
	for _, d := range days {
		if payers != nil && !slices.Contains(payers, d.Agent) {
			continue
		}
		if first.IsZero() {
			first = d.Period
		}
		cost += d.Cost
	}
	if first.IsZero() {
		return nil, nil
	}
	past := max(24*time.Hour, min(l.now.Sub(first), forecastDays*24*time.Hour))
	will := s.Settled + int64(float64(cost)*float64(s.ResetsAt.Sub(l.now))/float64(past))
	return &will, nil
}

// of is what the last days cost, a user's or in all: for all it is read once.
func (l *lately) of(ctx context.Context, user string) ([]usage.Line, error) {
	if user == "" && l.read {
		return l.days, nil
	}
	days, err := usage.Report(ctx, l.db, usage.Query{From: l.now.AddDate(0, 0, -forecastDays), To: l.now, User: user, Group: usage.ByDay, Split: true})
	if err == nil && user == "" {
		l.days, l.read = days, true
	}
	return days, err
}
