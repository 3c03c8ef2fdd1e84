package operator

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/skill"
	"pawgate/internal/skill/scan"
	"pawgate/internal/skill/store"
	"pawgate/internal/tool"
)

var (
	//go:embed skill_list.sql
	skillListSQL string
	//go:embed skill_remove.sql
	skillRemoveSQL string
)

// skillCommands bring skills in from folders and out to folders, one a command,
// as a zip archive: the command line has the folders, and a function has none.
func (s *session) skillCommands() []tool.Tool {
	return []tool.Tool{
		tool.Read("skill_list", "List the skills that an agent works by: its own, and every agent's.", s.skillList),
		tool.Write("skill_import", "Take over skills from folders or zip archives, scanned like any skill, and say what was changed.", s.skillImport, tool.Idempotent, tool.Secret("archive")),
		tool.Read("skill_export", "Write the skills that an agent works by into folders, NAME/SKILL.md each.", s.skillExport),
		tool.Destroy("skill_remove", "Remove a skill with all its versions.", s.skillRemove, tool.Idempotent),
	}
}

type skillListArgs struct {
	AgentID  string `json:"agent_id" doc:"The agent" maxlen:"64"`
	Archived bool   `json:"archived,omitempty" doc:"Those put away too"`
	After    string `json:"after,omitempty" doc:"The name after which the list goes on" maxlen:"256"`
}

// SkillList is a page of what an agent works by.
type SkillList struct {
	Skills    []SkillRow `json:"skills"`
	NextAfter string     `json:"next_after,omitzero"`
}

// SkillRow is one skill, in the version in use.
type SkillRow struct {
	SkillName     string `json:"skill_name"`
	Scope         string `json:"scope"`
	Version       int    `json:"version"`
	State         string `json:"state"`
	Pinned        bool   `json:"pinned"`
	Risk          string `json:"risk"`
	Usable        bool   `json:"usable"` // the scan passed, or somebody took the risk
	Bytes         int    `json:"bytes"`
	Lineage       string `json:"lineage"` // where it comes from
	ContentSHA256 string `json:"content_sha256"`
}

// skillPage is how many skills one answer lists.
const skillPage = 500

func (s *session) skillList(ctx context.Context, _ caller.Caller, a skillListArgs) (SkillList, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return SkillList{}, err
	}
	rows, err := postgres.All[SkillRow](ctx, s.db, skillListSQL, pgx.StrictNamedArgs{"agent": a.AgentID, "archived": a.Archived, "after": a.After, "limit": skillPage + 1})
	if err != nil {
		return SkillList{}, fmt.Errorf("list skills: %w", err)
	}
	list := SkillList{Skills: rows}
	if len(rows) > skillPage {
		list.Skills, list.NextAfter = rows[:skillPage], rows[skillPage-1].SkillName
	}
	return list, nil
}

type skillImportArgs struct {
	AgentID string `json:"agent_id" doc:"Whose skills they become" maxlen:"64"`
	Archive string `json:"archive" doc:"Zip archive of one skill, in base64"`
	Folder  string `json:"folder,omitempty" doc:"Name of the folder it was in" maxlen:"256"`
	Global  bool   `json:"global,omitempty" doc:"Every agent's, not AGENT's alone"`
	Update  bool   `json:"update,omitempty" doc:"Replace an older one that was imported"`
	DryRun  bool   `json:"dry_run,omitempty" doc:"Check everything, keep nothing"`
	Accept  string `json:"accept_risk,omitempty" doc:"content_sha256 of a skill that the scan did not pass and that you take all the same" maxlen:"64"`
}

// SkillImported is what became of one skill.
type SkillImported struct {
	SkillName     string         `json:"skill_name"`
	SkillID       string         `json:"skill_id,omitzero"`
	Version       int            `json:"version,omitzero"`
	Outcome       string         `json:"outcome"` // installed, updated or unchanged
	Risk          string         `json:"risk"`
	ContentSHA256 string         `json:"content_sha256"`
	Findings      []scan.Finding `json:"findings,omitempty"`
	Notes         []string       `json:"notes,omitempty"` // what was changed to fit the format
	Advice        skill.Problems `json:"advice,omitempty"`
	Changes       []skill.Change `json:"changes,omitempty"`
}

// badSkill is the reason of a skill that breaks the format, as skill_hub_install
// has it.
const badSkill fault.Reason = "bad_skill"

// importedLineage is that of what an operator brought: only the next import
// makes a new version of it.
const importedLineage = "import"

// skillImport keeps a skill as skill_hub_install does: held to the format, and
// scanned, whole or not at all. The archive is unpacked in memory, and what is
// scanned is what is kept.
func (s *session) skillImport(ctx context.Context, who caller.Caller, a skillImportArgs) (SkillImported, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return SkillImported{}, err
	}
	raw, err := base64.StdEncoding.DecodeString(a.Archive)
	if err != nil {
		return SkillImported{}, fault.Invalid("archive", "archive must be a zip archive in base64")
	}
	folder, files, problems := skill.ReadZip(bytes.NewReader(raw), int64(len(raw)))
	if len(problems.Broken()) > 0 {
		return SkillImported{}, broken(a.Folder, problems)
	}
	if a.Folder != "" {
		folder = a.Folder
	}
	name, files, notes := skill.Adapt(folder, files)
	parsed, problems := skill.Parse(name, files)
	if len(problems.Broken()) > 0 {
		return SkillImported{}, broken(folder, problems)
	}
	d := store.Draft{Scope: store.Agent, Agent: a.AgentID, Skill: parsed, Lineage: importedLineage, State: "active", By: who.Credential,
		Update: a.Update, Accept: a.Accept, Now: s.Now()}
	if a.Global {
		d.Scope, d.Agent = store.Global, ""
	}
	keep := store.Keep
	if a.DryRun {
		keep = store.Try
	}
	kept, err := keep(ctx, s.db, d)
	if err != nil {
		return SkillImported{}, err
	}
	r := SkillImported{SkillName: parsed.Name, SkillID: kept.ID, Version: kept.Version, Outcome: kept.Outcome, Risk: kept.Verdict.Risk,
		ContentSHA256: kept.Digest, Notes: notes, Advice: problems, Changes: kept.Changes}
	if a.DryRun {
		r.SkillID = ""
	}
	for _, f := range kept.Verdict.Findings {
		if f.Severity.AtLeast(scan.Low) {
			r.Findings = append(r.Findings, f)
		}
	}
	return r, nil
}

