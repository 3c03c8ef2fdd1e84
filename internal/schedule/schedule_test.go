package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/fault"
	"pawgate/internal/schedule"
)

// at reads a time: "2026-03-08T02:30:00-05:00".
func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func parse(t *testing.T, expression, zone, now string) schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(expression, zone, at(t, now))
	if err != nil {
		t.Fatalf("%s in %s: %v", expression, zone, err)
	}
	return s
}

func TestNext(t *testing.T) {
	t.Parallel()
	const newYork = "America/New_York"
	for _, c := range []struct {
		name, cron, zone, after string
		want                    []string
	}{
		{"CRON-01 skipped by the clock: right after the gap, once", "30 2 * * *", newYork, "2026-03-07T12:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		{"CRON-01 several skipped: once", "0,10,20 2 * * *", newYork, "2026-03-08T00:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"}},
		{"CRON-02 shown twice: the first time", "30 1 * * *", newYork, "2026-10-31T12:00:00-04:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		{"CRON-02 asked between the two passes", "30 1 * * *", newYork, "2026-11-01T01:10:00-05:00", []string{"2026-11-02T01:30:00-05:00"}},
		{"every hour counts time over the gap", "30 * * * *", newYork, "2026-03-08T01:00:00-05:00",
			[]string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:30:00-04:00"}},
		{"every hour counts time over the overlap", "30 * * * *", newYork, "2026-11-01T01:00:00-04:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00"}},
		{"every quarter of an hour over the gap", "*/15 * * * *", newYork, "2026-03-08T01:45:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:15:00-04:00"}},
		{"K-95 half an hour's gap", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		{"K-95 half an hour's overlap", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"}},
		{"K-95 Oslo in spring", "30 1 * * *", "Europe/Oslo", "2026-03-28T12:00:00+01:00",
			[]string{"2026-03-29T01:30:00+01:00", "2026-03-30T01:30:00+02:00"}},
		{"K-95 Oslo in autumn", "30 1 * * *", "Europe/Oslo", "2026-10-24T12:00:00+02:00",
			[]string{"2026-10-25T01:30:00+02:00", "2026-10-26T01:30:00+01:00"}},
		{"midnight does not exist", "0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00+02:00",
			[]string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"}},
		{"a whole day does not exist", "0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00-10:00", []string{"2011-12-31T00:00:00+14:00"}},
		{"CRON-06 six fields: seconds first", "0 0 15 * * 1", "UTC", "2026-12-01T00:00:00Z", []string{"2026-12-07T15:00:00Z", "2026-12-14T15:00:00Z"}},
		{"a second of the minute", "30 0 9 * * *", "UTC", "2026-12-01T09:00:30Z", []string{"2026-12-02T09:00:30Z"}},
		{"CRON-07 day 1 or Monday", "0 9 1 * 1", "UTC", "2026-11-30T10:00:00Z", []string{"2026-12-01T09:00:00Z", "2026-12-07T09:00:00Z"}},
		{"CRON-07 a step from * and a Monday: both", "0 9 */2 * 1", "UTC", "2026-12-01T10:00:00Z", []string{"2026-12-07T09:00:00Z", "2026-12-21T09:00:00Z"}},
		{"CRON-08 last day", "0 9 L * *", "UTC", "2027-01-31T10:00:00Z", []string{"2027-02-28T09:00:00Z", "2027-03-31T09:00:00Z"}},
		{"CRON-08 third last day", "0 9 L-2 * *", "UTC", "2026-12-01T00:00:00Z", []string{"2026-12-29T09:00:00Z"}},
		{"CRON-08 workday nearest the 15th", "0 9 15W * *", "UTC", "2026-11-01T00:00:00Z", []string{"2026-11-16T09:00:00Z", "2026-12-15T09:00:00Z"}},
		{"CRON-08 second Friday", "0 9 * * 5#2", "UTC", "2026-12-01T00:00:00Z", []string{"2026-12-11T09:00:00Z", "2027-01-08T09:00:00Z"}},
		{"CRON-08 last Friday", "0 9 * * FRI#L", "UTC", "2026-12-01T00:00:00Z", []string{"2026-12-25T09:00:00Z"}},
		{"CRON-14 7 is Sunday", "0 9 * * 7", "UTC", "2026-12-01T00:00:00Z", []string{"2026-12-06T09:00:00Z", "2026-12-13T09:00:00Z"}},
		{"CRON-14 0 is Sunday", "0 9 * * 0", "UTC", "2026-12-01T00:00:00Z", []string{"2026-12-06T09:00:00Z"}},
		{"1 is Monday", "0 9 * * 1", "Asia/Taipei", "2026-12-01T00:00:00Z", []string{"2026-12-07T09:00:00+08:00"}},
		{"1-5 is Monday to Friday", "0 9 * * 1-5", "UTC", "2026-12-04T10:00:00Z", []string{"2026-12-07T09:00:00Z"}},
		{"names and a range round the end", "0 9 * jan FRI-MON", "UTC", "2026-12-01T00:00:00Z", []string{"2027-01-01T09:00:00Z", "2027-01-02T09:00:00Z", "2027-01-03T09:00:00Z", "2027-01-04T09:00:00Z", "2027-01-08T09:00:00Z"}},
		{"leap day", "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"strictly after", "0 9 * * *", "UTC", "2026-12-01T09:00:00Z", []string{"2026-12-02T09:00:00Z"}},
		{"once", "@at 2026-12-24T09:00:00+01:00", "UTC", "2026-12-01T09:00:00Z", []string{"2026-12-24T08:00:00Z", ""}},
		{"nickname", "@Weekly", "UTC", "2026-12-01T09:00:00Z", []string{"2026-12-06T00:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, after := parse(t, c.cron, c.zone, c.after), at(t, c.after)
			for i, want := range c.want {
				got := s.Next(after)
				if want == "" {
					if !got.IsZero() {
						t.Errorf("slot %d is %s, want none", i, got)
					}
					return
				}
				if !got.Equal(at(t, want)) {
					t.Fatalf("slot %d is %s, want %s", i, got, want)
				}
				after = got
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, cron, zone, parameter, part string }{
		{"CRON-03 February 30", "0 0 30 2 *", "UTC", "cron", "never due"},
		{"CRON-03 April 31", "0 0 31 4 *", "UTC", "cron", "never due"},
		{"CRON-04 step 0", "*/0 * * * *", "UTC", "cron", "step"},
		{"CRON-04 step 0 from a number", "15/0 * * * *", "UTC", "cron", "step"},
		{"CRON-04 step 00", "*/00 * * * *", "UTC", "cron", "step"},
		{"CRON-04 no step", "*/ * * * *", "UTC", "cron", "step"},
		{"CRON-05 EventBridge", "0 9 ? * 2 *", "UTC", "cron", "1 is Monday"},
		{"CRON-06 Quartz with a year", "0 0 15 * * 1 2027", "UTC", "cron", "seventh field"},
		{"CRON-06 Quartz with ?", "0 0 15 ? * MON", "UTC", "cron", "Quartz"},
		{"CRON-08 sixth Friday", "0 9 * * 5#6", "UTC", "cron", "5#6"},
		{"CRON-08 W without a day", "0 9 W * *", "UTC", "cron", "no cron expression"},
		{"CRON-11 TZ=0", "TZ=0", "UTC", "cron", "cron_timezone"},
		{"CRON-11 CRON_TZ=UTC", "CRON_TZ=UTC", "UTC", "cron", "cron_timezone"},
		{"CRON-11 TZ= and fields", "TZ=UTC 0 9 * * *", "UTC", "cron", "cron_timezone"},
		{"CRON-12 misspelt zone", "0 9 * * *", "Asia/Tapei", "cron_timezone", "Asia/Tapei"},
		{"CRON-12 no zone", "0 9 * * *", "", "cron_timezone", "IANA"},
		{"CRON-12 a path", "0 9 * * *", "../etc/localtime", "cron_timezone", "IANA"},
		{"CRON-12 the host's zone", "0 9 * * *", "Local", "cron_timezone", "IANA"},
		{"CRON-12 leap seconds", "0 9 * * *", "right/UTC", "cron_timezone", "IANA"},
		{"CRON-14 8 is no day", "0 9 * * 8", "UTC", "cron", "no cron expression"},
		{"every second", "* * * * * *", "UTC", "cron", "once a minute"},
		{"twice a minute", "0,30 * * * * *", "UTC", "cron", "once a minute"},
		{"empty", " ", "UTC", "cron", "0 fields"},
		{"four fields", "* * * *", "UTC", "cron", "4 fields"},
		{"empty list", "1,,2 * * * *", "UTC", "cron", "empty place"},
		{"list of nothing", ", * * * *", "UTC", "cron", "empty place"},
		{"@every", "@every 1m", "UTC", "cron", "@hourly"},
		{"@reboot", "@reboot", "UTC", "cron", "@hourly"},
		{"@at without offset", "@at 2027-01-01T00:00:00", "UTC", "cron", "offset"},
		{"@at gone by", "@at 2025-01-01T00:00:00Z", "UTC", "cron", "never due"},
		{"long", strings.Repeat("1,", 200) + "1 * * * *", "UTC", "cron", "200 bytes"},
		{"out of range", "60 * * * *", "UTC", "cron", "no cron expression"},
		{"negative", "-5 * * * *", "UTC", "cron", "no cron expression"},
		{"words", "every day at nine please", "UTC", "cron", "no cron expression"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := schedule.Parse(c.cron, c.zone, at(t, "2026-12-01T00:00:00Z"))
			invalid, ok := fault.InvalidOf(err)
			if !ok || invalid.Parameter != c.parameter || !strings.Contains(invalid.Message, c.part) {
				t.Errorf("got %v, want a broken %s that says %q", err, c.parameter, c.part)
			}
		})
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	now := at(t, "2026-12-01T12:00:30Z")
	for _, c := range []struct {
		name, cron string
		first      string
		most       int
		want       []string
		older      int
	}{
		{"not yet", "* * * * *", "2026-12-01T12:01:00Z", 3, nil, 0},
		{"one", "* * * * *", "2026-12-01T12:00:00Z", 3, []string{"2026-12-01T12:00:00Z"}, 0},
		{"CRON-09 a day of minutes", "* * * * *", "2026-11-30T12:01:00Z", 1, []string{"2026-12-01T12:00:00Z"}, 1439},
		{"the newest ones", "0 * * * *", "2026-12-01T08:00:00Z", 2, []string{"2026-12-01T11:00:00Z", "2026-12-01T12:00:00Z"}, 3},
		{"years of minutes are not counted out", "* * * * *", "2020-01-01T00:00:00Z", 1, []string{"2026-12-01T12:00:00Z"}, 10000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			slots, older := parse(t, c.cron, "UTC", c.first).Due(at(t, c.first), now, c.most)
			var got []string
			for _, slot := range slots {
				got = append(got, slot.UTC().Format(time.RFC3339))
			}
			if diff := cmp.Diff(c.want, got); diff != "" || older != c.older {
				t.Errorf("%d older, want %d; slots (-want +got):\n%s", older, c.older, diff)
			}
		})
	}
}

func TestFromDuDuClaw(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, want string
		changed  bool
	}{
		{"0 9 * * 1", "0 9 * * 0", true},
		{"0 9 * * 2-6", "0 9 * * 1-5", true},
		{"0 9 * * 2,7", "0 9 * * 1,6", true},
		{"0 9 * * 2/2", "0 9 * * 1/2", true},
		{"0 9 * * MON-FRI", "0 9 * * MON-FRI", false},
		{"0 9 * * *", "0 9 * * *", false},
		{"0 0 9 ? * 2 *", "0 0 9 * * 1", true},
		{"0 0 9 * * 2 2027", "0 0 9 * * 2 2027", false},
	} {
		if got, changed := schedule.FromDuDuClaw(c.in); got != c.want || changed != c.changed {
			t.Errorf("%s became %s, %v; want %s, %v", c.in, got, changed, c.want, c.changed)
		}
	}
}

// FuzzParse: nothing panics or hangs, and slots come in order.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"TZ=0", "*/0 * * * *", "0 9 L-31 * *", "0 0 29 2 MON#5", "@at x", "0 0 31 2 *", "1-1/99 23-1 LW * 5#L"} {
		f.Add(seed, "America/New_York")
	}
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, expression, zone string) {
		s, err := schedule.Parse(expression, zone, now)
		if err != nil {
			return
		}
		last := now
		for _, slot := range s.Upcoming(now, 5) {
			if !slot.After(last) {
				t.Fatalf("%q in %s: %s after %s", expression, zone, slot, last)
			}
			last = slot
		}
	})
}
