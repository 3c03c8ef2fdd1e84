package operator_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pawgate/internal/fault"
)

func TestChannels(t *testing.T) {
	o := setup(t)
	run := func(command, args string) (json.RawMessage, error) {
		return o.Run(t.Context(), "", command, []byte(args))
	}
	must := func(command, args string) string {
		t.Helper()
		answer, err := run(command, args)
		if err != nil {
			t.Fatalf("%s %s: %v", command, args, err)
		}
		return string(answer)
	}
	must("agent create", `{"agent_id":"clerk"}`)
	for name, c := range map[string]struct{ command, args, parameter string }{
		"the secret itself": {"channel set", `{"agent_id":"clerk","channel":"telegram","secret":"123456:hunter2hunter2"}`, "secret"},
		"second secret":     {"channel set", `{"agent_id":"clerk","channel":"telegram","secret":"env://T","second_secret":"hunter2hunter2"}`, "second_secret"},
		"one too many":      {"channel set", `{"agent_id":"clerk","channel":"telegram","secret":"env://T","second_secret":"env://U"}`, "channel"},
		"http":              {"channel set", `{"agent_id":"clerk","channel":"telegram","secret":"env://T","base_url":"http://bots.example.com"}`, "base_url"},
		"W-36 odd spelling": {"channel set", `{"agent_id":"clerk","channel":"telegram","secret":"env://T","base_url":"https://0x7f.1/"}`, "base_url"},
		"platform":          {"channel set", `{"agent_id":"clerk","channel":"pigeon","secret":"env://T"}`, "channel"},
		"chat":              {"channel allow", `{"agent_id":"clerk","channel":"telegram","chat":"../getMe"}`, "chat"},
		"name":              {"channel allow", `{"agent_id":"clerk","channel":"telegram","chat":"42","name":"*"}`, "name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(c.command, c.args)
			invalid, ok := fault.InvalidOf(err)
			if !ok || invalid.Parameter != c.parameter || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %s refused", err, c.parameter)
			}
		})
	}
	if _, err := run("channel allow", `{"agent_id":"clerk","channel":"telegram","chat":"42"}`); err == nil {
		t.Error("a chat was allowed on a channel that is not there")
	}
	if _, err := run("channel set", `{"agent_id":"nobody","channel":"telegram","secret":"env://T"}`); err == nil {
		t.Error("an agent that does not exist got a channel")
	}
	must("channel set", `{"agent_id":"clerk","channel":"telegram","secret":"env://T"}`)
	must("channel allow", `{"agent_id":"clerk","channel":"telegram","chat":42,"name":"Team"}`)
	if _, err := run("channel allow", `{"agent_id":"clerk","channel":"telegram","chat":"43","name":"team"}`); err == nil {
		t.Error("one name leads to two chats")
	}
	must("channel set", `{"agent_id":"clerk","channel":"telegram","secret":"env://U"}`) // its chats stay
	if text := must("channel list", `{}`); !strings.Contains(text, `"Team=42"`) || strings.Contains(text, "env://") {
		t.Errorf("channel list: %s", text)
	}
	if text := must("channel deny", `{"agent_id":"clerk","channel":"telegram","chat":"42"}`); !strings.Contains(text, `"changed":true`) {
		t.Errorf("channel deny: %s", text)
	}
	must("channel remove", `{"agent_id":"clerk","channel":"telegram"}`)
	if text := must("channel list", `{"agent_id":"clerk"}`); !strings.Contains(text, `"channels":[]`) {
		t.Errorf("channel list: %s", text)
	}
}
