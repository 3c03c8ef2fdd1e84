package skill

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
	"pawgate/internal/terms"
)

var (
	//go:embed calls.sql
	callsSQL string
	//go:embed lessons.sql
	lessonsSQL string
)

// How calls are cut into work, and which work is worth a skill.
const (
	pause       = 30 * time.Minute // between two stretches of work
	shortest    = 2                // tools in a row
	longest     = 6
	leastTimes  = 2 // stretches that hold it
	leastNotes  = 2 // memories on one topic
	mostCalls   = 20_000
	mostLessons = 500
	mostFound   = 20
)

// candidate is work that was done more than once, or knowledge that was kept
// more than once: what a skill could be written from.
type candidate struct {
	CandidateID string `json:"candidate_id"`
	// Kind is calls (tools used in the same order), memories (of one topic that
	// went well) or gap (a topic that skill_gaps names).
	Kind      string    `json:"kind"`
	Topic     string    `json:"topic"`
	Tools     []string  `json:"tools,omitempty"`
	Times     int       `json:"times"`
	MemoryIDs []string  `json:"memory_ids,omitempty"`
	Requests  []string  `json:"request_ids,omitempty"` // of the calls, for audit_trail_query
	LastAt    time.Time `json:"last_at"`
	// Score is 0.40 for how often it went well, 0.35 for how often it came back,
	// 0.25 for how many steps it has.
	Score   float64 `json:"score"`
	SkillID string  `json:"skill_id,omitzero"` // written from it already

	arguments map[string][]string // names of a tool's arguments
	texts     []string
}

type callRow struct {
	Tool      string
	RequestID string
	At        time.Time
	OK        bool
	Arguments []string
}

// fromCalls finds sequences of tools that several stretches of work share.
func fromCalls(agent string, calls []callRow) []candidate {
	type seen struct {
		stretches, good int
		last            int // the stretch it was last counted in
		tools           []string
		requests        []string
		at              time.Time
	}
	all := map[string]*seen{}
	arguments := map[string][]string{}
	for n, work := range stretches(calls) {
		for _, c := range work {
			if len(arguments[c.Tool]) == 0 {
				arguments[c.Tool] = c.Arguments
			}
		}
		for length := shortest; length <= longest; length++ {
			for i := 0; i+length <= len(work); i++ {
				part := work[i : i+length]
				tools := make([]string, length)
				good := true
				for j, c := range part {
					tools[j], good = c.Tool, good && c.OK
				}
				key := strings.Join(tools, " ")
				s := all[key]
				if s == nil {
					s = &seen{tools: tools, last: -1}
					all[key] = s
				}
				if s.last == n {
					continue
				}
				s.last = n
				s.stretches++
				if good {
					s.good++
				}
				s.at = part[length-1].At
				s.requests = append(s.requests, part[0].RequestID)
			}
		}
	}
	// A part of a longer sequence that is as frequent says nothing more.
	covered := map[string]bool{}
	for _, o := range all {
		if o.stretches < leastTimes || o.good == 0 {
			continue
		}
		for length := shortest; length < len(o.tools); length++ {
			for i := 0; i+length <= len(o.tools); i++ {
				key := strings.Join(o.tools[i:i+length], " ")
				covered[key] = covered[key] || o.stretches >= all[key].stretches
			}
		}
	}
	var found []candidate
	for key, s := range all {
		if s.stretches < leastTimes || s.good == 0 || covered[key] {
			continue
		}
		found = append(found, candidate{CandidateID: hashed("c", agent, "calls", key), Kind: "calls", Topic: strings.Join(s.tools, " → "), Tools: s.tools, Times: s.stretches,
			Requests: s.requests[max(0, len(s.requests)-5):], LastAt: s.at, arguments: arguments,
			Score: weigh(float64(s.good)/float64(s.stretches), s.stretches, distinct(s.tools))})
	}
	return found
}

