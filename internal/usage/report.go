package usage

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed report_agents.sql
	reportAgentsSQL string
	//go:embed report_models.sql
	reportModelsSQL string
	//go:embed report_users.sql
	reportUsersSQL string
	//go:embed report_rows.sql
	reportRowsSQL string
	//go:embed no_scans.sql
	noScansSQL string
	//go:embed fold_some.sql
	foldSomeSQL string
	//go:embed fold.sql
	foldSQL string
)

// Group is what a report has a line for.
type Group string

// The groups. The periods are those of the report's time zone; a week begins on
// Monday.
const (
	Total         Group = ""
	ByAgent       Group = "agent"
	ByUser        Group = "user"
	ByModel       Group = "model"
	ByProvider    Group = "provider"
	ByTool        Group = "tool"
	ByRequestType Group = "request_type"
	BySession     Group = "session"
	ByHour        Group = "hour"
	ByDay         Group = "day"
	ByWeek        Group = "week"
	ByMonth       Group = "month"
)

// Query says what a report is about.
type Query struct {
	From, To time.Time      // To is excluded
	Zone     *time.Location // of the periods; nil: UTC
	Agents   []string       // nil: all of them
	User     string         // "": whoever
	Session  string         // "": whichever
	Types    []RequestType  // nil: all
	Group    Group
	// Split gives every line again for each agent.
	Split bool
	// ByType gives every line of a period again for each of Types, as its key.
	ByType bool
}

// Line is one sum. Cost is in micro-dollars, without what is of unknown cost:
// that is counted by Unpriced.
type Line struct {
	Period      time.Time // the first moment of the period; zero when not grouped by one
	Key         string    // agent, user, model …; "" when not grouped by one, and for none
	Agent       string    // when split
	Requests    int64
	Unpriced    int64
	Units       int64
	Input       int64
	Output      int64
	CacheRead   int64
	CacheWrite5 int64 `db:"cache_write_5m"`
	CacheWrite1 int64 `db:"cache_write_1h"`
	Reasoning   int64
	Cost        int64
}

// Bounds of reports.
const (
	maxPeriods = 1000                // lines of periods
	maxRowSpan = 31 * 24 * time.Hour // of reports that read single rows
	// MaxSpan is the longest window.
	MaxSpan = 10 * 366 * 24 * time.Hour
)

// Report adds up usage. What was recorded before it began is in it, whatever is
// folded at the moment.
func Report(ctx context.Context, db postgres.DB, q Query) ([]Line, error) {
	spans, err := q.spans()
	if err != nil {
		return nil, err
	}
	// Many rows may be waiting where nobody tends the database; a part of them is
	// put into the sums here, unless another is at it.
	if _, err := db.Exec(ctx, foldSomeSQL); err != nil {
		return nil, fmt.Errorf("fold usage: %w", postgres.Classify(err))
	}
	sql, types := q.statement()
	var lines []Line
	err = postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		// How many parts a window has and how small they are the planner cannot
		// know; left alone it reads the whole table for them. And it is to see
		// which agents are meant.
		if _, err := tx.Exec(ctx, noScansSQL); err != nil {
			return err
		}
		lines, err = postgres.Every[Line](ctx, tx, sql, spans.level, spans.from, spans.to, spans.period, q.Agents, q.User, q.Session, types, string(q.key()), q.Split, q.everyone())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("report usage: %w", err)
	}
	return lines, nil
}

// Fold puts all that waits into the sums.
func Fold(ctx context.Context, db postgres.DB) error {
	for {
		done, err := postgres.First[struct{ N int64 }](ctx, db, foldSQL)
		if err != nil {
			return fmt.Errorf("fold usage: %w", err)
		}
		if done.N == 0 {
			return nil
		}
	}
}

// statement picks the sums that know what is asked for.
func (q Query) statement() (sql string, types []string) {
	for _, t := range q.Types {
		types = append(types, string(t))
	}
	switch {
	case q.single():
		return reportRowsSQL, types
	case q.users():
		return reportUsersSQL, types
	case q.models():
		return reportModelsSQL, types
	}
	return reportAgentsSQL, types
}

// key is what the lines are told apart by, besides their periods and agents.
func (q Query) key() Group {
	if q.ByType && q.Types != nil && q.Group.period() {
		return ByRequestType
	}
	return q.Group
}

// everyone reports whether the sums of all agents together will do.
func (q Query) everyone() bool { return q.Agents == nil && q.Group != ByAgent && !q.Split }

func (q Query) users() bool { return q.Group == ByUser }

func (q Query) models() bool {
	return q.Group == ByModel || q.Group == ByProvider || q.Group == ByTool || q.Group == ByRequestType || q.Types != nil
}

