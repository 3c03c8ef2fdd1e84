package skill

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/skill/store"
)

//go:embed list.sql
var listSQL string

type listArgs struct {
	AgentID   string `json:"agent_id,omitempty" doc:"Default: you" maxlen:"64"`
	SkillName string `json:"skill_name,omitempty" doc:"Read this one" maxlen:"64"`
	File      string `json:"file,omitempty" doc:"Of that skill" maxlen:"200"`
	Archived  bool   `json:"archived,omitempty" doc:"Those too"`
	After     string `json:"after,omitempty" doc:"-" maxlen:"64"`
	Limit     int    `json:"limit,omitempty" doc:"Default 100" min:"1" max:"500"`
}

func (a listArgs) Validate() error {
	if a.File != "" && a.SkillName == "" {
		return fault.Invalid("file", "file needs skill_name, the skill that has it")
	}
	return nil
}

type listResult struct {
	AgentID   string   `json:"agent_id"`
	Skills    []listed `json:"skills,omitempty"`
	NextAfter string   `json:"next_after,omitzero"`
	Skill     *detail  `json:"skill,omitzero"`
}

// listed is a skill without its instructions.
type listed struct {
	SkillID     string     `json:"skill_id"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Scope       string     `json:"scope"`
	Version     int        `json:"version"`
	State       string     `json:"state"`
	Pinned      bool       `json:"pinned"`
	Overridden  bool       `json:"overridden"` // global, and the agent has its own of that name
	Risk        string     `json:"risk"`
	Uses        int64      `json:"uses"`
	LastUsedAt  *time.Time `json:"last_used_at,omitzero"`
}

// detail is a skill to work by.
type detail struct {
	SkillID       string     `json:"skill_id"`
	Name          string     `json:"name"`
	Description   string     `json:"description"`
	Scope         string     `json:"scope"`
	Version       int        `json:"version"`
	State         string     `json:"state"`
	Risk          string     `json:"risk"`
	ContentSHA256 string     `json:"content_sha256"`
	AllowedTools  []string   `json:"allowed_tools,omitempty"`
	Compatibility string     `json:"compatibility,omitzero"`
	Instructions  string     `json:"instructions,omitzero"`
	Files         []fileInfo `json:"files,omitempty"`
	File          *content   `json:"file,omitzero"`
}

type fileInfo struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
}

type content struct {
	Path   string `json:"path"`
	Text   string `json:"text,omitzero"`
	Base64 string `json:"base64,omitzero"` // of a file that is no text
}

// list shows what an agent works with, or reads one skill: checked again, as
// before every use.
func (k skills) list(ctx context.Context, who caller.Caller, a listArgs) (listResult, error) {
	agent, err := k.reach(ctx, who, a.AgentID)
	if err != nil {
		return listResult{}, err
	}
	if a.SkillName != "" {
		d, err := k.read(ctx, agent, a.SkillName, a.File)
		return listResult{AgentID: agent, Skill: d}, err
	}
	limit := cmp.Or(a.Limit, 100)
	rows, err := postgres.All[listed](ctx, k.db, listSQL, pgx.StrictNamedArgs{"agent": agent, "archived": a.Archived, "after": a.After, "limit": limit + 1})
	if err != nil {
		return listResult{}, fmt.Errorf("list skills: %w", err)
	}
	r := listResult{AgentID: agent, Skills: rows}
	if len(rows) > limit {
		r.Skills, r.NextAfter = rows[:limit], rows[limit-1].SkillID
	}
	return r, nil
}

func (k skills) read(ctx context.Context, agent, name, file string) (*detail, error) {
	s, err := k.mine(ctx, agent, name)
	if err != nil {
		return nil, err
	}
	used, v, err := store.Use(ctx, k.db, s, k.now())
	if err != nil {
		return nil, err
	}
	d := &detail{SkillID: s.ID, Name: s.Name, Description: used.Description, Scope: s.Scope, Version: s.Version, State: s.State, Risk: v.Risk,
		ContentSHA256: fmt.Sprintf("%x", s.Digest)}
	if file != "" {
		f := used.Find(file)
		if f == nil {
			return nil, fault.New(fault.NotFound, "the skill %s has no file %s; skill_list with skill_name alone lists its files", s.Name, file)
		}
		d.File = &content{Path: f.Path}
		if utf8.Valid(f.Content) {
			d.File.Text = string(f.Content)
		} else {
			d.File.Base64 = base64.StdEncoding.EncodeToString(f.Content)
		}
		return d, nil
	}
	d.AllowedTools, d.Compatibility, d.Instructions = used.AllowedTools, used.Compatibility, used.Body
	for _, f := range used.Files {
		d.Files = append(d.Files, fileInfo{f.Path, len(f.Content)})
	}
	return d, nil
}
