package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"pawgate/internal/claudecode"
	"pawgate/internal/plural"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/settings"
	"pawgate/internal/usage"
	"pawgate/local/server"
)

func costRows() []row {
	recent := []column{{"AT", "at"}, {"AGENT", "agent_id"}, {"USER", "user_id"}, {"MODEL", "model"}, {"INPUT", "input_tokens"}, {"OUTPUT", "output_tokens"},
		{"CACHE READ", "cache_read_tokens"}, {"CACHE WRITE", "cache_write_tokens"}, {"COST", "cost"}}
	return []row{
		{name: "cost prices import", operands: []operand{{word: "FILE", argument: "source"}}, run: importPrices, examples: []string{
			"cost prices import model_prices_and_context_window.json", "cost prices import prices.json --from 2026-11-01 --label ours"}},
		{name: "cost prices set", operands: []operand{{word: "NAME", argument: "name"}}, examples: []string{
			"cost prices set my-model --input 0.50 --output 2.00", "cost prices set tool:web_search --unit 0.008"}},
		{name: "cost prices list", operands: []operand{{word: "NAME", argument: "name", optional: true}}, examples: []string{"cost prices list claude", "cost prices list tool: --json"},
			view: view{list: "prices", empty: "no prices; pawgate cost prices import takes over a list", columns: []column{
				{"NAME", "name"}, {"PROVIDER", "provider"}, {"FROM", "from"}, {"INPUT", "input"}, {"OUTPUT", "output"}, {"CACHE READ", "cache_read"},
				{"WRITE 5M", "cache_write_5m"}, {"WRITE 1H", "cache_write_1h"}, {"UNIT", "unit"}, {"TIERS", "tiers"}, {"LIST", "version"},
			}}},
		{name: "cost reprice", examples: []string{"cost reprice"}},
		{name: "cost import", operands: []operand{anAgent, {word: "FILE", argument: "rows", many: true}}, run: importTranscripts, examples: []string{
			"cost import clerk ~/.claude/projects/*/*.jsonl", "cost import clerk session.jsonl --user-id ann@example.com"}},
		{name: "cost recent", operands: []operand{maybeAgent}, examples: []string{"cost recent", "cost recent clerk --limit 100"},
			view: view{list: "requests", empty: "no usage was recorded", columns: recent}},
		{name: "cost prune", examples: []string{"cost prune --older-than-days 800"}},
		{name: "budget set", examples: []string{
			"budget set --agent-id clerk --limit 25.00", `budget set --user-id "*" --period day --limit 1 --timezone Asia/Taipei`, "budget set --tool web_search --period day --limit 2 --soft"}},
		{name: "budget list", operands: []operand{maybeAgent}, examples: []string{"budget list", "budget list clerk --json"},
			view: view{list: "budgets", empty: "no budgets; pawgate budget set makes one", columns: []column{
				{"ID", "id"}, {"AGENT", "agent_id"}, {"USER", "user_id"}, {"TOOL", "tool"}, {"PERIOD", "period"}, {"ALLOWED", "allowed"}, {"SPENT", "spent"},
				{"EXPECTED", "expected"}, {"STATE", "state"}, {"HARD", "hard"}, {"UNPRICED", "unpriced"}, {"RESETS", "resets_at"},
			}}},
		{name: "budget remove", operands: []operand{{word: "ID", argument: "budget_id"}}, examples: []string{"budget remove b0123456789"}},
	}
}

// maxPrices is the largest price list, in bytes; LiteLLM's has a good megabyte.
const maxPrices = 4 << 20

// importPrices reads the file of "cost prices import" and sends its text.
func importPrices(ctx context.Context, a *app, p parsed, r row) error {
	name, _ := p.args["source"].(string)
	in := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err // it names the file
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxPrices+1))
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", name, err)
	case len(text) > maxPrices:
		return fmt.Errorf("%s is larger than %d MB", name, maxPrices>>20)
	}
	p.args["source"] = string(text)
	return a.perform(ctx, p, r)
}

// importedAtOnce is how many rows one command carries.
const importedAtOnce = 2000

