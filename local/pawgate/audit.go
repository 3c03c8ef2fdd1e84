package main

func auditRows() []row {
	return []row{{
		name: "audit list", examples: []string{
			"audit list --decision refused --since 24h", `audit list --agent clerk --tool "memory_*" --limit 200 --json`},
		view: view{list: "rows", empty: "no rows", columns: []column{
			{"AT", "at"}, {"DOOR", "door"}, {"AGENT", "agent_id"}, {"BY", "credential_id"}, {"METHOD", "method"}, {"TOOL", "tool"},
			{"DECISION", "decision"}, {"OUTCOME", "outcome"}, {"REASON", "reason"}, {"MS", "duration_ms"},
		}},
	}}
}
