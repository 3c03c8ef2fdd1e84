package main

func oauthRows() []row {
	issuer, subject := operand{word: "ISSUER", argument: "issuer"}, operand{word: "SUBJECT", argument: "subject"}
	return []row{
		{name: "oauth map", operands: []operand{issuer, subject, anAgent}, examples: []string{
			`oauth map https://login.example.com/ alice clerk --scope "*:read,memory:write"`}},
		{name: "oauth unmap", operands: []operand{issuer, subject}, examples: []string{"oauth unmap https://login.example.com/ alice"}},
		{name: "oauth list", operands: []operand{maybeAgent}, examples: []string{"oauth list", "oauth list clerk --json"},
			view: view{list: "subjects", empty: "no subject is mapped", columns: []column{
				{"ISSUER", "issuer"}, {"SUBJECT", "subject"}, {"AGENT", "agent_id"}, {"SCOPES", "scopes"},
			}}},
		{name: "maintain", examples: []string{"maintain", "--stack prod maintain"}},
	}
}
