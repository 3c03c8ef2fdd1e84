package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pawgate/internal/fault"
	"pawgate/internal/operator"
	"pawgate/internal/skill/store"
	"pawgate/internal/tool"
)

func skillRows() []row {
	paths := operand{word: "PATH", argument: "paths", many: true}
	dir := operand{word: "DIR", argument: "dir"}
	names := operand{word: "NAME", argument: "names", optional: true, many: true}
	name := operand{word: "NAME", argument: "skill_name"}
	return []row{
		{name: "skill list", operands: []operand{anAgent}, examples: []string{"skill list clerk", "--stack prod skill list clerk --archived --json"},
			view: view{list: "skills", empty: "no skills", columns: []column{
				{"SKILL", "skill_name"}, {"SCOPE", "scope"}, {"VERSION", "version"}, {"STATE", "state"}, {"PINNED", "pinned"}, {"RISK", "risk"}, {"FROM", "lineage"},
			}}},
		{name: "skill import", operands: []operand{anAgent, paths}, run: importSkills, filled: []string{"archive", "folder"},
			local:    []tool.Property{localTexts("paths", "A skill's folder or zip archive, a folder of such folders, or DuDuClaw's NAME.md files")},
			examples: []string{"skill import clerk ~/.claude/skills --dry-run", "skill import clerk ./pdf-forms mail.zip --update", "--stack prod skill import clerk ~/.duduclaw/skills --global"}},
		{name: "skill export", operands: []operand{anAgent, dir, names}, run: exportSkills, filled: []string{"skill_name", "scope"},
			local: []tool.Property{
				localText("dir", "Where to: each skill gets the folder DIR/NAME"), localTexts("names", "Which skills; all if left out"),
				{Name: "replace", Schema: &tool.Schema{Types: []string{"boolean"}, Description: "Replace folders that are there and differ"}},
			},
			examples: []string{"skill export clerk ~/.claude/skills", "skill export clerk ./out pdf-forms --replace"}},
		{name: "skill remove", operands: []operand{anAgent, name}, examples: []string{"skill remove clerk pdf-forms", "skill remove clerk pdf-forms --scope shared"}},
	}
}

func localTexts(name, about string) tool.Property {
	return tool.Property{Name: name, Schema: &tool.Schema{Types: []string{"array"}, Items: &tool.Schema{Types: []string{"string"}}, Description: about}}
}

// moved is what became of one skill on its way in or out.
type moved struct {
	SkillName string `json:"skill_name"`
	Path      string `json:"path"`
	Outcome   string `json:"outcome"` // of the command; written or unchanged on the way out; or refused
	Risk      string `json:"risk,omitzero"`
	Error     string `json:"error,omitzero"`
	Reason    string `json:"reason,omitzero"`
	// Findings are why the scan refused it.
	Findings any `json:"findings,omitzero"`
	// Detail is what the import said.
	Detail *operator.SkillImported `json:"detail,omitzero"`
}

// movedResult is what a command says at its end.
type movedResult struct {
	Skills  []moved `json:"skills"`
	Done    int     `json:"done"`
	Refused int     `json:"refused"`
	DryRun  bool    `json:"dry_run,omitzero"`
}

var movedView = view{list: "skills", empty: "no skills", columns: []column{
	{"SKILL", "skill_name"}, {"OUTCOME", "outcome"}, {"RISK", "risk"}, {"PATH", "path"}, {"WHY", "error"},
}}

// errRefused makes the exit status 1: the table says which and why.
var errRefused = errors.New("not every skill was taken; see above for which and why")

// finish shows the result, and fails when something was refused.
func (r movedResult) finish(a *app, p parsed) error {
	for _, m := range r.Skills {
		if m.Outcome == refusedOutcome {
			r.Refused++
		} else {
			r.Done++
		}
	}
	encoded, err := tool.Marshal(r)
	if err != nil {
		return fmt.Errorf("show result: %w", err)
	}
	if err := a.show(encoded, p.json, movedView); err != nil {
		return err
	}
	if r.Refused > 0 {
		return errRefused
	}
	return nil
}

const refusedOutcome = "refused"

// refusals are the reasons for which one skill is not taken and the next may be.
var refusals = []fault.Reason{"bad_skill", store.Unsafe, store.Tampered, store.Pinned, store.OverQuota, fault.Conflict, fault.TooLarge}

// refuse words an error of one skill. Anything but a refusal ends the command.
func (m *moved) refuse(err error) error {
	if invalid, ok := fault.InvalidOf(err); ok {
		m.Outcome, m.Error = refusedOutcome, invalid.Error()
		return nil
	}
	f, ok := fault.Of(err)
	if !ok || !slices.Contains(refusals, f.Reason) {
		return err
	}
	m.Outcome, m.Error, m.Reason = refusedOutcome, strings.ReplaceAll(f.Message, "update true", "--update"), string(f.Reason)
	if risk, ok := f.Fields["risk"].(string); ok {
		m.Risk, m.Findings = risk, f.Fields["findings"]
	}
	if digest, ok := f.Fields["content_sha256"].(string); ok && f.Reason == store.Unsafe {
		m.Error += "; to take it all the same, look at it with pawgate skill scan and give --accept-risk " + digest
	}
	return nil
}
