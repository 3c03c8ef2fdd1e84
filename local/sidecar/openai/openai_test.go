package openai_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/category/inference"
	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/gguf/gguftest"
	"pawgate/internal/client/llama/llamatest"
	"pawgate/internal/client/llama/supervise"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/local/sidecar/openai"
)

func TestMain(m *testing.M) { llamatest.Main(m) }

const key = "paw_test_key"

// bench is the endpoint, its database, and its host with a fake server.
type bench struct {
	url  string
	db   *pgxpool.Pool
	host *llama.Host
}

func setup(t *testing.T, s inference.Settings) bench {
	t.Helper()
	host, err := llama.Open(llama.Config{Data: t.TempDir(), Server: llamatest.Program(t, llamatest.Shebang, "ok")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	b := bench{db: postgrestest.Clone(t), host: host}
	b.exec(t, `insert into agents (id, state) values ('a', 'active'), ('paused', 'paused'), ('gone', 'archived'), ('other', 'active')`)
	b.key(t, "k1", "a", key, "*")
	s.Feedback = true
	srv := httptest.NewServer(openai.Handler{DB: b.db, Host: host, Settings: s, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	t.Cleanup(srv.Close)
	b.url = srv.URL
	return b
}

func (b bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (b bench) key(t *testing.T, id, agent, secret string, scopes ...string) {
	t.Helper()
	sum := sha256.Sum256([]byte(secret))
	b.exec(t, `insert into api_keys (id, agent_id, hint, hash, scopes) values ($1, $2, '', $3, $4)`, id, agent, sum[:], scopes)
}

// load loads a model with the name.
func (b bench) load(t *testing.T, name string) bench {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.host.Models.Dir(), name+".gguf"), gguftest.Tiny(), 0o644); err != nil {
		t.Fatal(err)
	}
	loading, err := b.host.LoadModel(t.Context(), "model_id", name, llama.Load{Wait: 20 * time.Second})
	if err != nil || loading.Server.State != supervise.Ready {
		t.Fatalf("load: %+v, %v", loading, err)
	}
	return b
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) code(t *testing.T) string {
	t.Helper()
	var e struct {
		Error struct{ Code, Message, Type string }
	}
	if err := json.Unmarshal([]byte(a.body), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Errorf("not an error of the API: %d %s", a.status, a.body)
	}
	return e.Error.Code
}

func (b bench) ask(t *testing.T, method, path, secret, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read answer: %v after %s", err, text)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func say(text string) string {
	return `{"model":"tiny","messages":[{"role":"system","content":"s"},{"role":"user","content":"` + text + `"}]}`
}

func TestHandler_INF_13_key_on_every_path(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{}).load(t, "tiny")
	for _, path := range []string{"/", "/v1", "/v1/models", "/v1/chat/completions", "/v1/embeddings", "/v1/completions", "/health", "/props", "/slots", "/metrics",
		"/tokenize", "/completion", "/v1/../props", "//props", "/models", "/nothing"} {
		for _, method := range []string{"GET", "POST", "HEAD", "OPTIONS", "DELETE"} {
			for _, secret := range []string{"", "wrong", "paw_test_ke"} {
				if got := b.ask(t, method, path, secret, `{}`); got.status != http.StatusUnauthorized {
					t.Errorf("%s %s with key %q: %d %s", method, path, secret, got.status, got.body)
				}
			}
		}
	}
	for _, path := range []string{"/props", "/slots", "/tokenize", "/completion", "/v1/completions", "/health", "/v1/chat/completions/"} {
		if got := b.ask(t, "POST", path, key, `{}`); got.status != http.StatusNotFound {
			t.Errorf("%s is the server's own business: %d %s", path, got.status, got.body)
		}
	}
}

func TestHandler_who_may(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{}).load(t, "tiny")
	b.key(t, "k2", "paused", "paused", "*")
	b.key(t, "k3", "gone", "gone", "*")
	b.key(t, "k4", "a", "reader", "memory:read")
	b.key(t, "k5", "a", "executor", "inference:execute")
	b.key(t, "k6", "a", "revoked", "*")
	b.key(t, "k7", "a", "expired", "*")
	b.exec(t, `update api_keys set revoked_at = now() where id = 'k6'`)
	b.exec(t, `update api_keys set expires_at = now() - interval '1 s' where id = 'k7'`)
	for secret, want := range map[string]int{key: 200, "executor": 200, "paused": 403, "gone": 401, "reader": 403, "revoked": 401, "expired": 401} {
		if got := b.ask(t, "GET", "/v1/models", secret, ""); got.status != want {
			t.Errorf("%s: %d %s, want %d", secret, got.status, got.body, want)
		}
	}
	b.exec(t, `insert into stops (agent_id, stopped_by) values (null, 'test')`)
	if got := b.ask(t, "POST", "/v1/chat/completions", key, say("hi")); got.status != 403 || got.code(t) != "stopped" {
		t.Errorf("stopped: %d %s", got.status, got.body)
	}
	var used int
	if err := b.db.QueryRow(t.Context(), `select count(*) from api_keys where id = 'k1' and last_used_at is not null`).Scan(&used); err != nil || used != 1 {
		t.Errorf("the use of the key is not noted (%v)", err)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{})
	if got := b.ask(t, "GET", "/v1/models", key, ""); got.body != `{"object":"list","data":[]}` {
		t.Errorf("nothing loaded: %s", got.body)
	}
	b.load(t, "tiny")
	if got := b.ask(t, "GET", "/v1/models", key, ""); !strings.Contains(got.body, `"id":"tiny","object":"model"`) {
		t.Errorf("loaded: %s", got.body)
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{}).load(t, "tiny")
	for _, model := range []string{`"model":"tiny",`, `"model":"tiny.gguf",`, ``} {
		got := b.ask(t, "POST", "/v1/chat/completions", key, `{`+model+`"messages":[{"role":"user","content":"hello"}]}`)
		if got.status != 200 || !strings.Contains(got.body, `hello bias=`) || !strings.Contains(got.body, `"model":"tiny"`) {
			t.Errorf("%s %d %s", model, got.status, got.body)
		}
	}
}

func TestChat_streams(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{}).load(t, "tiny")
	req, err := http.NewRequestWithContext(t.Context(), "POST", b.url+"/v1/chat/completions",
		strings.NewReader(`{"stream":true,"messages":[{"role":"user","content":"one two three"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var events []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			events = append(events, data)
		}
	}
	if len(events) < 4 || events[len(events)-1] != "[DONE]" || !strings.Contains(events[0], `"one "`) || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("events: %q", events)
	}
}

func TestChat_refuses(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{}).load(t, "tiny")
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"no_JSON":          {`{"messages":`, 400, "invalid_request"},
		"no_object":        {`[]`, 400, "invalid_request"},
		"null":             {`null`, 400, "invalid_request"},
		"no_messages":      {`{"model":"tiny"}`, 400, "invalid_request"},
		"none":             {`{"messages":[]}`, 400, "invalid_request"},
		"model_is_no_name": {`{"model":7,"messages":[{}]}`, 400, "invalid_request"},
		"another_model":    {`{"model":"other","messages":[{"role":"user","content":"x"}]}`, 404, "not_found"},
		"INF-01_model":     {`{"model":"../../etc/passwd","messages":[{"role":"user","content":"x"}]}`, 404, "not_found"},
		"too_large":        {`{"messages":"` + strings.Repeat("x", 21<<20) + `"}`, 413, "too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := b.ask(t, "POST", "/v1/chat/completions", key, c.body); got.status != c.status || got.code(t) != c.code {
				t.Errorf("got %d %.200s", got.status, got.body)
			}
		})
	}
}

// A message that the chat template does not take is the caller's mistake, and
// the server lives on.
func TestChat_INF_11_template(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{}).load(t, "tiny")
	got := b.ask(t, "POST", "/v1/chat/completions", key, say("template"))
	if got.status != 400 || got.code(t) != "chat_template" || strings.Contains(got.body, "/models/") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := b.ask(t, "POST", "/v1/chat/completions", key, say("hi")); got.status != 200 {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
}

func TestChat_nothing_loaded(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{})
	got := b.ask(t, "POST", "/v1/chat/completions", key, `{"messages":[{"role":"user","content":"hi"}]}`)
	if got.status != 404 || got.code(t) != "not_found" || !strings.Contains(got.body, "model_load") {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

// The server dies in the middle of its answer: the client is told, and after
// the restart it works again.
func TestChat_server_dies(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{}).load(t, "tiny")
	got := b.ask(t, "POST", "/v1/chat/completions", key, `{"stream":true,"messages":[{"role":"user","content":"die"}]}`)
	if got.status != 200 || !strings.Contains(got.body, `"code":"model_lost"`) || strings.Contains(got.body, "[DONE]") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if got = b.ask(t, "POST", "/v1/chat/completions", key, say("hi")); got.status == 200 {
			return
		}
		if got.status != 502 && got.status != 503 || time.Now().After(end) {
			t.Fatalf("while it restarts: %d %s", got.status, got.body)
		}
	}
}

// A client that goes away ends the work for it.
func TestChat_client_goes_away(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{}).load(t, "tiny")
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", b.url+"/v1/chat/completions", bytes.NewReader([]byte(say("slow"))))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	time.AfterFunc(200*time.Millisecond, cancel)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		t.Fatalf("an answer: %d", resp.StatusCode)
	}
	for end := time.Now().Add(5 * time.Second); b.host.Ready()[0].Busy > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server still works for a client that is gone")
		}
	}
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{}).load(t, "tiny")
	if got := b.ask(t, "POST", "/v1/embeddings", key, `{"input":"four"}`); got.status != 200 || !strings.Contains(got.body, `"embedding":[4]`) {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := b.ask(t, "POST", "/v1/embeddings", key, `{"model":"tiny"}`); got.status != 400 {
		t.Errorf("no input: %d %s", got.status, got.body)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	var seen []string
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
		_, _ = w.Write([]byte(`{"from":"remote"}`))
	}))
	t.Cleanup(remote.Close)
	b := setup(t, inference.Settings{RemoteURL: remote.URL + "/v1", RemoteKey: "sk", RemoteModel: "large"})
	chat := func(model string) string {
		got := b.ask(t, "POST", "/v1/chat/completions", key, `{`+model+`"messages":[{"role":"user","content":"hi"}]}`)
		switch {
		case got.status == 200 && strings.Contains(got.body, "remote"):
			return "remote"
		case got.status == 200:
			return "local"
		}
		return got.code(t)
	}
	mode := func(m string) {
		b.exec(t, `insert into inference_settings (mode, set_by) values ($1, 'test') on conflict (id) do update set mode = excluded.mode`, m)
	}
	if got := chat(""); got != "remote" {
		t.Errorf("auto, nothing loaded: %s", got)
	}
	b.load(t, "tiny")
	for _, c := range []struct{ mode, model, want string }{
		{"auto", "", "local"}, {"auto", `"model":"large",`, "remote"}, {"auto", `"model":"nope",`, "not_found"},
		{"local", "", "local"}, {"local", `"model":"large",`, "not_found"},
		{"remote", "", "remote"}, {"remote", `"model":"tiny",`, "remote"}, {"off", "", "inference_off"},
	} {
		mode(c.mode)
		if got := chat(c.model); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.mode, c.model, got, c.want)
		}
	}
	for _, s := range seen {
		if !strings.HasPrefix(s, "/v1/chat/completions Bearer sk ") || !strings.Contains(s, `"model":"large"`) || strings.Contains(s, key) {
			t.Errorf("the remote endpoint got %s", s)
		}
	}
}

// What an agent said of an answer reaches its next similar prompt, and nobody
// else's.
func TestChat_feedback(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{}).load(t, "tiny")
	b.key(t, "k2", "other", "other", "*")
	b.exec(t, `insert into inference_feedback (agent_id, sketch, response, reward) values ('a', $1, 'crontab', 1)`, inference.Sketch("back up the database"))
	biased := func(secret, body string) bool {
		return strings.Contains(b.ask(t, "POST", "/v1/chat/completions", secret, body).body, `bias={\"7\":`)
	}
	if !biased(key, say("back up the database")) {
		t.Error("the feedback has no effect")
	}
	if biased(key, say("write a poem about the sea")) || biased("other", say("back up the database")) {
		t.Error("the feedback has an effect where it should have none")
	}
	got := b.ask(t, "POST", "/v1/chat/completions", key, `{"logit_bias":{"1":1},"messages":[{"role":"user","content":"back up the database"}]}`)
	if !strings.Contains(got.body, `bias={\"1\":1}`) {
		t.Errorf("a bias of the request's own: %s", got.body)
	}
}
