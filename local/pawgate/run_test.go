package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"pawgate/internal/loop"
)

// script is a model's server that gives its answers in order, the last one
// for ever.
func script(t *testing.T, answers ...string) {
	t.Helper()
	var next atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(answers[min(int(next.Add(1)), len(answers))-1]))
	}))
	t.Cleanup(server.Close)
	t.Setenv("TEST_CHAT_KEY", "secret-key")
	t.Setenv("PAWGATE_CHAT_URL", server.URL+"/v1")
	t.Setenv("PAWGATE_CHAT_KEY", "env://TEST_CHAT_KEY")
	t.Setenv("PAWGATE_CHAT_MODEL", "tiny")
}

const (
	callsTool = `{"model":"tiny","choices":[{"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[
		{"id":"c1","type":"function","function":{"name":"agent_status","arguments":"{\"agent_id\":\"default\"}"}}]}}],"usage":{"prompt_tokens":900,"completion_tokens":20}}`
	answers = `{"model":"tiny","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"All is\twell.\u001b[31m\nReally."}}],"usage":{"prompt_tokens":1000,"completion_tokens":5}}`
)

func TestRun(t *testing.T) {
	x := open(t)
	x.ok("agent", "create", "default", "--allow", "*")
	t.Run("an answer", func(t *testing.T) {
		script(t, callsTool, answers)
		if got := x.ok("run", "How are you?"); got != "All is\twell.[31m\nReally.\n" {
			t.Errorf("stdout %q", got)
		}
		for _, want := range []string{" 1  900 tokens read, 20 written", `→ agent_status {"agent_id":"default"}`, `← agent_status {"status":"ok",`, " 2  1000 tokens read"} {
			if !strings.Contains(x.stderr, want) {
				t.Errorf("stderr lacks %q:\n%s", want, x.stderr)
			}
		}
		if strings.Contains(x.stderr, "All is") {
			t.Errorf("the answer is told twice:\n%s", x.stderr)
		}
	})
	t.Run("the whole result", func(t *testing.T) {
		script(t, callsTool, answers)
		var got loop.Result
		if err := json.Unmarshal([]byte(x.ok("run", "--json", "--quiet", "--session", "s1", "How are you?")), &got); err != nil {
			t.Fatal(err)
		}
		if got.End != loop.Answered || got.Rounds != 2 || got.Calls != 1 || got.Usage.Total() != 1925 || got.Unpriced != 2 || x.stderr != "" {
			t.Errorf("%+v, stderr %q", got, x.stderr)
		}
	})
	t.Run("from standard input", func(t *testing.T) {
		script(t, answers)
		x.stdin = "How are you?\n"
		x.ok("run", "-")
		x.stdin = ""
	})
	t.Run("a limit", func(t *testing.T) {
		script(t, callsTool)
		if status := x.run("run", "--max-rounds", "2", "go on"); status != exitLimit || !strings.Contains(x.stderr, "pawgate: the run ended early: it had its number of rounds") {
			t.Errorf("exit %d, %s", status, x.stderr)
		}
	})
	t.Run("only some tools", func(t *testing.T) {
		script(t, callsTool, answers)
		x.ok("run", "--tools", "list_agents", "How are you?")
		if !strings.Contains(x.stderr, "✗ agent_status") || !strings.Contains(x.stderr, "unknown tool") {
			t.Errorf("stderr %s", x.stderr)
		}
	})
	for _, c := range []struct {
		name, variable, value string
		line                  []string
		status                int
		stderr                string
	}{
		{"refused key", "TEST_CHAT_KEY", "wrong", []string{"hello"}, exitFailed, "refuses the key (HTTP 401)"},
		{"no server", "PAWGATE_CHAT_URL", "", []string{"hello"}, exitFailed, "PAWGATE_CHAT_URL must be set"},
		{"no price", "", "", []string{"--max-cost", "0.5", "hello"}, exitFailed, "model tiny has no price"},
		{"no agent", "", "", []string{"--agent", "nobody", "hello"}, exitFailed, "no agent nobody"},
		{"no model", "PAWGATE_CHAT_MODEL", "", []string{"hello"}, exitUsage, "which model?"},
		{"no prompt", "", "", nil, exitUsage, "run takes one prompt"},
		{"empty prompt", "", "", []string{" "}, exitUsage, "the prompt is empty"},
		{"two prompts", "", "", []string{"a", "b"}, exitUsage, "run takes one prompt"},
		{"bad flag", "", "", []string{"--max-rounds", "x", "a"}, exitUsage, "max-rounds"},
		{"negative limit", "", "", []string{"--max-tokens", "-5", "a"}, exitUsage, "must not be negative"},
		{"no such tools", "", "", []string{"--tools", "memry_*", "hello"}, exitUsage, "no tool that agent default may call matches --tools memry_*"},
		{"bad cost", "", "", []string{"--max-cost", "much", "a"}, exitUsage, "number of dollars"},
	} {
		t.Run(c.name, func(t *testing.T) {
			script(t, answers)
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			if status := x.run(append([]string{"run", "--quiet"}, c.line...)...); status != c.status || !strings.Contains(x.stderr, c.stderr) || strings.Contains(x.stderr, "secret-key") {
				t.Errorf("exit %d, %s", status, x.stderr)
			}
		})
	}
	t.Run("no budget left", func(t *testing.T) {
		script(t, answers)
		x.ok("cost", "prices", "set", "tiny", "--input", "1", "--output", "1")
		x.ok("budget", "set", "--agent-id", "default", "--limit", "0")
		if status := x.run("run", "hello"); status != exitFailed || !strings.HasPrefix(x.stderr, "pawgate: the monthly budget of agent default has no room") {
			t.Errorf("exit %d, %s", status, x.stderr)
		}
	})
	if got := x.ok("run", "--help"); !strings.Contains(got, "--max-cost DOLLARS") {
		t.Errorf("help: %s", got)
	}
}
