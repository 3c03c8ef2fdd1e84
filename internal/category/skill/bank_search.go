package skill

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	format "pawgate/internal/skill"
	"pawgate/internal/skill/store"
	"pawgate/internal/terms"
)

//go:embed bank_search.sql
var bankSearchSQL string

type bankSearchArgs struct {
	Query string `json:"query" doc:"What is to be done" maxlen:"2000"`
	Limit int    `json:"limit,omitempty" doc:"Default 5" min:"1" max:"100"`
}

type bankResult struct {
	Results []banked `json:"results"`
}

// banked is a skill, or a section of one that skill_extract cut.
type banked struct {
	SkillID   string `json:"skill_id"` // what skill_bank_feedback takes
	SectionID string `json:"section_id,omitzero"`
	SkillName string `json:"skill_name"`
	Scope     string `json:"scope"`
	Version   int    `json:"version"`
	Heading   string `json:"heading,omitzero"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitzero"`
	trials
	// Score is the relevance from 0 to 1, times what the trials say: 1 without
	// any, up to 1.5 for success alone, down to 0.5 for failure alone.
	Score     float64 `json:"score"`
	Relevance float64 `json:"relevance"`
}

// excerpt is how much of a text is shown, in characters.
const excerpt = 2000

type bankRow struct {
	SkillID     string
	SectionID   string
	SkillName   string
	Scope       string
	Version     int
	Heading     string
	Description string
	Text        string
	Truncated   bool
	Trials      int
	Good        int
	Head        []string
	Body        []string
}

// bankSearch ranks instructions by what they say and by how working by them
// went.
func (k skills) bankSearch(ctx context.Context, who caller.Caller, a bankSearchArgs) (bankResult, error) {
	needs := terms.Query(a.Query)
	if len(needs) == 0 {
		return bankResult{}, fault.Invalid("query", "query has no word to look for")
	}
	rows, err := postgres.All[bankRow](ctx, k.db, bankSearchSQL, pgx.StrictNamedArgs{"agent": who.Agent, "terms": asked(needs), "limit": mostRanked, "excerpt": excerpt})
	if err != nil {
		return bankResult{}, fmt.Errorf("search bank: %w", err)
	}
	entries := make([]entry, len(rows))
	for i, r := range rows {
		entries[i] = entry{r.Head, r.Body}
	}
	result := bankResult{Results: []banked{}}
	for i, relevance := range scores(needs, entries) {
		if relevance < leastScore {
			continue
		}
		r := rows[i]
		// Beta(1, 1): a trial or two moves the rank a little, many move it far.
		mean := float64(1+r.Good) / float64(2+r.Trials)
		result.Results = append(result.Results, banked{SkillID: r.SkillID, SectionID: r.SectionID, SkillName: r.SkillName, Scope: r.Scope, Version: r.Version,
			Heading: r.Heading, Text: r.Text, Truncated: r.Truncated, trials: newTrials(r.Trials, r.Good),
			Score: round(relevance * (0.5 + mean)), Relevance: round(relevance)})
	}
	slices.SortStableFunc(result.Results, func(x, y banked) int { return cmp.Compare(y.Score, x.Score) })
	result.Results, err = k.fit(ctx, result.Results, cmp.Or(a.Limit, 5))
	return result, err
}

// checkedAtOnce is how many skills are in memory at a time.
const checkedAtOnce = 8

// fit gives the first results, at most so many, whose skills may be worked by
// and whose text is what was judged: checked as before every use.
func (k skills) fit(ctx context.Context, all []banked, most int) ([]banked, error) {
	kept := []banked{}
	for len(all) > 0 && len(kept) < most {
		var ids []string
		n := 0
		for ; n < len(all); n++ {
			if slices.Contains(ids, all[n].SkillID) {
				continue
			}
			if len(ids) == checkedAtOnce || n >= most-len(kept) {
				break
			}
			ids = append(ids, all[n].SkillID)
		}
		checked, err := store.Checked(ctx, k.db, ids)
		if err != nil {
			return nil, fmt.Errorf("check results: %w", err)
		}
		for _, r := range all[:n] {
			if s, ok := checked[r.SkillID]; ok && r.from(s) && len(kept) < most {
				kept = append(kept, r)
			}
		}
		all = all[n:]
	}
	return kept, nil
}

// from reports whether a result is a part of the skill.
func (r banked) from(s format.Skill) bool {
	if r.SectionID == "" {
		return strings.HasPrefix(s.Description+"\n\n"+s.Body, r.Text)
	}
	return strings.Contains(s.Body, r.Text) || slices.ContainsFunc(s.Files, func(f format.File) bool { return strings.Contains(string(f.Content), r.Text) })
}

func round(f float64) float64 { return math.Round(f*1000) / 1000 }
