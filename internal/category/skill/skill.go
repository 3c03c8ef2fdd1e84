// Package skill holds the tools for skills: folders of instructions, scripts
// and references that an agent works by (agentskills.io).
//
// A skill is an agent's own, shared (to be adopted), or global (every agent's).
// An agent works with its own and the global ones, its own of a name before the
// global one. It sees and changes its own skills and those of agents that
// report to it; only an operator's credential touches global ones.
//
// What comes from a hub is pinned to a commit, checked against the names of its
// bytes, held to the format and looked through (package scan) before a row of
// it is kept. It never takes the place of another skill. Whoever works by a
// skill gets exactly the bytes that were judged, or a fault (package store).
//
// What the agent could learn is computed from its record: calls, feedback,
// memories, searches without an answer. Only where a skill is to be written is
// a model asked, and where none is configured the tool says so.
//
// The tools never run a skill's scripts and never write a file.
package skill

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/client/chat"
	"pawgate/internal/client/github"
	"pawgate/internal/postgres"
	"pawgate/internal/safehttp"
	"pawgate/internal/tool"
)

// Config is what the category reads from its environment.
type Config struct {
	postgres.Config
	Settings
}

// Settings are what an operator decides.
type Settings struct {
	GitHub github.Config
	Hubs   []string `envconfig:"SKILL_HUBS" desc:"hubs of skills on GitHub, as name=owner/repo, separated by commas; unset: anthropic=anthropics/skills"`
	Chat   chat.Config
}

// Open is the category over the configured database. It connects to nothing.
func Open(ctx context.Context, cfg Config) (tool.Category, error) {
	if err := cfg.Validate(); err != nil {
		return tool.Category{}, fmt.Errorf("open skill: %w", err)
	}
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open skill: %w", err)
	}
	c := New(db, cfg.Settings, time.Now)
	c.Close = db.Close
	return c, nil
}

// Validate says which setting is wrong.
func (s Settings) Validate() error {
	if _, err := s.parseHubs(); err != nil {
		return err
	}
	_, err := github.New(s.GitHub, time.Now)
	return err
}

// Model writes texts: chat.Model.
type Model interface {
	Complete(ctx context.Context, r chat.Request) (chat.Completion, error)
	Provider() string
}

// New is the category over an open database. It does no I/O. The options
// replace the network in tests.
func New(db postgres.DB, s Settings, now func() time.Time, options ...safehttp.Option) tool.Category {
	var model Model
	if m, err := chat.New(s.Chat); err == nil && (s.Chat.URL != "" || s.Chat.Key != "") {
		model = m
	}
	return NewWith(db, s, model, now, options...)
}

// NewWith is New with a model; nil is none.
func NewWith(db postgres.DB, s Settings, model Model, now func() time.Time, options ...safehttp.Option) tool.Category {
	k := skills{db: db, now: now, model: model, modelName: s.Chat.Model}
	k.github, _ = github.New(s.GitHub, now, options...) // Validate says what is wrong; the tools say that it is not configured
	k.hubs, _ = s.parseHubs()
	return tool.Category{Name: "skill", Tools: []tool.Tool{
		tool.Read("skill_search", "Find skills by what they do: own, shared, on hubs.", k.search, tool.OpenWorld),
		tool.Read("skill_list", "List skills, or read one by its name.", k.list),
		tool.Read("skill_gaps", "Tell what an agent lacks a skill for.", k.gaps),
		tool.Read("skill_security_scan", "Look for dangers in a skill and its scripts.", k.securityScan, tool.Secret("text")),
		tool.Write("skill_graduate", "Make a proven skill every agent's.", k.graduate, tool.Idempotent, tool.NeedsScope(caller.ScopeOperator)),
		tool.Read("skill_synthesis_status", "Tell what was written from experience, and how it does.", k.synthesisStatus),
		tool.Write("skill_synthesis_run", "Find work that repeats; without dry_run, write skills for it.", k.synthesisRun, tool.OpenWorld, tool.Rate(tool.ClassExpensive)),
		tool.Write("skill_hub_install", "Install or update a skill from a hub, scanned.", k.hubInstall, tool.OpenWorld),
		tool.Write("skill_curator_status", "Show which skills are used; run puts unused ones away.", k.curatorStatus, tool.Idempotent),
		tool.Write("skill_pin", "Keep a skill as it is, or let it change again.", k.pin, tool.Idempotent),
		tool.Write("skill_extract", "Cut a skill into sections that skill_bank_search finds.", k.extract, tool.Idempotent),
		tool.Read("skill_bank_search", "Find instructions, proven ones first.", k.bankSearch),
		tool.Write("skill_bank_feedback", "Say whether working by a skill went well.", k.bankFeedback),
		tool.Read("shared_skill_list", "List the skills that agents share.", k.sharedList),
		tool.Write("shared_skill_share", "Share a skill of yours with all agents.", k.share, tool.Idempotent),
		tool.Write("shared_skill_adopt", "Take a shared skill over as one's own.", k.adopt, tool.Idempotent),
	}}
}

type skills struct {
	db        postgres.DB
	now       func() time.Time
	github    *github.Client // nil: not configured rightly
	hubs      []hub
	model     Model // nil: none
	modelName string
}

// zero is a time at which no use is counted.
var zero time.Time

// owner is the agent that an argument names, the caller if none.
func owner(who caller.Caller, agent string) string { return cmp.Or(agent, who.Agent) }
