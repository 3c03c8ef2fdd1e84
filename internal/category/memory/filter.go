package memory

import (
	"time"
	_ "time/tzdata" // a Lambda function's image has no time zones of its own

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
)

// filterArgs narrow a list of memories.
type filterArgs struct {
	Tags     []string `json:"tags,omitempty" doc:"Any of these"`
	Layer    string   `json:"layer,omitempty" doc:"Only this" enum:"episodic,semantic,procedural"`
	Since    string   `json:"since,omitempty" doc:"Date or RFC 3339 time"`
	Until    string   `json:"until,omitempty" doc:"The same; a date includes its day"`
	TimeZone string   `json:"time_zone,omitempty" doc:"IANA name; default UTC"`

	mark string // set by tools, not by callers
}

func (f filterArgs) Validate() error {
	if _, _, err := f.interval(); err != nil {
		return err
	}
	return validateTags(f.Tags)
}

func (f filterArgs) none(v view) bool {
	return len(v.tags) == 0 && len(f.Tags) == 0 && f.mark == "" && f.Layer == "" && f.Since == "" && f.Until == ""
}

// named are the arguments of a statement with the filter's conditions. The
// filter has passed Validate.
func (f filterArgs) named(v view) pgx.StrictNamedArgs {
	since, until, _ := f.interval()
	tags := tagNumbers(v.agent, f.Tags)
	if f.mark != "" {
		tags = append(tags, number(v.agent, markTerm(f.mark)))
	}
	args := v.named()
	args["layer"], args["tags"], args["since"], args["until"] = f.Layer, tags, since, until
	return args
}

// The ends of time, as far as memories go.
var (
	always = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	never  = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// interval is the half-open interval that since and until stand for.
func (f filterArgs) interval() (since, until time.Time, err error) {
	zone, err := time.LoadLocation(f.TimeZone)
	if err != nil || f.TimeZone == "Local" {
		return since, until, fault.Invalid("time_zone", "time_zone must be an IANA name such as Europe/Berlin")
	}
	since, until = always, never
	if f.Since != "" {
		if since, _, err = parseTime("since", f.Since, zone); err != nil {
			return since, until, err
		}
	}
	if f.Until != "" {
		if _, until, err = parseTime("until", f.Until, zone); err != nil {
			return since, until, err
		}
	}
	return since, until, nil
}

// parseTime reads a date, which lasts its whole day in the zone, or a time,
// which lasts the microsecond that PostgreSQL tells apart.
func parseTime(parameter, text string, zone *time.Location) (from, to time.Time, err error) {
	if day, err := time.ParseInLocation(time.DateOnly, text, zone); err == nil {
		return day, day.AddDate(0, 0, 1), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return from, to, fault.Invalid(parameter, "%s must be a date such as 2026-03-31 or a time such as 2026-03-31T15:00:00Z", parameter)
	}
	return at, at.Add(time.Microsecond), nil
}
