package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"pawgate/internal/agentfile"
	"pawgate/internal/fault"
)

func agentRows() []row {
	patterns := operand{word: "PATTERN", argument: "patterns", many: true}
	return []row{
		{name: "agent create", operands: []operand{anAgent}, examples: []string{
			`agent create clerk --display-name "Clerk" --allow "memory_*,list_agents" --deny memory_store`, "--stack prod agent create clerk"}},
		{name: "agent import", operands: []operand{{word: "FILE", argument: "source", many: true}}, run: importFiles, examples: []string{
			"agent import clerk/agent.toml", "agent import agents/*/agent.toml", "agent import clerk.toml --soul clerk.md", "agent import - --replace < agent.toml"}},
		{name: "agent export", operands: []operand{anAgent}, run: export, examples: []string{"agent export clerk > agent.toml", "agent export clerk --soul > SOUL.md"}},
		{name: "agent list", examples: []string{"agent list", "agent list --all --json"},
			view: view{list: "agents", empty: "no agents; pawgate agent create makes one", columns: []column{
				{"ID", "agent_id"}, {"STATE", "state"}, {"STOPPED", "stopped"}, {"ROLE", "role"}, {"REPORTS TO", "reports_to"},
				{"ALLOWED", "allowed_tools"}, {"DENIED", "denied_tools"}, {"KEYS", "keys"}, {"LAST USED", "last_used_at"},
			}}},
		{name: "agent show", operands: []operand{anAgent}, examples: []string{"agent show clerk"}},
		{name: "agent status", operands: []operand{maybeAgent}, examples: []string{"agent status", "agent status clerk --json"},
			view: view{list: "agents", empty: "no agents; pawgate agent create makes one", columns: []column{
				{"ID", "agent_id"}, {"STATE", "state"}, {"CALLS 24H", "calls_24h"}, {"REFUSED", "refused_24h"}, {"FAILED", "failed_24h"},
				{"LAST CALL", "last_call_at"}, {"QUEUED", "queued"}, {"RUNNING", "running"}, {"DEAD 24H", "dead_24h"}, {"NEXT", "next_at"}, {"COST TODAY", "cost_today"},
				{"ASKS", "approvals_pending"}, {"LAST ERROR", "last_error"},
			}}},
		{name: "agent set", operands: []operand{anAgent}, examples: []string{
			"agent set clerk --state paused", `agent set clerk --reports-to ""`}},
		{name: "agent archive", operands: []operand{anAgent}, examples: []string{"agent archive clerk"}},
		{name: "agent restore", operands: []operand{anAgent}, examples: []string{"agent restore clerk"}},
		{name: "agent allow", operands: []operand{anAgent, patterns}, examples: []string{
			`agent allow clerk memory_search "odoo_*"`, `agent allow clerk "*" --remove`}},
		{name: "agent deny", operands: []operand{anAgent, patterns}, examples: []string{
			"agent deny clerk odoo_execute", "agent deny clerk odoo_execute --remove"}},
		{name: "agent ask", operands: []operand{anAgent, patterns}, examples: []string{
			`agent ask clerk send_message "odoo_*"`, "agent ask clerk send_message --remove"}},
		{name: "agent scoped", operands: []operand{anAgent, patterns}, examples: []string{
			"agent scoped clerk odoo_execute", "agent scoped clerk odoo_execute --remove"}},
		{name: "agent rules", operands: []operand{anAgent, {word: "FILE", argument: "source", optional: true}}, run: setRules, examples: []string{
			"agent rules clerk", "agent rules clerk rules.toml", "agent rules clerk - < rules.json", "agent rules clerk --remove 2"},
			view: view{hide: []string{"policy"}}},
		{name: "agent limits", operands: []operand{anAgent}, examples: []string{
			"agent limits clerk", "agent limits clerk --class send --burst 5 --per-minute 10", "agent limits clerk --class send --clear"},
			view: view{list: "limits", above: true, columns: []column{
				{"CLASS", "class"}, {"AT ONCE", "burst"}, {"PER MINUTE", "per_minute"}, {"OWN", "own"},
			}}},
		{name: "agent explain", operands: []operand{anAgent, {word: "TOOL", argument: "tool"}, {word: "ARGUMENTS", argument: "arguments", optional: true}}, examples: []string{
			"agent explain clerk odoo_execute", "agent explain clerk memory_store --key-id k_abcdefghij", `agent explain clerk odoo_search '{"limit":500}'`},
			view: view{list: "steps", above: true, columns: []column{
				{"STEP", "step"}, {"CHECK", "check"}, {"VERDICT", "verdict"}, {"RULE", "rule"},
			}}},
	}
}

// file is one agent.toml to import, with the SOUL.md that lies beside it.
type file struct{ name, source, soul string }

