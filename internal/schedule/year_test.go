package schedule_test

import (
	"archive/zip"
	"fmt"
	"go/build"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pawgate/internal/schedule"
)

// zones are the names in the zone database that comes with Go.
func zones(t *testing.T) []string {
	t.Helper()
	db, err := zip.OpenReader(filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var names []string
	for _, f := range db.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	return names
}

// daily is a schedule whose days are all alike, and which readings of the clock,
// in minutes of the day, belong to it.
type daily struct {
	cron      string
	matches   func(minuteOfDay int64) bool
	everyHour bool
}

var dailies = []daily{
	{"30 2 * * *", func(m int64) bool { return m == 2*60+30 }, false},
	{"30 1 * * *", func(m int64) bool { return m == 60+30 }, false},
	{"0 0 * * *", func(m int64) bool { return m == 0 }, false},
	{"*/20 0-3 * * *", func(m int64) bool { return m/60 <= 3 && m%20 == 0 }, false},
	{"45 23,3 * * *", func(m int64) bool { return m == 23*60+45 || m == 3*60+45 }, false},
	{"15 * * * *", func(m int64) bool { return m%60 == 15 }, true},
	{"*/30 * * * *", func(m int64) bool { return m%30 == 0 }, true},
}

// watched lives through a year minute by minute, looks at the zone's clock, and
// applies the written rule word by word: no calendar, no cron.
func (d daily) watched(loc *time.Location, from, to time.Time) []int64 {
	var slots []int64
	shown := reading(from.Unix()-60, loc) // the latest reading so far
	var until, shift int64
	for now := from.Unix(); now < to.Unix(); now += 60 {
		if now >= until {
			_, end := time.Unix(now, 0).In(loc).ZoneBounds()
			shift, until = reading(now, loc)-now, end.Unix()
			if end.IsZero() {
				until = to.Unix()
			}
		}
		wall := now + shift
		if d.everyHour {
			if d.matches(wall / 60 % 1440) {
				slots = append(slots, now)
			}
			continue
		}
		due := false
		for ; shown < wall; shown += 60 { // what is shown now, or was skipped
			due = due || d.matches((shown+60)/60%1440)
		}
		if due {
			slots = append(slots, now)
		}
	}
	return slots
}

func reading(now int64, loc *time.Location) int64 {
	_, shift := time.Unix(now, 0).In(loc).Zone()
	return now + int64(shift)
}

// TestYear compares the slots of a year with those that somebody who watches
// the clock would count, in every zone whose clocks change in that year. Zones
// that change alike are one.
func TestYear(t *testing.T) {
	t.Parallel()
	from, to := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	alike, changing, slots := map[string]bool{}, 0, 0
	for _, name := range zones(t) {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		changes := changes(loc, from, to)
		if changes == "" {
			continue
		}
		changing++
		if alike[changes] {
			continue
		}
		alike[changes] = true
		for _, d := range dailies {
			slots += d.compare(t, name, loc, from, to)
		}
	}
	if changing < 100 || len(alike) < 20 {
		t.Errorf("only %d zones change their clocks, in %d ways", changing, len(alike))
	}
	t.Logf("%d zones change their clocks in %d ways; %d slots", changing, len(alike), slots)
}

// changes tells when a zone's clocks change between two instants, and to what.
func changes(loc *time.Location, from, to time.Time) string {
	var all strings.Builder
	for t := from; ; {
		_, end := t.In(loc).ZoneBounds()
		if end.IsZero() || !end.Before(to) {
			return all.String()
		}
		fmt.Fprintln(&all, reading(t.Unix(), loc)-t.Unix(), end.Unix(), reading(end.Unix(), loc)-end.Unix())
		t = end
	}
}

func (d daily) compare(t *testing.T, name string, loc *time.Location, from, to time.Time) int {
	t.Helper()
	s, err := schedule.Parse(d.cron, name, from)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	want := d.watched(loc, from, to)
	slot := from.Add(-time.Second)
	for _, w := range want {
		if slot = s.Next(slot); slot.Unix() != w {
			t.Errorf("%s in %s: %s, want %s", d.cron, name, slot.In(loc), time.Unix(w, 0).In(loc))
			return 0
		}
	}
	if next := s.Next(slot); next.Before(to) {
		t.Errorf("%s in %s: %s is one too many", d.cron, name, next.In(loc))
	}
	return len(want)
}
