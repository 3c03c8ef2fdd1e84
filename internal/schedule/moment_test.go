package schedule_test

import (
	"strings"
	"testing"

	"pawgate/internal/fault"
	"pawgate/internal/schedule"
)

func TestMoment(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-12-01T12:00:00Z")
	for _, c := range []struct{ text, zone, want string }{
		{"30s", "", "2026-12-01T12:00:30Z"},
		{"1h30m", "", "2026-12-01T13:30:00Z"},
		{"2D", "", "2026-12-03T12:00:00Z"},
		{"1w", "", "2026-12-08T12:00:00Z"},
		{"2026-12-24T09:00:00+01:00", "", "2026-12-24T08:00:00Z"},
		{"2026-12-24T09:00+01:00", "", "2026-12-24T08:00:00Z"},
		{"2026-12-24T09:00:00Z", "Asia/Taipei", "2026-12-24T09:00:00Z"},
		{"2026-12-24T09:00", "Asia/Taipei", "2026-12-24T01:00:00Z"},
		{"2026-12-24 09:00:00", "Europe/Berlin", "2026-12-24T08:00:00Z"},
		{"2027-03-28T02:30", "Europe/Berlin", "2027-03-28T01:00:00Z"}, // skipped
		{"2027-10-31T02:30", "Europe/Berlin", "2027-10-31T00:30:00Z"}, // twice
	} {
		got, err := schedule.Moment(c.text, c.zone, now)
		if err != nil || !got.Equal(at(t, c.want)) {
			t.Errorf("%s %s: %s, %v, want %s", c.text, c.zone, got, err, c.want)
		}
	}
	for _, c := range []struct{ text, zone, parameter, part string }{
		{"2026-12-24T09:00:00", "", "time", "no offset"},
		{"2026-12-24T09:00:00", "Asia/Tapei", "timezone", "IANA"},
		{"9999999999d", "", "time", "no time"},
		{"999999999d", "", "time", "too far"},
		{"999999999w999999999w", "", "time", "too far"},
		{"-5m", "", "time", "no time"},
		{"5", "", "time", "no time"},
		{"", "", "time", "no time"},
		{"tomorrow", "", "time", "no time"},
	} {
		_, err := schedule.Moment(c.text, c.zone, now)
		if invalid, ok := fault.InvalidOf(err); !ok || invalid.Parameter != c.parameter || !strings.Contains(invalid.Message, c.part) {
			t.Errorf("%s %s: %v, want a broken %s that says %q", c.text, c.zone, err, c.parameter, c.part)
		}
	}
}
