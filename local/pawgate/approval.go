package main

import "context"

func approvalRows() []row {
	id := operand{word: "ID", argument: "approval_id"}
	return []row{
		{name: "approval list", operands: []operand{maybeAgent}, run: listApprovals, examples: []string{"approval list", "approval list clerk --state all --json"},
			view: view{list: "approvals", empty: "nothing waits for you", columns: []column{
				{"ID", "approval_id"}, {"STATE", "state"}, {"KIND", "kind"}, {"AGENT", "agent_id"}, {"TOOL", "tool"}, {"ARGUMENTS", "arguments"},
				{"BECAUSE", "because"}, {"EXPIRES", "expires_at"},
			}}},
		{name: "approve", operands: []operand{id}, examples: []string{
			"approve a3kf", "approve a3kf --for-minutes 30 --same channel,to", "approve a3kf --for-minutes 5 --any"}},
		{name: "deny", operands: []operand{id}, examples: []string{`deny a3kf --reason "ask the customer first"`}},
		{name: "grant list", operands: []operand{maybeAgent}, examples: []string{"grant list", "grant list clerk"},
			view: view{list: "grants", empty: "no grant or approval is alive", columns: []column{
				{"ID", "approval_id"}, {"KIND", "kind"}, {"AGENT", "agent_id"}, {"TOOL", "tool"}, {"COVERS", "covers"}, {"UNTIL", "until"}, {"BY", "decided_by"},
			}}},
		{name: "grant revoke", operands: []operand{id}, examples: []string{"grant revoke g7qm --reason done"}},
	}
}

// listApprovals does not say of what was decided that nothing waits.
func listApprovals(ctx context.Context, a *app, p parsed, r row) error {
	if state, given := p.args["state"]; given && state != "pending" {
		r.view.empty = "no such request"
	}
	return a.perform(ctx, p, r)
}

// aliases are other names by which one looks for these commands.
var aliases = map[string]string{
	"approve list":     "approval list",
	"approval approve": "approve",
	"approval deny":    "deny",
}