// importFiles imports one file or many. A file whose agent reports to one that
// is still to come waits for it, so their order does not matter.
func importFiles(ctx context.Context, a *app, p parsed, r row) error {
	names, _ := p.args["source"].([]string)
	files, err := readFiles(a.stdin, names)
	if err != nil {
		return err
	}
	if name, given := p.args["soul"].(string); given {
		if files[0].soul, err = namedSoul(name, len(files)); err != nil {
			return err
		}
	}
	run, leave, err := a.runner(ctx, p.stack)
	if err != nil {
		return err
	}
	defer leave()
	var failed []error
	for imported := true; imported && len(files) > 0; {
		var waiting []file
		var missing []error
		imported = false
		for _, f := range files {
			p.args["source"], p.args["soul"] = f.source, f.soul
			result, err := run(ctx, r.name, p.args)
			switch {
			case err == nil:
				imported = true
				failed = append(failed, a.showImport(f.name, result, p.json))
			case missingSuperior(err):
				waiting, missing = append(waiting, f), append(missing, fmt.Errorf("%s: %w", f.name, err))
			default:
				failed = append(failed, fmt.Errorf("%s: %s", f.name, err)) // a broken file is no wrong use of the command line
			}
		}
		if files = waiting; !imported {
			failed = append(failed, missing...)
		}
	}
	return errors.Join(failed...)
}

// readFiles reads everything before anything is imported. "-" is stdin.
func readFiles(stdin io.Reader, names []string) ([]file, error) {
	var files []file
	for _, name := range names {
		text, err := readUTF8(stdin, name)
		if err != nil {
			return nil, err
		}
		soul, err := beside(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, text, soul})
	}
	return files, nil
}

// beside reads the persona of an agent in a folder of its own, as DuDuClaw lays
// them out; empty when there is none.
func beside(name string) (string, error) {
	if filepath.Base(name) != "agent.toml" {
		return "", nil
	}
	path := filepath.Join(filepath.Dir(name), "SOUL.md")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return readUTF8(nil, path)
}

// namedSoul reads the persona that --soul names. An empty one would be taken for
// none.
func namedSoul(name string, files int) (string, error) {
	if files > 1 || name == "-" {
		return "", usagef("--soul names a file, the SOUL.md of one FILE; each of several agent.toml takes the one beside it")
	}
	text, err := readUTF8(nil, name)
	if err == nil && text == "" {
		return "", fmt.Errorf("%s is empty; leave --soul out to keep the persona as it is", name)
	}
	return text, err
}

// readUTF8 refuses what would not come out again as it went in.
func readUTF8(stdin io.Reader, name string) (string, error) {
	text, err := readText(stdin, name)
	if err == nil && !utf8.ValidString(text) {
		return "", fmt.Errorf("%s is not UTF-8; save it as UTF-8 and import it again", name)
	}
	return text, err
}

func missingSuperior(err error) bool {
	f, ok := fault.Of(err)
	return ok && f.Reason == "missing_superior"
}

// showImport tells what became of a file, and every note on it.
func (a *app) showImport(name string, result json.RawMessage, bare bool) error {
	if bare {
		return a.show(result, bare, view{})
	}
	var r struct {
		AgentID string           `json:"agent_id"`
		Created bool             `json:"created"`
		Allowed []string         `json:"allowed_tools"`
		Rules   []string         `json:"rules"`
		Notes   []agentfile.Note `json:"notes"`
		Soul    int              `json:"soul_version"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("show result: %w", err)
	}
	done := "replaced"
	if r.Created {
		done = "created"
	}
	fmt.Fprintf(a.stdout, "%s: agent %s %s, allowed_tools %s\n", printable(name), r.AgentID, done, r.Allowed)
	if r.Soul > 0 {
		fmt.Fprintf(a.stdout, "  soul version %d\n", r.Soul)
	}
	for _, rule := range r.Rules {
		fmt.Fprintf(a.stdout, "  rule %s\n", printable(rule))
	}
	for _, n := range r.Notes {
		line := ""
		if n.Line > 0 {
			line = fmt.Sprintf(" (line %d)", n.Line)
		}
		fmt.Fprintf(a.stdout, "  %s%s: %s\n", printable(n.Key), line, printable(n.Text))
	}
	return nil
}

// export prints the file's text as it is.
func export(ctx context.Context, a *app, p parsed, r row) error {
	if p.json {
		return a.perform(ctx, p, r)
	}
	run, leave, err := a.runner(ctx, p.stack)
	if err != nil {
		return err
	}
	defer leave()
	result, err := run(ctx, r.name, p.args)
	if err != nil {
		return err
	}
	var out struct {
		Source, Soul string
		Notes        []string
	}
	if err := json.Unmarshal(result, &out); err != nil {
		return fmt.Errorf("show result: %w", err)
	}
	for _, note := range out.Notes {
		fmt.Fprintln(a.stderr, "pawgate:", printable(note))
	}
	text := out.Source
	if soul, _ := p.args["soul"].(bool); soul {
		text = out.Soul
	}
	_, err = io.WriteString(a.stdout, text)
	return err
}
