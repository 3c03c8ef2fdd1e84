package sidecar_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/client/chat"
	"pawgate/internal/loop"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// The model loop on a real model, through the sidecar's endpoint. Whether so
// small a model calls a tool is only reported; that the endpoint takes the
// loop's questions, tools and results among them, and tells its usage, must hold.
func TestReal_loop(t *testing.T) {
	r := startReal(t)
	r.must("model", "model_load", `{"model_id":"real","context_size":4096,"wait_seconds":170,"args":["--parallel","1","--threads","1"]}`)
	type place struct {
		City string `json:"city" doc:"Name of the city"`
	}
	type weather struct {
		Sky string `json:"sky"`
	}
	category := tool.Category{Name: "weather", Tools: []tool.Tool{
		tool.Read("weather_today", "Tell the weather of a city.", func(context.Context, caller.Caller, place) (weather, error) { return weather{"rain"}, nil }),
	}}
	tools, err := catalog.Of(category)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.db.Exec(t.Context(), `update agents set allowed_tools = '{*}' where id = 'a'`); err != nil {
		t.Fatal(err)
	}
	gate := router.New(router.Config{Version: "test", Catalog: tools, DB: r.db, Now: time.Now, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
		Backends: map[string]router.Backend{"weather": router.InProcess{Table: tool.Assemble(category)}}})
	model, err := chat.New(chat.Config{URL: r.url + "/v1", Key: realKey})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(q loop.Request) loop.Result {
		t.Helper()
		q.Agent, q.Model, q.Limits = "a", "real", loop.Limits{Rounds: 3, Output: 64, Wall: 3 * time.Minute}
		got, err := loop.New(loop.Options{Gate: gate.LoopDoor(router.Identity{Agent: "a"}), Model: model, Meter: loop.Ledger{DB: r.db}}).Run(t.Context(), q)
		if err != nil || got.Rounds == 0 || got.Usage.Input+got.Usage.CacheRead < 20 || got.Usage.Output == 0 {
			t.Errorf("%+v, %v", got, err)
		}
		return got
	}
	got := ask(loop.Request{System: "Use the tool weather_today to answer.", Prompt: "What is the weather in Paris?"})
	t.Logf("report: %d calls, ended %s after %d rounds, %+v: %q", got.Calls, got.End, got.Rounds, got.Usage, got.Answer)
	// A conversation in which a tool was called goes through its template.
	got = ask(loop.Request{Prompt: "And is an umbrella of use?", History: []chat.Message{
		{Role: chat.User, Text: "What is the weather in Paris?"},
		{Role: chat.Assistant, Native: []byte(`{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"weather_today","arguments":"{\"city\":\"Paris\"}"}}]}`)},
		{Role: chat.User, Results: []chat.Result{{ID: "c1", Text: `{"status":"ok","sky":"rain"}`}}},
		{Role: chat.Assistant, Native: []byte(`{"role":"assistant","content":"It rains."}`)},
	}})
	t.Logf("report: ended %s, %q", got.End, got.Answer)
	var rows int
	if err := r.db.QueryRow(t.Context(), `select count(*) from usage where agent_id = 'a' and provider = 'local' and output > 0`).Scan(&rows); err != nil || rows < 2 {
		t.Errorf("%d completions on record, %v", rows, err)
	}
}
