package cost

import (
	"context"
	"slices"
	"strings"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/usage"
)

type multiArgs struct {
	Days     int    `json:"days,omitempty" doc:"7 if left out" min:"1" max:"730"`
	AgentID  string `json:"agent_id,omitempty" doc:"-" maxlen:"64"`
	Timezone string `json:"timezone,omitempty" doc:"As Asia/Taipei"`
}

// Validate refuses a zone that is none.
func (a multiArgs) Validate() error {
	_, err := zoneOf(a.Timezone)
	return err
}

type multiResult struct {
	Window   window     `json:"window"`
	Note     string     `json:"note,omitzero"`
	Dispatch sums       `json:"dispatch"` // agents at work for other agents
	Direct   sums       `json:"direct"`   // agents asked by people
	Rows     []multiRow `json:"rows"`     // by day, then agent; the last ones, if there are many
	More     int        `json:"more"`     // rows left out, of the days before
}

type multiRow struct {
	Day      string `json:"day"`
	AgentID  string `json:"agent_id"`
	Dispatch sums   `json:"dispatch"`
	Direct   sums   `json:"direct"`
}

// multiVsSingle compares whole days of the zone, today included. What a
// schedule or an agent's work on itself cost is in neither column.
func (c cost) multiVsSingle(ctx context.Context, who caller.Caller, a multiArgs) (multiResult, error) {
	zone, err := zoneOf(a.Timezone)
	if err != nil {
		return multiResult{}, err
	}
	agents, err := c.seen(ctx, who, a.AgentID)
	if err != nil {
		return multiResult{}, err
	}
	days := a.Days
	if days == 0 {
		days = 7
	}
	now := c.now().In(zone)
	w := newWindow(time.Date(now.Year(), now.Month(), now.Day()-days+1, 0, 0, 0, 0, zone), now, zone)
	lines, err := usage.Report(ctx, c.db, usage.Query{From: w.From, To: w.To, Zone: w.zone, Agents: agents, Group: usage.ByDay, Split: true,
		Types: []usage.RequestType{usage.Dispatch, usage.Chat}, ByType: true})
	if err != nil {
		return multiResult{}, err
	}
	sides := map[string][]usage.Line{}
	for _, l := range lines {
		sides[l.Key] = append(sides[l.Key], l)
	}
	dispatch, direct := sides[string(usage.Dispatch)], sides[string(usage.Chat)]
	r := multiResult{Window: w, Note: note(total(lines)), Dispatch: sumsOf(total(dispatch)), Direct: sumsOf(total(direct)), Rows: multiRows(dispatch, direct, zone)}
	if r.More = max(0, len(r.Rows)-maxLines); r.More > 0 {
		r.Rows = r.Rows[r.More:]
	}
	return r, nil
}

// multiRows puts both sides of a day and agent beside each other.
func multiRows(dispatch, direct []usage.Line, zone *time.Location) []multiRow {
	type place struct{ day, agent string }
	none := sumsOf(usage.Line{})
	rows := map[place]*multiRow{}
	at := func(l usage.Line) *multiRow {
		p := place{l.Period.In(zone).Format(time.DateOnly), l.Agent}
		if rows[p] == nil {
			rows[p] = &multiRow{Day: p.day, AgentID: p.agent, Dispatch: none, Direct: none}
		}
		return rows[p]
	}
	for _, l := range dispatch {
		at(l).Dispatch = sumsOf(l)
	}
	for _, l := range direct {
		at(l).Direct = sumsOf(l)
	}
	list := make([]multiRow, 0, len(rows))
	for _, row := range rows {
		list = append(list, *row)
	}
	slices.SortFunc(list, func(a, b multiRow) int {
		return strings.Compare(a.Day+" "+a.AgentID, b.Day+" "+b.AgentID)
	})
	return list
}
