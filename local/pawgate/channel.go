package main

var (
	aChannel = operand{word: "CHANNEL", argument: "channel"}
	aChat    = operand{word: "CHAT", argument: "chat"}
)

func channelRows() []row {
	return []row{
		{name: "channel set", operands: []operand{anAgent, aChannel}, examples: []string{
			"channel set clerk telegram --secret env://CLERK_TELEGRAM_TOKEN",
			"channel set clerk telegram --secret secretsmanager://pawgate/channels/clerk#telegram"}},
		{name: "channel allow", operands: []operand{anAgent, aChannel, aChat}, examples: []string{
			"channel allow clerk telegram @team_channel --name team", "channel allow clerk telegram -1001234567890 --name ops", `channel allow clerk telegram "*"`}},
		{name: "channel deny", operands: []operand{anAgent, aChannel, aChat}, examples: []string{"channel deny clerk telegram @team_channel"}},
		{name: "channel list", operands: []operand{maybeAgent}, examples: []string{"channel list", "channel list clerk --json"},
			view: view{list: "channels", empty: "no channels; pawgate channel set makes one", columns: []column{
				{"AGENT", "agent_id"}, {"CHANNEL", "channel"}, {"CHATS", "chats"}, {"WORKS SINCE", "works_since"}, {"LAST SENT", "last_sent_at"}, {"LAST ERROR", "last_error"},
			}}},
		{name: "channel remove", operands: []operand{anAgent, aChannel}, examples: []string{"channel remove clerk telegram"}},
	}
}
