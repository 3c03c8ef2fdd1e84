package loop_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/client/chat"
	"pawgate/internal/fault"
	"pawgate/internal/loop"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// stage is a real gate over a few probes.
type stage struct {
	t      *testing.T
	db     *pgxpool.Pool
	router *router.Router
	meter  *meter
}

type textArgs struct {
	Text string `json:"text" doc:"Text to give back"`
}

type textResult struct {
	Text string `json:"text"`
}

func newStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	category := tool.Category{Name: "probe", Tools: []tool.Tool{
		tool.Read("probe_echo", "Give the text back.", func(_ context.Context, who caller.Caller, a textArgs) (textResult, error) {
			return textResult{Text: who.Agent + ": " + a.Text}, nil
		}),
		tool.Write("probe_write", "Write.", func(context.Context, caller.Caller, textArgs) (textResult, error) {
			return textResult{}, nil
		}),
		tool.Read("probe_fault", "Fail in words.", func(context.Context, caller.Caller, struct{}) (textResult, error) {
			return textResult{}, fault.Retry("probe_busy", 3*time.Second, "the probe is busy")
		}),
	}}
	tools, err := catalog.Of(category)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, db: postgrestest.Clone(t), meter: &meter{price: 1}}
	s.exec(`insert into agents (id, allowed_tools, denied_tools) values ('alice', '{probe_*}', '{probe_write}')`)
	s.router = router.New(router.Config{Version: "test", Catalog: tools, DB: s.db, Now: time.Now, Timeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
		Backends: map[string]router.Backend{"probe": router.InProcess{Table: tool.Assemble(category)}}})
	return s
}

func (s *stage) exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(context.Background(), sql, args...); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
}

