package skill

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
	"pawgate/internal/skill/scan"
	"pawgate/internal/terms"
)

//go:embed gaps.sql
var gapsSQL string

// When a skill answers a topic, and how much is read and shown.
const (
	covers       = 0.5 // score
	suggests     = 0.3
	gapDays      = 90
	perSource    = 200
	mostGaps     = 20
	mostEvidence = 5
	leastShared  = 2 // keys that two texts of one topic share
)

type gapsArgs struct {
	AgentID  string `json:"agent_id,omitempty" doc:"Default: you" maxlen:"64"`
	Days     int    `json:"days,omitempty" doc:"Default 90" min:"1" max:"365"`
	Answered bool   `json:"answered,omitempty" doc:"Also what a skill answers"`
}

type gapsResult struct {
	AgentID string `json:"agent_id"`
	Gaps    []gap  `json:"gaps"`
	// Looked is what was read, by kind: without any there is nothing to tell.
	Looked map[string]int `json:"looked_at"`
	Notice string         `json:"notice,omitzero"`
}

// gap is a topic that keeps coming up and that no skill of the agent answers.
type gap struct {
	GapID    string     `json:"gap_id"` // skill_synthesis_run takes it as candidate_id
	Topic    string     `json:"topic"`
	Keys     []string   `json:"keys"`
	Times    int        `json:"times"`
	LastAt   time.Time  `json:"last_at"`
	Evidence []evidence `json:"evidence"`
	Skill    *answer    `json:"skill,omitzero"`       // the nearest of the agent's
	Suggest  []found    `json:"suggestions,omitzero"` // to install or adopt
}

type answer struct {
	SkillID   string  `json:"skill_id"`
	SkillName string  `json:"skill_name"`
	Score     float64 `json:"score"`
}

// evidence is one thing that happened. Its kinds: search (a skill_search
// without an answer), feedback (negative or a correction), memory (of a
// failure), calls (a tool that keeps failing).
type evidence struct {
	Kind  string    `json:"kind"`
	ID    string    `json:"id"`
	Text  string    `json:"text"`
	Times int       `json:"times"`
	At    time.Time `json:"at"`
}

// gaps gathers what went wrong or was looked for, joins what is about one
// topic, and leaves out what a skill of the agent answers. It asks no model and
// no hub: suggestions come from what hubs had when they were last looked at.
func (k skills) gaps(ctx context.Context, who caller.Caller, a gapsArgs) (gapsResult, error) {
	agent, err := k.reach(ctx, who, a.AgentID)
	if err != nil {
		return gapsResult{}, err
	}
	r := gapsResult{AgentID: agent, Gaps: []gap{}, Looked: map[string]int{"search": 0, "feedback": 0, "memory": 0, "calls": 0}}
	found, err := k.evidence(ctx, agent, cmp.Or(a.Days, gapDays))
	if err != nil {
		return r, err
	}
	for _, e := range found {
		r.Looked[e.Kind]++
	}
	all := topics(agent, found)
	known, err := k.knownAbout(ctx, agent, all)
	if err != nil {
		return r, err
	}
	for _, g := range all {
		if len(r.Gaps) == mostGaps {
			break
		}
		g.answer(known)
		if a.Answered || g.Skill == nil || g.Skill.Score < covers {
			r.Gaps = append(r.Gaps, g)
		}
		if len(g.Suggest) > 0 {
			r.Notice = notice
		}
	}
	return r, nil
}

func (k skills) evidence(ctx context.Context, agent string, days int) ([]evidence, error) {
	all, err := postgres.All[evidence](ctx, k.db, gapsSQL, pgx.StrictNamedArgs{"agent": agent, "since": k.now().AddDate(0, 0, -days), "limit": perSource})
	if err != nil {
		return nil, fmt.Errorf("gather evidence: %w", err)
	}
	return all, nil
}

// topics joins evidence that shares its keys, most frequent topics first.
func topics(agent string, found []evidence) []gap {
	var all []gap
	var keys [][]string
	for _, e := range found {
		own := terms.Keys(e.Text)
		if len(own) == 0 {
			continue
		}
		at := slices.IndexFunc(keys, func(other []string) bool { return about(own, other) })
		if at < 0 {
			at = len(all)
			all, keys = append(all, gap{GapID: hashed("g", agent, e.Kind, e.ID), Topic: e.Text}), append(keys, own)
		}
		g := &all[at]
		g.Times += e.Times
		if e.At.After(g.LastAt) {
			g.LastAt = e.At
		}
		if len(g.Evidence) < mostEvidence {
			g.Evidence = append(g.Evidence, e)
		}
	}
	for i := range all {
		all[i].Topic, all[i].Keys = scan.Plain(all[i].Topic, 200), keys[i][:min(len(keys[i]), 12)]
	}
	slices.SortStableFunc(all, func(x, y gap) int { return cmp.Or(cmp.Compare(y.Times, x.Times), y.LastAt.Compare(x.LastAt)) })
	return all
}

// about reports whether two texts are about one thing: half of the shorter
// one's keys, and at least two, are the other's.
func about(a, b []string) bool {
	shared := 0
	for _, key := range a {
		if slices.Contains(b, key) {
			shared++
		}
	}
	least := min(len(a), len(b))
	return shared >= leastShared && 2*shared >= least || least == 1 && shared == 1 && len(a) == len(b)
}

// hashed is an id that the same things always get.
func hashed(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return kind + "_" + hex.EncodeToString(sum[:8])
}

// known are the skills that topics may be answered by: the agent's own, and
// those to be had.
type known struct {
	list    []found
	entries []entry // with the terms of all topics
}

// knownAbout reads them once for all topics.
func (k skills) knownAbout(ctx context.Context, agent string, all []gap) (known, error) {
	var wanted []string
	for _, g := range all {
		wanted = append(wanted, asked(terms.Query(g.Topic))...)
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	if len(wanted) == 0 {
		return known{}, nil
	}
	list, entries, err := k.local(ctx, agent, wanted, places{own: true, shared: true})
	if err != nil {
		return known{}, err
	}
	for _, h := range k.hubs {
		kept := k.kept(ctx, h)
		for _, s := range kept.Skills {
			if e := (entry{head: termsOf(s.Name+"\n"+s.Description, wanted)}); len(e.head) > 0 {
				entries = append(entries, e)
				list = append(list, found{SkillName: s.Name, Description: scan.Plain(s.Description, 300), Scope: "hub", Hub: h.name, Path: s.Path, Ref: kept.Commit})
			}
		}
	}
	return known{list, entries}, nil
}

// answer finds the skills on the topic among those known.
func (g *gap) answer(all known) {
	needs := terms.Query(g.Topic)
	wanted := asked(needs)
	var list []found
	var entries []entry
	for i, e := range all.entries {
		if e = e.only(wanted); len(e.head)+len(e.body) > 0 {
			list, entries = append(list, all.list[i]), append(entries, e)
		}
	}
	for i, score := range scores(needs, entries) {
		f := list[i]
		f.Score = round(score)
		switch {
		case f.Scope == "agent" || f.Scope == "global":
			if g.Skill == nil || score > g.Skill.Score {
				g.Skill = &answer{f.SkillID, f.SkillName, f.Score}
			}
		case score >= suggests:
			g.Suggest = append(g.Suggest, f)
		}
	}
	slices.SortStableFunc(g.Suggest, func(x, y found) int { return cmp.Compare(y.Score, x.Score) })
	g.Suggest = g.Suggest[:min(len(g.Suggest), 3)]
}