// stretches cuts calls at pauses; the same tool several times in a row is one
// step.
func stretches(calls []callRow) [][]callRow {
	var all [][]callRow
	for i, c := range calls {
		if i == 0 || c.At.Sub(calls[i-1].At) > pause {
			all = append(all, nil)
		}
		work := &all[len(all)-1]
		if n := len(*work); n > 0 && (*work)[n-1].Tool == c.Tool {
			(*work)[n-1].OK = c.OK // the last attempt counts
			continue
		}
		*work = append(*work, c)
	}
	return all
}

func distinct(tools []string) int {
	sorted := slices.Clone(tools)
	slices.Sort(sorted)
	return len(slices.Compact(sorted))
}

func weigh(success float64, times, steps int) float64 {
	return math.Round((0.40*success+0.35*min(1, float64(times)/5)+0.25*min(1, float64(steps)/5))*1000) / 1000
}

type lesson struct {
	ID      string
	Content string
	At      time.Time
	Times   int
}

// fromLessons joins memories of work that went well by their topics.
func fromLessons(agent string, lessons []lesson) []candidate {
	var all []candidate
	var keys [][]string
	for _, l := range lessons {
		own := terms.Keys(l.Content)
		if len(own) == 0 {
			continue
		}
		at := slices.IndexFunc(keys, func(other []string) bool { return about(own, other) })
		if at < 0 {
			at = len(all)
			all, keys = append(all, candidate{CandidateID: hashed("c", agent, "memories", l.ID), Kind: "memories", Topic: cut(l.Content, 200)}), append(keys, own)
		}
		c := &all[at]
		c.Times += l.Times
		c.LastAt = l.At
		if len(c.MemoryIDs) < 10 {
			c.MemoryIDs, c.texts = append(c.MemoryIDs, l.ID), append(c.texts, l.Content)
		}
	}
	all = slices.DeleteFunc(all, func(c candidate) bool { return len(c.MemoryIDs) < leastNotes })
	for i := range all {
		all[i].Score = weigh(1, all[i].Times, len(all[i].MemoryIDs))
	}
	return all
}

// candidates are the agent's, best first, with the skills that were written
// from them.
func (k skills) candidates(ctx context.Context, agent string, days int) ([]candidate, error) {
	since := k.now().AddDate(0, 0, -days)
	calls, err := postgres.All[callRow](ctx, k.db, callsSQL, pgx.StrictNamedArgs{"agent": agent, "since": since, "limit": mostCalls})
	if err != nil {
		return nil, fmt.Errorf("read calls: %w", err)
	}
	lessons, err := postgres.All[lesson](ctx, k.db, lessonsSQL, pgx.StrictNamedArgs{"agent": agent, "since": since, "limit": mostLessons})
	if err != nil {
		return nil, fmt.Errorf("read memories: %w", err)
	}
	all := append(fromCalls(agent, calls), fromLessons(agent, lessons)...)
	found, err := k.evidence(ctx, agent, max(days, gapDays))
	if err != nil {
		return nil, err
	}
	for _, g := range topics(agent, found) {
		c := candidate{CandidateID: g.GapID, Kind: "gap", Topic: g.Topic, Times: g.Times, LastAt: g.LastAt, Score: weigh(0, g.Times, len(g.Evidence))}
		for _, e := range g.Evidence {
			c.texts = append(c.texts, e.Text)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.Score, x.Score), strings.Compare(x.CandidateID, y.CandidateID))
	})
	return all, k.markWritten(ctx, agent, all)
}

//go:embed written.sql
var writtenSQL string

func (k skills) markWritten(ctx context.Context, agent string, all []candidate) error {
	rows, err := postgres.All[struct{ CandidateID, SkillID string }](ctx, k.db, writtenSQL, pgx.StrictNamedArgs{"agent": agent})
	if err != nil {
		return fmt.Errorf("read written candidates: %w", err)
	}
	for _, r := range rows {
		for i := range all {
			if all[i].CandidateID == r.CandidateID {
				all[i].SkillID = r.SkillID
			}
		}
	}
	return nil
}
