package main

func odooRows() []row {
	return []row{
		{name: "odoo connect", operands: []operand{anAgent}, examples: []string{
			"odoo connect clerk --url https://odoo.example.com --database prod --login clerk@example.com --secret env://ODOO_CLERK_KEY",
			`odoo connect clerk --url http://10.0.0.5:8069 --allow-http --database prod --login clerk --secret file:///etc/pawgate/clerk --kind password --action "read,write:crm.lead"`}},
		{name: "odoo list", operands: []operand{maybeAgent}, examples: []string{"odoo list", "odoo list clerk --json"},
			view: view{list: "connections", empty: "no Odoo connections; pawgate odoo connect makes one", columns: []column{
				{"AGENT", "agent_id"}, {"URL", "url"}, {"DATABASE", "database"}, {"LOGIN", "login"}, {"SECRET", "secret_kind"},
				{"VERSION", "version"}, {"TESTED", "tested_at"}, {"ACTIONS", "allowed_actions"},
			}}},
		{name: "odoo remove", operands: []operand{anAgent}, examples: []string{"odoo remove clerk"}},
		{name: "odoo writes", operands: []operand{maybeAgent}, examples: []string{"odoo writes clerk --limit 5", "odoo writes --json"},
			view: view{list: "writes", empty: "no changes", columns: []column{
				{"ID", "write_id"}, {"AGENT", "agent_id"}, {"STARTED", "started_at"}, {"MODEL", "model"}, {"METHOD", "method"}, {"RECORDS", "record_ids"}, {"STATE", "state"},
			}}},
	}
}