// importTranscripts reads transcripts here, so that only counts leave the
// machine, and sends them in parts.
func importTranscripts(ctx context.Context, a *app, p parsed, r row) error {
	names, _ := p.args["rows"].([]string)
	agent, _ := p.args["agent_id"].(string)
	user, _ := p.args["user_id"].(string)
	run, leave, err := a.runner(ctx, p.stack)
	if err != nil {
		return err
	}
	defer leave()
	for _, name := range names {
		t, err := readTranscript(a.stdin, name, agent, user)
		if err != nil {
			return err
		}
		if t.Bad > 0 {
			fmt.Fprintf(a.stderr, "%s: %d of %s passed over, because they are no JSON\n", name, t.Bad, plural.Of(t.Lines, "line"))
		}
		for rows := t.Rows; len(rows) > 0; {
			part := rows[:min(len(rows), importedAtOnce)]
			rows = rows[len(part):]
			p.args["rows"] = sent(part, agent)
			result, err := run(ctx, r.name, p.args)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Fprintf(a.stdout, "%s\n", name)
			if err := a.show(result, p.json, r.view); err != nil {
				return err
			}
		}
		if len(t.Rows) == 0 {
			fmt.Fprintf(a.stdout, "%s\nno usage in it\n", name)
		}
	}
	return nil
}

func readTranscript(stdin io.Reader, name, agent, user string) (claudecode.Transcript, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return claudecode.Transcript{}, err
		}
		defer f.Close()
		in = f
	}
	return claudecode.ReadTranscript(agent, user, in)
}

// sent is a part of a transcript as the command takes it.
func sent(rows []usage.Row, agent string) []map[string]any {
	list := make([]map[string]any, len(rows))
	for i, r := range rows {
		list[i] = map[string]any{"at": r.At, "id": r.ID[len(agent)+1:], "session": r.Session, "model": r.Model, "input": r.Input, "output": r.Output,
			"cache_read": r.CacheRead, "cache_write_5m": r.CacheWrite, "cache_write_1h": r.CacheWrite1}
		if r.Reported != nil {
			list[i]["reported"] = *r.Reported
		}
	}
	return list
}

// costCommands are those that no operator's command stands behind.
func costCommands() []command {
	return []command{{
		name: "cost watch", usage: "[AGENT]", about: "Show requests and what they cost as they come in, until interrupted.",
		detail: "  AGENT  Only this agent\n", examples: []string{"cost watch", "cost watch clerk"}, run: watchCost,
	}}
}

// watchEvery is how often "cost watch" looks.
const watchEvery = time.Second

// watchCost follows the local database. It is no operator's command: each look
// would be a row of the audit trail.
func watchCost(ctx context.Context, a *app, args []string) error {
	agent := ""
	switch {
	case len(args) == 1 && isHelp(args[0]):
		return errHelp
	case len(args) > 1:
		return usagef("cost watch takes one agent at most")
	case len(args) == 1:
		agent = args[0]
	}
	var s server.Settings
	if err := settings.Load(ctx, &s); err != nil {
		return err
	}
	url, leave, err := server.Database(ctx, s, a.log)
	if err != nil {
		return err
	}
	defer leave()
	s.URL = url
	db, err := postgres.Open(ctx, s.Config)
	if err != nil {
		return err
	}
	defer db.Close()
	return follow(ctx, a.stdout, db, agent, watchEvery)
}

// follow prints the last rows, then those that come, with a running sum.
func follow(ctx context.Context, out io.Writer, db postgres.DB, agent string, every time.Duration) error {
	const format = "%-20s %-16s %-28s %9d in %8d out %9d cached  %12s %12s\n"
	last, sum, limit := int64(0), int64(0), 20
	for {
		rows, err := usage.Last(ctx, db, agent, last, limit)
		if err != nil && ctx.Err() == nil {
			return err
		}
		for _, r := range rows {
			last = r.ID
			cost := "unknown"
			if r.Cost != nil {
				sum += *r.Cost
				cost = policy.Dollars(*r.Cost)
			}
			fmt.Fprintf(out, format, r.At.UTC().Format("2006-01-02 15:04:05"), printable(r.Agent), printable(r.Model), r.Input, r.Output, r.CacheRead, cost, policy.Dollars(sum))
		}
		limit = 1000
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}
