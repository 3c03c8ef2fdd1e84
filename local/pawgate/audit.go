package main

import (
	"context"
	"encoding/json"
	"fmt"

	"pawgate/internal/plural"
)

func auditRows() []row {
	return []row{
		{
			name: "audit list", examples: []string{
				"audit list --decision refused --since 24h", `audit list --agent clerk --tool "memory_*" --limit 200 --json`},
			view: view{list: "rows", empty: "no rows", columns: []column{
				{"AT", "at"}, {"DOOR", "door"}, {"AGENT", "agent_id"}, {"BY", "credential_id"}, {"METHOD", "method"}, {"TOOL", "tool"},
				{"DECISION", "decision"}, {"OUTCOME", "outcome"}, {"REASON", "reason"}, {"MS", "duration_ms"},
			}},
		},
		{name: "audit verify", operands: []operand{maybeAgent}, run: verify, examples: []string{"audit verify", "audit verify clerk --json"},
			view: view{list: "broken", above: true, empty: "every row is as it was written", columns: []column{
				{"AGENT", "agent_id"}, {"ROW", "seq"}, {"PROBLEM", "problem"},
			}}},
		{name: "audit prune", examples: []string{"audit prune --before 2026-01-01", "audit prune --before 365d"}},
	}
}

// verify fails when a row of the trail is not as it was written, so that a
// scheduled job notices.
func verify(ctx context.Context, a *app, p parsed, r row) error {
	return a.performAndJudge(ctx, p, r, func(result json.RawMessage) error {
		var found struct{ Broken []json.RawMessage }
		if err := json.Unmarshal(result, &found); err != nil {
			return fmt.Errorf("read result: %w", err)
		}
		if n := len(found.Broken); n > 0 {
			return fmt.Errorf("the audit trail is broken in %s", plural.Of(n, "place"))
		}
		return nil
	})
}
