package main

func peopleRows() []row {
	person := operand{word: "PERSON", argument: "person_id"}
	pairing := []operand{anAgent, {word: "CHANNEL", argument: "channel"}, {word: "SUBJECT", argument: "subject"}}
	return []row{
		{name: "person set", operands: []operand{person, {word: "NAME", argument: "display_name"}}, examples: []string{
			`person set mei "Mei Lin" --account telegram:12345,email:mei@example.com --role owner`}},
		{name: "person list", operands: []operand{{word: "PERSON", argument: "person_id", optional: true}}, examples: []string{"person list", "person list mei --json"},
			view: view{list: "people", empty: "nobody is known", columns: []column{
				{"ID", "person_id"}, {"NAME", "display_name"}, {"ROLES", "roles"}, {"PROJECTS", "project_ids"}, {"ACCOUNTS", "accounts"},
			}}},
		{name: "person remove", operands: []operand{person}, examples: []string{"person remove mei"}},
		{name: "pairing list", operands: []operand{maybeAgent}, examples: []string{"pairing list", "pairing list clerk --channel line"},
			view: view{list: "pairings", empty: "nobody", columns: []column{
				{"AGENT", "agent_id"}, {"CHANNEL", "channel"}, {"SUBJECT", "subject"}, {"STATE", "state"}, {"BY", "changed_by"}, {"SINCE", "changed_at"}, {"CODE ENDS", "expires_at"},
			}}},
		{name: "pairing approve", operands: pairing, examples: []string{"pairing approve clerk telegram 12345"}},
		{name: "pairing invite", operands: pairing, examples: []string{"pairing invite clerk telegram 12345"}},
		{name: "pairing revoke", operands: pairing, examples: []string{"pairing revoke clerk telegram 12345"}},
	}
}
