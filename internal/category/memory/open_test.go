package memory_test

import (
	"testing"

	"github.com/kelseyhightower/envconfig"

	"pawgate/internal/category/memory"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
)

// TestOpen opens the category the way a function does: from the environment.
func TestOpen(t *testing.T) {
	url := postgrestest.CloneURL(t)
	t.Setenv("DATABASE_URL", url)
	t.Setenv("DATABASE_POOLED", "true")
	t.Setenv("EMBEDDINGS_URL", "http://127.0.0.1:1/v1") // nobody is there: search goes on by words
	var cfg memory.Config
	if err := envconfig.Process("", &cfg); err != nil {
		t.Fatal(err)
	}
	if cfg.URL != url || !cfg.Pooled || cfg.Embeddings.URL == "" {
		t.Fatalf("configuration %+v", cfg)
	}
	c, err := memory.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	addAgent(t, postgrestest.Pool(t, cfg.Config), "a")
	store(t, c, "a", "from the environment")
	if got := contents(t, c, "a", "environment"); len(got) != 1 {
		t.Errorf("found %q", got)
	}
}

func TestOpenAway(t *testing.T) {
	var cfg memory.Config
	cfg.URL = "postgres://nobody@127.0.0.1:1/none"
	c, err := memory.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	tooltest.Fault(t, c, tooltest.Who("a"), "memory_search", `{"query":"tea"}`, "unavailable")
	cfg.URL = "this is no address"
	if _, err := memory.Open(t.Context(), cfg); err == nil {
		t.Error("a broken address is accepted")
	}
}
