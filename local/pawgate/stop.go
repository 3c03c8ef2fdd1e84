package main

func stopRows() []row {
	return []row{
		{name: "stop", operands: []operand{maybeAgent}, examples: []string{
			`stop --reason "sends to strangers"`, "stop clerk", "--stack prod stop"}},
		{name: "resume", operands: []operand{maybeAgent}, examples: []string{"resume", "resume clerk"}},
		{name: "status", operands: []operand{maybeAgent}, examples: []string{"status", "status clerk --json"}},
	}
}
