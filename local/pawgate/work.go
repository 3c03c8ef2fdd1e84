package main

func workRows() []row {
	return []row{
		{name: "schedule list", operands: []operand{maybeAgent}, examples: []string{"schedule list", "schedule list clerk --json"},
			view: view{list: "tasks", empty: "nothing is scheduled", columns: []column{
				{"ID", "id"}, {"AGENT", "agent_id"}, {"NAME", "name"}, {"STATE", "state"}, {"CRON", "cron"}, {"ZONE", "cron_timezone"},
				{"NEXT RUN", "next_run"}, {"LAST RUN", "last_run"}, {"LAST RESULT", "last_state"}, {"TOLD", "last_delivery"}, {"RUNS", "runs"}, {"FAILED", "failures"}}}},
		{name: "queue list", operands: []operand{maybeAgent}, examples: []string{"queue list", "queue list clerk --state dead", "--stack prod queue list --json"},
			view: view{list: "work", empty: "no work", columns: []column{
				{"ID", "id"}, {"STATE", "state"}, {"AGENT", "agent_id"}, {"FROM", "from_agent"}, {"SOURCE", "source"}, {"ATTEMPTS", "attempts"},
				{"ASKED", "created_at"}, {"NOT BEFORE", "run_at"}, {"ERROR", "error"}}}},
		{name: "queue retry", operands: []operand{{word: "ID", argument: "id"}}, examples: []string{"queue retry 01a22f77-c4fb-7ec3-82e7-ffd876477110"}},
	}
}