// single reports whether only the rows themselves know what is asked for.
func (q Query) single() bool {
	return q.Group == BySession || q.Session != "" || q.User != "" || q.Group == ByUser && q.Types != nil
}

// The levels of the sums: rows, quarters of an hour, hours, days, months.
const levelRows, levelQuarter, levelHour, levelDay, levelMonth = -1, 0, 1, 2, 3

// spanList is a window in parts, each of which one level of sums covers.
type spanList struct {
	level            []int16
	from, to, period []time.Time
}

func (s *spanList) add(level int16, from, to, period time.Time) {
	if from.Before(to) {
		s.level, s.from, s.to, s.period = append(s.level, level), append(s.from, from), append(s.to, to), append(s.period, period)
	}
}

func (q Query) spans() (spanList, error) {
	zone := q.Zone
	if zone == nil {
		zone = time.UTC
	}
	switch span := q.To.Sub(q.From); {
	case span <= 0:
		return spanList{}, fault.Invalid("to", "the window ends before it begins")
	case span > MaxSpan:
		return spanList{}, fault.Invalid("from", "the window is longer than ten years")
	case q.single() && q.User == "" && q.Session == "" && span > maxRowSpan:
		return spanList{}, fault.Invalid("group_by", "sessions are told for windows of at most 31 days; ask for a shorter one, or group otherwise")
	}
	var s spanList
	if !q.Group.period() {
		q.cover(&s, q.From, q.To, time.Time{})
		return s, nil
	}
	n := 0
	for from := q.From; from.Before(q.To); n++ {
		if n == maxPeriods {
			return spanList{}, fault.Invalid("group_by", "the window has more than %d periods; take a longer period or a shorter window", maxPeriods)
		}
		begin, next := q.Group.around(from.In(zone))
		if next.After(q.To) {
			next = q.To
		}
		q.cover(&s, from, next, begin)
		from = next
	}
	return s, nil
}

// cover takes a window apart: whole months, days at both ends, hours, quarters of
// an hour, and rows for the rest.
func (q Query) cover(s *spanList, from, to, period time.Time) {
	switch {
	case q.single():
		s.add(levelRows, from, to, period)
	case q.users():
		split(s, levelMonth, levelDay, from.UTC(), to.UTC(), period)
	case q.models():
		split(s, levelMonth, levelHour, from.UTC(), to.UTC(), period)
	default:
		split(s, levelMonth, levelQuarter, from.UTC(), to.UTC(), period)
	}
}

// split covers a window with sums of a level and those below it; what is
// smaller than the lowest, rows cover.
func split(s *spanList, level, lowest int16, from, to, period time.Time) {
	if level < lowest {
		s.add(levelRows, from, to, period)
		return
	}
	first, last := floor(level, from), floor(level, to)
	if first.Before(from) {
		first = after(level, first)
	}
	if !first.Before(last) {
		split(s, level-1, lowest, from, to, period)
		return
	}
	split(s, level-1, lowest, from, first, period)
	s.add(level, first, last, period)
	split(s, level-1, lowest, last, to, period)
}

func floor(level int16, t time.Time) time.Time {
	switch level {
	case levelQuarter:
		return t.Truncate(15 * time.Minute)
	case levelHour:
		return t.Truncate(time.Hour)
	case levelDay:
		return t.Truncate(24 * time.Hour)
	}
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func after(level int16, t time.Time) time.Time {
	switch level {
	case levelQuarter:
		return t.Add(15 * time.Minute)
	case levelHour:
		return t.Add(time.Hour)
	case levelDay:
		return t.Add(24 * time.Hour)
	}
	return t.AddDate(0, 1, 0)
}

func (g Group) period() bool { return g == ByHour || g == ByDay || g == ByWeek || g == ByMonth }

// around is the period of a zone that a moment lies in, and the next one. A day
// has 23 to 25 hours; an hour that a zone repeats is two.
func (g Group) around(t time.Time) (begin, next time.Time) {
	day := func(d int) time.Time { return startOfDay(t.Year(), t.Month(), d, t.Location()) }
	switch g {
	case ByHour:
		_, offset := t.Zone()
		shift := time.Duration(offset) * time.Second
		begin = t.Add(shift).Truncate(time.Hour).Add(-shift)
		return begin, begin.Add(time.Hour)
	case ByWeek:
		monday := t.Day() - (int(t.Weekday())+6)%7
		return day(monday), day(monday + 7)
	case ByMonth:
		return startOfDay(t.Year(), t.Month(), 1, t.Location()), startOfDay(t.Year(), t.Month()+1, 1, t.Location())
	}
	return day(t.Day()), day(t.Day() + 1)
}

// startOfDay is the first moment of a day, also where midnight is skipped.
func startOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)
	if t.Hour() != 0 { // Date went back to before the gap
		t = t.Add(time.Hour).Truncate(15 * time.Minute)
	}
	return t
}