func (s *stage) count(sql string) (n int) {
	s.t.Helper()
	if err := s.db.QueryRow(context.Background(), sql).Scan(&n); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// provider is a scripted server that speaks chat completions: it gives its
// answers in order and keeps what it was asked.
type provider struct {
	t       *testing.T
	mu      sync.Mutex
	answers []string
	asked   []question
}

type question struct {
	Model    string
	Messages []struct {
		Role, Content string
		ToolCallID    string `json:"tool_call_id"`
	}
	Tools []struct{ Function struct{ Name string } }
}

func (q question) tools() (names []string) {
	for _, t := range q.Tools {
		names = append(names, t.Function.Name)
	}
	return names
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.URL.Path != "/v1/chat/completions" {
		p.t.Errorf("%s: %v", r.URL.Path, err)
	}
	p.asked = append(p.asked, q)
	if len(p.answers) == 0 {
		p.t.Error("asked once too often")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	_, _ = w.Write([]byte(answer))
}

// says is a turn in words, wants one with calls: name, arguments, name, …
func says(text string) string {
	b, _ := json.Marshal(map[string]any{"model": "served", "choices": []any{map[string]any{"finish_reason": "stop",
		"message": map[string]any{"role": "assistant", "content": text}}}, "usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 10}})
	return string(b)
}

func wants(calls ...string) string {
	var list []any
	for i := 0; i < len(calls); i += 2 {
		list = append(list, map[string]any{"id": "c" + string(rune('0'+i/2)), "type": "function", "function": map[string]any{"name": calls[i], "arguments": calls[i+1]}})
	}
	b, _ := json.Marshal(map[string]any{"model": "served", "choices": []any{map[string]any{"finish_reason": "tool_calls",
		"message": map[string]any{"role": "assistant", "content": nil, "tool_calls": list}}}, "usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 10}})
	return string(b)
}

func (s *stage) script(answers ...string) (*provider, chat.Model) {
	s.t.Helper()
	p := &provider{t: s.t, answers: answers}
	server := httptest.NewServer(p)
	s.t.Cleanup(server.Close)
	model, err := chat.New(chat.Config{URL: server.URL + "/v1"})
	if err != nil {
		s.t.Fatal(err)
	}
	return p, model
}

func (s *stage) run(model chat.Model, as router.Identity, q loop.Request) (loop.Result, error) {
	s.t.Helper()
	as.Agent, q.Agent = "alice", "alice"
	if q.Prompt == "" {
		q.Prompt = "do it"
	}
	return loop.New(loop.Options{Gate: s.router.LoopDoor(as), Model: model, Meter: s.meter}).Run(s.t.Context(), q)
}

// results are the texts that the model saw of its calls.
func (p *provider) results() (texts []string) {
	for _, m := range p.asked[len(p.asked)-1].Messages {
		if m.Role == "tool" {
			texts = append(texts, m.Content)
		}
	}
	return texts
}

// meter keeps what it is told.
type meter struct {
	mu    sync.Mutex
	spent []loop.Spent
	held  []loop.Spent // at most
	price int64        // micro-dollars a token; 0: unknown
	err   error

	released int // holds let go without a completion
}

func (m *meter) Record(_ context.Context, s loop.Spent) (int64, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent = append(m.spent, s)
	return m.price * s.Usage.Total(), m.price > 0, m.err
}

func (m *meter) Hold(_ context.Context, most loop.Spent) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = append(m.held, most)
	return "hold", nil
}

func (m *meter) Release(_ context.Context, hold string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if hold == "hold" {
		m.released++
	}
	return nil
}

func (m *meter) Priced(context.Context, string, string) (bool, error) { return m.price > 0, nil }

func TestRunThroughTheGate(t *testing.T) {
	s := newStage(t)
	p, model := s.script(wants("probe_echo", `{"text":"備份"}`), says("done"))
	got, err := s.run(model, router.Identity{}, loop.Request{Model: "m1", System: "be brief"})
	if err != nil {
		t.Fatal(err)
	}
	want := loop.Result{ID: got.ID, Answer: "done", End: loop.Answered, Rounds: 2, Calls: 1, Usage: chat.Usage{Input: 200, Output: 20}, Micros: 220, Messages: got.Messages}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`{"status":"ok","text":"alice: 備份"}`}, p.results()); diff != "" {
		t.Errorf("seen by the model (-want +got):\n%s", diff)
	}
	if q := p.asked[0]; q.Model != "m1" || q.Messages[0].Role != "system" || q.Messages[0].Content != "be brief" || q.Messages[1].Content != "do it" {
		t.Errorf("asked %+v", q)
	}
	if n := s.count(`select count(*) from audit where door = 'loop' and agent_id = 'alice' and tool = 'probe_echo' and outcome = 'ok'`); n != 1 {
		t.Errorf("%d audit rows", n)
	}
	if len(s.meter.spent) != 2 || s.meter.spent[0].Model != "served" || s.meter.spent[0].ID == s.meter.spent[1].ID || s.meter.spent[0].Provider != "local" {
		t.Errorf("recorded %+v", s.meter.spent)
	}
}

// What the model is told of is what it may call, and nothing else runs.
func TestOnlyWhatIsListedRuns(t *testing.T) {
	for name, c := range map[string]struct {
		narrow []string
		listed []string
		call   string
	}{
		"denied to the agent":   {nil, []string{"probe_echo", "probe_fault"}, "probe_write"},
		"outside this run":      {[]string{"probe_fault"}, []string{"probe_fault"}, "probe_echo"},
		"narrowing never opens": {[]string{"*"}, []string{"probe_echo", "probe_fault"}, "mcp__pawgate__probe_write"},
		"no such tool":          {nil, []string{"probe_echo", "probe_fault"}, "rm_rf"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			p, model := s.script(wants(c.call, `{"text":"x"}`), says("refused"))
			if _, err := s.run(model, router.Identity{Tools: c.narrow}, loop.Request{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.listed, p.asked[0].tools()); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
			if got := p.results(); len(got) != 1 || !strings.Contains(got[0], `"reason":"unknown_tool"`) {
				t.Errorf("the model saw %q", got)
			}
			if n := s.count(`select count(*) from audit where door = 'loop' and decision = 'refused'`); n != 1 {
				t.Errorf("%d refusals on record", n)
			}
		})
	}
}

// A fault of a tool and an approval that is needed go to the model as they are.
func TestFaultsGoBack(t *testing.T) {
	s := newStage(t)
	s.exec(`update agents set denied_tools = '{}', approval_required_tools = '{probe_write}'`)
	p, model := s.script(wants("probe_fault", `{}`, "probe_write", `{"text":"x"}`, "probe_echo", `{"text":5}`, "probe_echo", `{"text":`), says("well"))
	if _, err := s.run(model, router.Identity{}, loop.Request{}); err != nil {
		t.Fatal(err)
	}
	got := p.results()
	for i, want := range []string{
		`{"status":"error","error":"the probe is busy","reason":"probe_busy","retry_after_ms":3000}`,
		`"reason":"approval_required"`, `"reason":"invalid_argument"`, `"reason":"invalid_argument"`,
	} {
		if len(got) != 4 || !strings.Contains(got[i], want) {
			t.Errorf("call %d: %q, want %s", i, got, want)
		}
	}
	if n := s.count(`select count(*) from approvals where agent_id = 'alice' and state = 'pending'`); n != 1 {
		t.Errorf("%d approvals wait", n)
	}
}

// A stop ends a run before it costs another completion.
func TestStoppedAgent(t *testing.T) {
	s := newStage(t)
	s.exec(`insert into stops (agent_id, reason, stopped_by) values ('alice', 'smoke', 'test')`)
	p, model := s.script()
	got, err := s.run(model, router.Identity{}, loop.Request{})
	f, ok := fault.Of(err)
	if !ok || f.Reason != fault.Stopped || got.End != loop.Failed || len(p.asked) != 0 {
		t.Errorf("%+v, %v, asked %d times", got, err, len(p.asked))
	}
}

// A list that changes while a run lasts holds from the next completion on.
func TestRevokedDuringARun(t *testing.T) {
	s := newStage(t)
	p, model := s.script(wants("probe_echo", `{"text":"x"}`), says("done"))
	gate := revoking{s.router.LoopDoor(router.Identity{Agent: "alice"}), func() { s.exec(`update agents set allowed_tools = '{probe_fault}'`) }}
	if _, err := loop.New(loop.Options{Gate: gate, Model: model, Meter: s.meter}).Run(t.Context(), loop.Request{Agent: "alice", Prompt: "go"}); err != nil {
		t.Fatal(err)
	}
	if got := p.results(); !strings.Contains(got[0], "unknown_tool") || slices.Contains(p.asked[1].tools(), "probe_echo") {
		t.Errorf("saw %q, then listed %v", got, p.asked[1].tools())
	}
}

type revoking struct {
	loop.Gate
	revoke func()
}

func (g revoking) Call(ctx context.Context, name string, arguments []byte, key string) ([]byte, bool) {
	g.revoke()
	return g.Gate.Call(ctx, name, arguments, key)
}

// The ledger keeps each completion once, at its price.
func TestLedger(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	ledger := loop.Ledger{DB: db}
	if _, err := db.Exec(t.Context(), `insert into usage_prices (version, name, input, output, cache_read) values ('test', 'claude-x', 3000000, 15000000, 300000)`); err != nil {
		t.Fatal(err)
	}
	spent := loop.Spent{ID: "run/1", At: time.Now(), Provider: "anthropic", Model: "claude-x-20260101",
		Request: &loop.Request{Agent: "alice", Session: "s", User: "u", Task: "t", Type: "cron", Model: "claude-x"},
		Usage:   chat.Usage{Input: 1000, Output: 100, CacheRead: 10_000}}
	for range 2 {
		micros, priced, err := ledger.Record(t.Context(), spent)
		if err != nil || !priced || micros != 3000+1500+3000 {
			t.Errorf("%d %v %v", micros, priced, err)
		}
	}
	var rows int
	if err := db.QueryRow(t.Context(), `select count(*) from usage where source = 'loop' and agent_id = 'alice' and session_id = 's' and user_id = 'u' and task_id = 't'
		and request_type = 'cron' and asked_model = 'claude-x' and cache_read = 10000`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
	spent.Model, spent.ID = "nobody-knows", "run/2"
	if micros, priced, err := ledger.Record(t.Context(), spent); err != nil || priced || micros != 0 {
		t.Errorf("unknown: %d %v %v", micros, priced, err)
	}
	for model, want := range map[string]bool{"claude-x": true, "nobody-knows": false} {
		if got, err := ledger.Priced(t.Context(), "anthropic", model); err != nil || got != want {
			t.Errorf("%s priced: %v %v", model, got, err)
		}
	}
}

// The same run over Anthropic's Messages API: turns alternate, every call has
// its result in the turn that follows, and signed thoughts go back unchanged.
func TestRunOverMessagesAPI(t *testing.T) {
	s := newStage(t)
	type block struct {
		Type, Text, ID, Signature string
		ToolUseID                 string `json:"tool_use_id"`
		Content                   string
		IsError                   bool `json:"is_error"`
	}
	type question struct {
		Messages []struct {
			Role    string
			Content []block
		}
		Tools []struct{ Name string }
	}
	var asked []question
	answers := []string{
		`{"model":"claude-x","stop_reason":"tool_use","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"I look."},
			{"type":"tool_use","id":"t1","name":"probe_echo","input":{"text":"hi"}},{"type":"tool_use","id":"t2","name":"probe_write","input":{"text":"x"}}],
			"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20}}`,
		`{"model":"claude-x","stop_reason":"end_turn","content":[{"type":"text","text":"done"}],"usage":{"input_tokens":10,"output_tokens":5}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		asked = append(asked, q)
		_, _ = w.Write([]byte(answers[min(len(asked), len(answers))-1]))
	}))
	t.Cleanup(server.Close)
	model, err := chat.New(chat.Config{API: chat.Anthropic, URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.run(model, router.Identity{}, loop.Request{Model: "claude-x"})
	if err != nil || got.Answer != "done" || got.Usage != (chat.Usage{Input: 20, Output: 10, CacheRead: 100, CacheWrite5m: 20}) {
		t.Fatalf("%+v, %v", got, err)
	}
	last := asked[1].Messages
	if len(last) != 3 || last[0].Role != "user" || last[1].Role != "assistant" || last[2].Role != "user" || last[1].Content[0].Signature != "sig" {
		t.Fatalf("turns %+v", last)
	}
	results := last[2].Content
	if len(results) != 2 || results[0].ToolUseID != "t1" || results[0].IsError || results[0].Content != `{"status":"ok","text":"alice: hi"}` ||
		results[1].ToolUseID != "t2" || !results[1].IsError || !strings.Contains(results[1].Content, "unknown_tool") {
		t.Errorf("results %+v", results)
	}
	if len(asked[0].Tools) != 2 {
		t.Errorf("tools %+v", asked[0].Tools)
	}
}
