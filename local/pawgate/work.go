package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

func workRows() []row {
	return []row{
		{name: "schedule list", operands: []operand{maybeAgent}, examples: []string{"schedule list", "schedule list clerk --json"},
			view: view{list: "tasks", empty: "nothing is scheduled", columns: []column{
				{"ID", "id"}, {"AGENT", "agent_id"}, {"NAME", "name"}, {"STATE", "state"}, {"CRON", "cron"}, {"ZONE", "cron_timezone"},
				{"NEXT RUN", "next_run"}, {"LAST RUN", "last_run"}, {"LAST RESULT", "last_state"}, {"TOLD", "last_delivery"}, {"RUNS", "runs"}, {"FAILED", "failures"}}}},
		{name: "schedule import", operands: []operand{{word: "FILE", argument: "source"}}, run: importSchedules, examples: []string{
			"schedule import cron.json --agent-id clerk --timezone Asia/Taipei", "schedule import - < cron.json"},
			view: view{list: "tasks", empty: "no tasks in the file", above: true, columns: []column{
				{"AGENT", "agent_id"}, {"NAME", "name"}, {"CRON", "cron"}, {"NEXT RUNS", "next_runs"}, {"CHANGED", "note"}, {"NOT TAKEN OVER", "error"}}}},
		{name: "queue list", operands: []operand{maybeAgent}, examples: []string{"queue list", "queue list clerk --state dead", "--stack prod queue list --json"},
			view: view{list: "work", empty: "no work", columns: []column{
				{"ID", "id"}, {"STATE", "state"}, {"AGENT", "agent_id"}, {"FROM", "from_agent"}, {"SOURCE", "source"}, {"ATTEMPTS", "attempts"},
				{"ASKED", "created_at"}, {"NOT BEFORE", "run_at"}, {"ERROR", "error"}}}},
		{name: "queue retry", operands: []operand{{word: "ID", argument: "id"}}, examples: []string{"queue retry 01a22f77-c4fb-7ec3-82e7-ffd876477110"}},
	}
}

// importSchedules sends the text of a file; "-" is stdin. It fails when none of
// the tasks could be taken over.
func importSchedules(ctx context.Context, a *app, p parsed, r row) error {
	name, _ := p.args["source"].(string)
	text, err := readText(a.stdin, name)
	if err != nil {
		return err
	}
	p.args["source"] = text
	return a.performAndJudge(ctx, p, r, func(result json.RawMessage) error {
		var done struct{ Imported, Refused int }
		if err := json.Unmarshal(result, &done); err != nil {
			return fmt.Errorf("read result: %w", err)
		}
		if done.Imported == 0 && done.Refused > 0 {
			return errors.New("no task was taken over")
		}
		return nil
	})
}
