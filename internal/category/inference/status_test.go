package inference_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/category/inference"
	"pawgate/internal/client/llama"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// bench is the category over a database and a host of its own.
type bench struct {
	tx   *pgxpool.Pool
	host *llama.Host
	cat  tool.Category
}

func setup(t *testing.T, s inference.Settings) bench {
	t.Helper()
	host, err := llama.Open(llama.Config{Data: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	// A database of its own: transactions that all insert the same agents
	// would wait for each other.
	tx := postgrestest.Clone(t)
	if _, err := tx.Exec(t.Context(), `insert into agents (id) values ('a'), ('b')`); err != nil {
		t.Fatal(err)
	}
	return bench{tx: tx, host: host, cat: inference.New(tx, host, s, func() time.Time { return noon })}
}

type status struct {
	Mode struct {
		Mode  string
		SetBy string `json:"set_by"`
	}
	Loaded []struct{ Name, State string }
	Found  []found
	Remote struct {
		State, Detail, Model string
		Models               []string
	}
}

type found struct {
	ModelID  string `json:"model_id"`
	Size     int64  `json:"size_bytes"`
	Complete bool
}

func TestInferenceStatus_nothing_here(t *testing.T) {
	t.Parallel()
	got := tooltest.OK[status](t, setup(t, inference.Settings{}).cat, tooltest.Who("a"), "inference_status", `{}`)
	want := status{Loaded: []struct{ Name, State string }{}, Found: []found{}}
	want.Mode.Mode = "auto"
	want.Remote.State, want.Remote.Models = "not_configured", []string{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestInferenceStatus_what_is_here(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{})
	for _, name := range []string{"tiny.gguf", "big-00001-of-00002.gguf"} {
		if err := os.WriteFile(filepath.Join(b.host.Models.Dir(), name), []byte("1234"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.tx.Exec(t.Context(), `insert into inference_settings (mode, set_by) values ('local', 'a (key1)')`); err != nil {
		t.Fatal(err)
	}
	got := tooltest.OK[status](t, b.cat, tooltest.Who("a"), "inference_status", `{}`)
	if got.Mode.Mode != "local" || got.Mode.SetBy != "a (key1)" {
		t.Errorf("mode: %+v", got.Mode)
	}
	if diff := cmp.Diff([]found{{"big", 4, false}, {"tiny", 4, true}}, got.Found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	out := tooltest.Call(t, b.cat, tooltest.Who("a"), "inference_status", `{}`)
	if strings.Contains(string(out.OK), b.host.Models.Dir()) {
		t.Errorf("the answer shows a path: %s", out.OK)
	}
}

func TestInferenceStatus_remote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc // nil: nobody listens
		want    string
	}{
		{"healthy", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sk-secret" {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"gpt-x"}]}`))
		}, "healthy"},
		{"wrong_key", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "refused"},
		{"broken", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "failing"},
		{"redirects_the_key", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, "failing"},
		{"something_else", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) }, "failing"},
		{"nobody", nil, "unreachable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(c.handler)
			t.Cleanup(srv.Close)
			if c.handler == nil {
				srv.Close()
			}
			b := setup(t, inference.Settings{RemoteURL: srv.URL + "/v1", RemoteKey: "sk-secret", RemoteModel: "gpt-x"})
			got := tooltest.OK[status](t, b.cat, tooltest.Who("a"), "inference_status", `{}`)
			if got.Remote.State != c.want || got.Remote.Model != "gpt-x" {
				t.Errorf("remote: %+v, want %s", got.Remote, c.want)
			}
			if out := tooltest.Call(t, b.cat, tooltest.Who("a"), "inference_status", `{}`); strings.Contains(string(out.OK), "sk-secret") {
				t.Errorf("the answer shows the key: %s", out.OK)
			}
		})
	}
}
