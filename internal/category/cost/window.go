package cost

import (
	"time"

	"pawgate/internal/fault"
)

// windowArgs say which time a report is about: the last hours, or from one
// moment to another.
type windowArgs struct {
	Hours int    `json:"hours,omitempty" doc:"24 if left out" min:"1" max:"87600"`
	From  string `json:"from,omitempty" doc:"Time or day"`
	To    string `json:"to,omitempty" doc:"Excluded"`
}

// window is a stretch of time; to is excluded.
type window struct {
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Timezone string    `json:"timezone"`

	zone *time.Location
}

// Validate refuses what contradicts itself.
func (a windowArgs) Validate() error {
	switch {
	case a.Hours > 0 && a.From != "":
		return fault.Invalid("from", "hours and from exclude each other")
	case a.To != "" && a.From == "":
		return fault.Invalid("from", "from is missing; to without from says no window")
	}
	_, err := a.at(time.Now(), time.UTC)
	return err
}

// at is the window as seen at a moment in a zone.
func (a windowArgs) at(now time.Time, zone *time.Location) (window, error) {
	if a.From == "" {
		hours := a.Hours
		if hours == 0 {
			hours = 24
		}
		return newWindow(now.Add(-time.Duration(hours)*time.Hour), now, zone), nil
	}
	from, err := moment("from", a.From, zone)
	if err != nil {
		return window{}, err
	}
	to := now
	if a.To != "" {
		if to, err = moment("to", a.To, zone); err != nil {
			return window{}, err
		}
	}
	if !from.Before(to) {
		return window{}, fault.Invalid("to", "to must be later than from")
	}
	return newWindow(from, to, zone), nil
}

func newWindow(from, to time.Time, zone *time.Location) window {
	return window{From: from.In(zone), To: to.In(zone), Timezone: zone.String(), zone: zone}
}

// before is the window of the same length that ends where this one begins.
func (w window) before() window { return newWindow(w.From.Add(-w.To.Sub(w.From)), w.From, w.zone) }

func zoneOf(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fault.Invalid("timezone", "there is no time zone %.60s; write it as Asia/Taipei", name)
	}
	return zone, nil
}

func moment(parameter, text string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.Invalid(parameter, "%s must be a time such as 2026-11-30T18:00:00Z, or a day such as 2026-11-30", parameter)
}
