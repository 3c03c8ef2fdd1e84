package main

func keyRows() []row {
	return []row{
		{name: "key create", operands: []operand{anAgent}, examples: []string{
			`key create default --name laptop --scope "*"`, "key create clerk --scope memory:read,memory:write --expires 90d",
			`--stack prod key create clerk --scope "*:read"`}},
		{name: "key list", operands: []operand{maybeAgent}, examples: []string{"key list", "key list clerk --all --json"},
			view: view{list: "keys", empty: "no keys", columns: []column{
				{"ID", "key_id"}, {"AGENT", "agent_id"}, {"STATE", "state"}, {"BEGINS", "hint"}, {"SCOPES", "scopes"},
				{"CREATED", "created_at"}, {"EXPIRES", "expires_at"}, {"LAST USED", "last_used_at"}, {"NAME", "name"},
			}}},
		{name: "key revoke", operands: []operand{{word: "KEY_ID", argument: "key_id"}}, examples: []string{"key revoke k_abcdefghij"}},
	}
}