func broken(folder string, problems skill.Problems) error {
	return fault.New(badSkill, "%s breaks the format of skills: %s", printableName(folder), problems.Error()).With("problems", problems.Broken())
}

// printableName is a folder's name, or what stands for one.
func printableName(folder string) string {
	if folder == "" {
		return "the archive"
	}
	return fmt.Sprintf("%q", short(folder))
}

type skillExportArgs struct {
	AgentID   string `json:"agent_id" doc:"The agent" maxlen:"64"`
	SkillName string `json:"skill_name" doc:"Which skill" maxlen:"256"`
	Scope     string `json:"scope,omitempty" doc:"agent: its own; global: every agent's" enum:"agent,global"`
	Unsafe    bool   `json:"unsafe,omitempty" doc:"Also what the scan does not pass"`
}

// SkillExported is one skill with its files.
type SkillExported struct {
	SkillName     string `json:"skill_name"`
	Scope         string `json:"scope"`
	Version       int    `json:"version"`
	Risk          string `json:"risk"`
	ContentSHA256 string `json:"content_sha256"`
	Archive       string `json:"archive"` // zip, in base64
}

// skillExport gives a skill's files as they were judged: by the rules of today,
// unless even what does not pass is wanted.
func (s *session) skillExport(ctx context.Context, _ caller.Caller, a skillExportArgs) (SkillExported, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return SkillExported{}, err
	}
	found, err := s.skillOf(ctx, a.AgentID, a.Scope, a.SkillName)
	if err != nil {
		return SkillExported{}, err
	}
	risk := found.Risk
	var files []skill.File
	if a.Unsafe {
		files, err = store.Read(ctx, s.db, found)
	} else {
		used, v, useErr := store.Use(ctx, s.db, found, time.Time{})
		files, risk, err = used.Files, v.Risk, useErr
	}
	if err != nil {
		return SkillExported{}, err
	}
	archive, err := skill.WriteZip(files)
	if err != nil {
		return SkillExported{}, fmt.Errorf("pack skill: %w", err)
	}
	return SkillExported{SkillName: found.Name, Scope: found.Scope, Version: found.Version, Risk: risk,
		ContentSHA256: fmt.Sprintf("%x", found.Digest), Archive: base64.StdEncoding.EncodeToString(archive)}, nil
}

// skillOf is a skill of the agent's, else, unless a scope is named, the global
// one of the name.
func (s *session) skillOf(ctx context.Context, agent, scope, name string) (store.Stored, error) {
	if scope != store.Global {
		found, err := store.Find(ctx, s.db, store.Agent, agent, name)
		if f, ok := fault.Of(err); scope == store.Agent || !ok || f.Reason != fault.NotFound {
			return found, err
		}
	}
	found, err := store.Find(ctx, s.db, store.Global, "", name)
	if f, ok := fault.Of(err); ok && f.Reason == fault.NotFound {
		return found, fault.New(fault.NotFound, "%s has no skill %s; pawgate skill list %s shows those there are", agent, printableName(name), agent)
	}
	return found, err
}

type skillRemoveArgs struct {
	AgentID   string `json:"agent_id" doc:"Whose it is" maxlen:"64"`
	SkillName string `json:"skill_name" doc:"Which skill" maxlen:"256"`
	Scope     string `json:"scope,omitempty" doc:"agent if left out; shared: what agents may adopt; global: every agent's" enum:"agent,shared,global"`
}

type skillRemoved struct {
	SkillName string `json:"skill_name"`
	SkillID   string `json:"skill_id"`
}

// skillRemove takes a skill away for good, so that a bad one that was shared
// is not adopted any more. Copies that agents have are theirs.
func (s *session) skillRemove(ctx context.Context, _ caller.Caller, a skillRemoveArgs) (skillRemoved, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return skillRemoved{}, err
	}
	scope, owner := store.Agent, a.AgentID
	if a.Scope != "" && a.Scope != store.Agent {
		scope, owner = a.Scope, ""
	}
	row, err := postgres.One[struct{ SkillID string }](ctx, s.db, skillRemoveSQL, pgx.StrictNamedArgs{"scope": scope, "agent": owner, "name": strings.TrimSpace(a.SkillName)})
	if errors.Is(err, pgx.ErrNoRows) {
		return skillRemoved{}, fault.New(fault.NotFound, "there is no such skill %s; pawgate skill list %s shows those there are", printableName(a.SkillName), a.AgentID)
	}
	if err != nil {
		return skillRemoved{}, fmt.Errorf("remove skill: %w", err)
	}
	return skillRemoved{a.SkillName, row.SkillID}, nil
}
