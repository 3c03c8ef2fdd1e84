package operator

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/standing"
	"pawgate/internal/tool"
)

type limitsArgs struct {
	AgentID   string `json:"agent_id" doc:"Which agent" maxlen:"64"`
	Class     string `json:"class,omitempty" doc:"Which tools; credential counts every request of one credential" enum:"credential,read,write,send,execute,expensive"`
	Burst     int    `json:"burst,omitempty" doc:"So many calls at once" min:"1" max:"1000000"`
	PerMinute int    `json:"per_minute,omitempty" doc:"So many calls a minute in the long run" min:"1" max:"1000000"`
	Clear     bool   `json:"clear,omitempty" doc:"Back to the usual limit of the class, or of all classes"`
}

// fillMinutes is the longest that an empty bucket may take to fill, so that
// one that nobody used for so long can be forgotten.
const fillMinutes = 24 * 60

// Validate refuses what would change nothing, or never fill.
func (a limitsArgs) Validate() error {
	set := a.Burst > 0 || a.PerMinute > 0
	switch {
	case set && a.Clear:
		return fault.Invalid("clear", "--clear goes back to the usual limit; leave --burst and --per-minute out")
	case set && a.Class == "":
		return fault.Invalid("class", "class is missing: which limit to change")
	case a.Class != "" && !set && !a.Clear:
		return fault.Invalid("burst", "give --burst or --per-minute, or --clear; without --class all limits are shown")
	}
	return nil
}

type limitsResult struct {
	AgentID string      `json:"agent_id"`
	Limits  []limitLine `json:"limits"`
	Changed bool        `json:"changed"`
}

type limitLine struct {
	Class     string  `json:"class"`
	Burst     float64 `json:"burst"`
	PerMinute float64 `json:"per_minute"`
	Own       bool    `json:"own"` // false: the usual one
}

// agentLimits shows the limits, after it changed one of them. Never so that a
// class has no limit, or none at all: for that is agent deny.
func (s *session) agentLimits(ctx context.Context, _ caller.Caller, a limitsArgs) (limitsResult, error) {
	if err := s.lock(ctx); err != nil {
		return limitsResult{}, err
	}
	row, err := s.read(ctx, a.AgentID)
	if err != nil {
		return limitsResult{}, err
	}
	before := maps.Clone(row.Limits)
	if row.Limits == nil {
		row.Limits = map[string]standing.Limit{}
	}
	switch {
	case a.Clear && a.Class == "":
		clear(row.Limits)
	case a.Clear:
		delete(row.Limits, a.Class)
	case a.Class != "":
		have := limitOf(row.Limits, a.Class)
		now := standing.Limit{Burst: cmp.Or(float64(a.Burst), have.Burst), PerMinute: cmp.Or(float64(a.PerMinute), have.PerMinute)}
		if now.Burst > now.PerMinute*fillMinutes {
			return limitsResult{}, fault.Invalid("burst", "a burst of %.0f would take more than a day to fill at %.0f a minute", now.Burst, now.PerMinute)
		}
		row.Limits[a.Class] = now
	}
	r := limitsResult{AgentID: a.AgentID, Limits: limitLines(row.Limits), Changed: !maps.Equal(before, row.Limits)}
	if r.Changed {
		_, err = s.write(ctx, row)
	}
	return r, err
}

// classes are what has a limit, in the order of their display.
var classes = []string{"credential", string(tool.ClassRead), string(tool.ClassWrite), string(tool.ClassSend), string(tool.ClassExecute), string(tool.ClassExpensive)}

func limitOf(own map[string]standing.Limit, class string) standing.Limit {
	if limit, ok := own[class]; ok {
		return limit
	}
	if class == classes[0] {
		return standing.CredentialLimit
	}
	return standing.ClassLimits[tool.Class(class)]
}

func limitLines(own map[string]standing.Limit) []limitLine {
	var lines []limitLine
	for _, class := range slices.Clone(classes) {
		limit := limitOf(own, class)
		_, is := own[class]
		lines = append(lines, limitLine{Class: class, Burst: limit.Burst, PerMinute: limit.PerMinute, Own: is})
	}
	return lines
}
