// Package schedule says when something is due: it reads cron expressions and
// computes their slots in a time zone. It is pure: no clock, no I/O besides
// the zone database, which is embedded (Lambda's provided.al2023 image has
// none). Every instance computes the same slots.
//
// An expression has five fields (minute, hour, day of month, month, day of
// week) or six (seconds first, one number: a schedule is due at most once a
// minute). Fields take numbers, names (JAN, MON), lists, ranges (also round
// the end, FRI-MON), steps; 0 and 7 are Sunday. Extras: L (last day), L-3, LW
// (last workday), 15W (workday nearest to the 15th), FRI#2 (second Friday),
// FRI#L (last Friday), @hourly @daily @midnight @weekly @monthly @yearly
// @annually, and "@at 2026-12-24T09:00:00+01:00" for once.
//
// When both day fields are restricted, either suffices, as POSIX says of
// crontab; a day field that begins with * restricts nothing by itself, so
// then both must hold.
//
// The rule for days on which the clocks change:
//
//   - A schedule that names hours is due at the first moment at which the
//     zone's clock shows the slot or has passed it. A slot that the clock skips
//     is therefore due right after the gap, several of them once; of two
//     passes of the same hour only the first counts. Never twice, never lost.
//   - A schedule for every hour of the day counts time, not readings of the
//     clock: it is due in both passes of a repeated hour, and what the clock
//     skips does not exist.
//
// The fields are read by github.com/netresearch/go-cron, which also finds the
// next matching date and time on the calendar, without zone; what the zone
// makes of it is decided here.
package schedule

import (
	"math/bits"
	"time"
	_ "time/tzdata" // for images without a zone database

	"github.com/netresearch/go-cron"
)

// Schedule is a cron expression in a zone. Its zero value is never due.
type Schedule struct {
	Cron string // as it was given, spaces tidied
	Zone string // IANA name

	spec *cron.SpecSchedule // in UTC, which stands for a calendar without zone
	loc  *time.Location
	once time.Time // of @at
}

// Once reports whether the schedule has one slot in all.
func (s Schedule) Once() bool { return !s.once.IsZero() }

// Next is the first slot after an instant; the zero time when there is none.
func (s Schedule) Next(after time.Time) time.Time {
	switch {
	case s.Once() && s.once.After(after):
		return s.once
	case s.Once() || s.spec == nil:
		return time.Time{}
	case s.everyHour():
		return s.nextElapsed(after)
	}
	// The instants of later readings are never earlier, so the first that is
	// late enough is the answer. A repeated hour has up to a day's slots to skip.
	for wall := reading(after, s.loc); ; {
		wall = s.spec.Next(wall)
		if wall.IsZero() {
			return time.Time{}
		}
		if slot := firstShown(wall, s.loc); slot.After(after) {
			return slot
		}
	}
}

// Upcoming are the next n slots after an instant, fewer when there are no more.
func (s Schedule) Upcoming(after time.Time, n int) []time.Time {
	slots := make([]time.Time, 0, n)
	for len(slots) < n {
		after = s.Next(after)
		if after.IsZero() {
			break
		}
		slots = append(slots, after)
	}
	return slots
}

// Due are the slots from first, which is one, up to now: the newest ones, at
// most as many as asked for, oldest first, and how many older ones there are
// besides, counted up to maxMissed.
func (s Schedule) Due(first, now time.Time, most int) (slots []time.Time, older int) {
	if first.After(now) {
		return nil, 0
	}
	seen := 0
	for slot := first; !slot.IsZero() && !slot.After(now); slot = s.Next(slot) {
		if seen == maxMissed { // a long rest: go on near its end
			if later := s.within(now); later.After(slot) {
				slot = later
			}
		}
		seen++
		if slots = append(slots, slot); len(slots) > most {
			slots = slots[1:]
		}
	}
	return slots, min(seen-len(slots), maxMissed)
}

// maxMissed bounds how many slots are counted after a rest.
const maxMissed = 10000

// within is a slot not long before now: the first one in the shortest of some
// stretches of time that has one.
func (s Schedule) within(now time.Time) time.Time {
	for stretch := time.Hour; stretch < 400*24*time.Hour; stretch *= 5 {
		if slot := s.Next(now.Add(-stretch)); !slot.IsZero() && !slot.After(now) {
			return slot
		}
	}
	return time.Time{}
}

const allHours = 1<<24 - 1

func (s Schedule) everyHour() bool { return bits.OnesCount64(s.spec.Hour&allHours) == 24 }

// nextElapsed looks for the next matching reading within each stretch of
// constant offset from UTC.
func (s Schedule) nextElapsed(after time.Time) time.Time {
	in, wall := after, reading(after, s.loc)
	for {
		wall = s.spec.Next(wall)
		if wall.IsZero() {
			return time.Time{}
		}
		_, end := in.In(s.loc).ZoneBounds()
		slot := wall.Add(-offset(in, s.loc))
		if end.IsZero() || slot.Before(end) {
			return slot.In(time.UTC)
		}
		in, wall = end, reading(end, s.loc).Add(-time.Second) // the end itself may be a slot
	}
}

// reading is what the zone's clock shows at an instant, as a time in UTC.
func reading(t time.Time, loc *time.Location) time.Time {
	return t.UTC().Add(offset(t, loc))
}

func offset(t time.Time, loc *time.Location) time.Duration {
	_, seconds := t.In(loc).Zone()
	return time.Duration(seconds) * time.Second
}

// farthest is more than any clock was ever moved, and than any offset from UTC.
const farthest = 27 * time.Hour

// firstShown is the first instant at which the zone's clock shows a reading or
// has passed it.
func firstShown(wall time.Time, loc *time.Location) time.Time {
	for t := wall.Add(-farthest); ; {
		_, end := t.In(loc).ZoneBounds()
		slot := wall.Add(-offset(t, loc))
		if slot.Before(t) {
			slot = t // skipped by the clock when this stretch began
		}
		if end.IsZero() || slot.Before(end) {
			return slot
		}
		t = end
	}
}
