package schedule

import (
	"math/bits"
	"regexp"
	"strings"
	"time"

	"github.com/netresearch/go-cron"

	"pawgate/internal/fault"
)

// maxCron bounds an expression, in bytes.
const maxCron = 200

// searchYears is how far ahead a slot is looked for: February 29 can be eight
// years away, and a weekday of the year's end as long as the calendar repeats.
const searchYears = 28

var (
	sixFields = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Extended).
			WithMaxSearchYears(searchYears)
	zeroStep = regexp.MustCompile(`/0*(,|$)`)
	zoneName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`)
)

var nicknames = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// Parse reads an expression and the IANA name of a zone. The error is a
// *fault.InvalidArgument for the argument cron or cron_timezone that says
// what to write instead; also for an expression that is never due after now.
func Parse(expression, zone string, now time.Time) (Schedule, error) {
	loc, err := Zone(zone)
	if err != nil {
		return Schedule{}, err
	}
	s := Schedule{Cron: strings.Join(strings.Fields(expression), " "), Zone: zone, loc: loc}
	if at, ok := strings.CutPrefix(s.Cron, "@at "); ok {
		s.once, err = time.Parse(time.RFC3339, at)
		if err != nil {
			return Schedule{}, fault.Invalid("cron", "@at takes a time with its offset, such as @at 2026-12-24T09:00:00+01:00")
		}
	} else if s.spec, err = fields(s.Cron); err != nil {
		return Schedule{}, err
	}
	if s.Next(now).IsZero() {
		return Schedule{}, fault.Invalid("cron", "%q is never due: no such date comes any more", s.Cron)
	}
	return s, nil
}

// fields reads an expression that is no @at.
func fields(text string) (*cron.SpecSchedule, error) {
	if full, ok := nicknames[strings.ToLower(text)]; ok {
		text = full
	}
	list := strings.Fields(text)
	if err := refuse(text, list); err != nil {
		return nil, err
	}
	if len(list) == 5 {
		list = append([]string{"0"}, list...)
	}
	parsed, err := sixFields.Parse(strings.Join(list, " "))
	spec, ok := parsed.(*cron.SpecSchedule)
	if err != nil || !ok {
		return nil, fault.Invalid("cron", "%q is no cron expression: %s", text, reason(err))
	}
	if bits.OnesCount64(spec.Second&(1<<60-1)) != 1 {
		return nil, fault.Invalid("cron", "%q is due more often than once a minute; make its first field, the seconds, one number", text)
	}
	spec.Location = time.UTC
	spec.DowOrDom = !strings.HasPrefix(list[3], "*") && !strings.HasPrefix(list[5], "*")
	return spec, nil
}

// refuse turns away what a parser could take for something else.
func refuse(text string, list []string) error {
	switch {
	case len(text) > maxCron:
		return fault.Invalid("cron", "cron must be at most %d bytes", maxCron)
	case strings.Contains(text, "="):
		return fault.Invalid("cron", "cron takes no TZ= or CRON_TZ=; give the zone in cron_timezone")
	case strings.HasPrefix(text, "@"):
		return fault.Invalid("cron", "%q is not one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually, @at TIME", text)
	case strings.Contains(text, "?"):
		return fault.Invalid("cron", "%q looks like a Quartz or EventBridge expression; write * for ?, and mind that here 0 and 7 are Sunday and 1 is Monday", text)
	case len(list) == 7:
		return fault.Invalid("cron", "%q has a seventh field, the year of Quartz; write five fields (minute hour day month weekday) or six (second first)", text)
	case len(list) != 5 && len(list) != 6:
		return fault.Invalid("cron", "%q has %d fields; write five (minute hour day month weekday) or six (second first)", text, len(list))
	}
	for _, field := range list {
		if zeroStep.MatchString(field) {
			return fault.Invalid("cron", "the step in %q must be at least 1", field)
		}
		if strings.HasPrefix(field, ",") || strings.HasSuffix(field, ",") || strings.Contains(field, ",,") {
			return fault.Invalid("cron", "%q has an empty place in its list", field)
		}
	}
	return nil
}

// reason is the parser's own sentence. It quotes nothing but the expression.
func reason(err error) string {
	if err == nil {
		return "it is no list of fields"
	}
	return err.Error()
}

// Zone finds a time zone by its IANA name. The error is a
// *fault.InvalidArgument for cron_timezone.
func Zone(name string) (*time.Location, error) {
	unknown := fault.Invalid("cron_timezone", "%q is not an IANA time zone; write one such as Asia/Taipei, Europe/Berlin or UTC", name)
	if !zoneName.MatchString(name) || len(name) > 64 || name == "Local" || strings.HasPrefix(name, "posix") || strings.HasPrefix(name, "right/") {
		return nil, unknown
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, unknown
	}
	return loc, nil
}
