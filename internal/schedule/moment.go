package schedule

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"pawgate/internal/fault"
)

var (
	relative = regexp.MustCompile(`^(\d{1,9}[smhdw])+$`)
	part     = regexp.MustCompile(`(\d{1,9})([smhdw])`)
)

// A day is 24 hours here, also over a change of the clocks.
var units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}

// farAhead is further than anybody may ask for, and well within a Duration.
const farAhead = 100 * 365 * 24 * time.Hour

// local are the forms of a time without offset (ISO 8601).
var local = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

// Moment reads a point in time: relative to now (30s, 5m, 1h30m, 2d, 1w), or
// ISO 8601 with an offset, or without one in the zone that is named. A reading
// that the zone's clock skips means the first moment after it, and of two passes
// the first. The error is a *fault.InvalidArgument for time or timezone.
func Moment(text, zone string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if short := strings.ToLower(text); relative.MatchString(short) {
		var total time.Duration
		for _, p := range part.FindAllStringSubmatch(short, -1) {
			n, err := strconv.Atoi(p[1])
			if err != nil || time.Duration(n) > farAhead/units[p[2]] {
				return time.Time{}, fault.Invalid("time", "%s is too far ahead", text)
			}
			if total += time.Duration(n) * units[p[2]]; total > farAhead {
				return time.Time{}, fault.Invalid("time", "%s is too far ahead", text)
			}
		}
		return now.Add(total), nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	for _, form := range local {
		wall, err := time.Parse(form, text)
		if err != nil {
			continue
		}
		if zone == "" {
			return time.Time{}, fault.Invalid("time", "%s has no offset; write it like %s+01:00, or name the zone in timezone", text, wall.Format(local[0]))
		}
		loc, err := Zone(zone)
		if err != nil {
			return time.Time{}, fault.Invalid("timezone", "%q is not an IANA time zone; write one such as Asia/Taipei, Europe/Berlin or UTC", zone)
		}
		return firstShown(wall, loc), nil
	}
	return time.Time{}, fault.Invalid("time", "%q is no time; write 30s, 5m, 1h30m, 2d, 1w, or 2026-12-24T09:00:00+01:00", text)
}
