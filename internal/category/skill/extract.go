package skill

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/skill/store"
	"pawgate/internal/terms"
)

//go:embed extract.sql
var extractSQL string

// Bounds of the sections of one skill.
const (
	maxSections = 60
	maxSection  = 16 << 10 // bytes
)

type extractArgs struct {
	SkillName string `json:"skill_name" doc:"-" maxlen:"64"`
	AgentID   string `json:"agent_id,omitempty" doc:"Default: you" maxlen:"64"`
}

type extractResult struct {
	SkillID   string    `json:"skill_id"`
	SkillName string    `json:"skill_name"`
	Version   int       `json:"version"`
	Sections  []section `json:"sections"`
	Omitted   int       `json:"omitted,omitzero"` // sections beyond the most that are kept
}

// section is a part of a skill under one heading.
type section struct {
	SectionID string `json:"section_id"`
	Heading   string `json:"heading"` // with those above it
	Bytes     int    `json:"bytes"`
	text      string
}

// extract cuts the instructions of a skill, and the references in Markdown, at
// their headings. Sections of an earlier version stay until this one's are
// kept, then they go.
func (k skills) extract(ctx context.Context, who caller.Caller, a extractArgs) (extractResult, error) {
	agent, err := k.reach(ctx, who, a.AgentID)
	if err != nil {
		return extractResult{}, err
	}
	s, err := k.mine(ctx, agent, a.SkillName)
	if err != nil {
		return extractResult{}, err
	}
	if s.Scope == store.Global {
		if err := needOperator(who, "a global skill"); err != nil {
			return extractResult{}, err
		}
	}
	used, _, err := store.Use(ctx, k.db, s, zero)
	if err != nil {
		return extractResult{}, err
	}
	r := extractResult{SkillID: s.ID, SkillName: s.Name, Version: s.Version, Sections: sections(used.Body)}
	for _, f := range used.Files {
		if strings.HasPrefix(f.Path, "references/") && strings.HasSuffix(f.Path, ".md") {
			r.Sections = append(r.Sections, sections(string(f.Content))...)
		}
	}
	if len(r.Sections) == 0 {
		return extractResult{}, fault.New(fault.NotFound, "%s has no instructions to cut", s.Name)
	}
	r.Omitted = max(0, len(r.Sections)-maxSections)
	r.Sections = r.Sections[:len(r.Sections)-r.Omitted]
	return r, k.keepSections(ctx, &r)
}

func (k skills) keepSections(ctx context.Context, r *extractResult) error {
	var ids, headings, texts, words []string
	for i := range r.Sections {
		s := &r.Sections[i]
		s.SectionID, s.Bytes = store.NewID("b"), len(s.text)
		bag := terms.Document(s.Heading + "\n" + s.text)
		all := make([]string, len(bag.Terms))
		for j, t := range bag.Terms {
			all[j] = t.Text
		}
		ids, headings, texts, words = append(ids, s.SectionID), append(headings, s.Heading), append(texts, s.text), append(words, strings.Join(all, "\x1f"))
	}
	rows, err := postgres.All[struct {
		Position int
		ID       string
	}](ctx, k.db, extractSQL, pgx.StrictNamedArgs{"id": r.SkillID, "version": r.Version, "ids": ids, "headings": headings, "texts": texts, "words": words})
	if err != nil {
		return fmt.Errorf("keep sections: %w", err)
	}
	for _, row := range rows {
		r.Sections[row.Position-1].SectionID = row.ID
	}
	return nil
}

// sections cuts Markdown at its headings, those in fences left alone.
func sections(text string) []section {
	var all []section
	var path [7]string
	heading, body, fenced := "", strings.Builder{}, ""
	flush := func() {
		if t := strings.TrimSpace(body.String()); t != "" {
			all = append(all, section{Heading: heading, text: cut(t, maxSection)})
		}
		body.Reset()
	}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		for _, mark := range []string{"```", "~~~"} {
			if strings.HasPrefix(trimmed, mark) && (fenced == "" || fenced == mark) {
				fenced = map[bool]string{true: mark, false: ""}[fenced == ""]
			}
		}
		level := len(trimmed) - len(strings.TrimLeft(trimmed, "#"))
		if fenced != "" || level == 0 || level > 6 || !strings.HasPrefix(trimmed[level:], " ") {
			body.WriteString(line)
			continue
		}
		flush()
		path[level] = strings.TrimSpace(strings.TrimRight(trimmed[level:], "# "))
		clear(path[level+1:])
		heading = ""
		for _, p := range path {
			if p != "" {
				heading += " › " + p
			}
		}
		heading = cut(strings.TrimPrefix(heading, " › "), 300)
	}
	flush()
	return all
}
