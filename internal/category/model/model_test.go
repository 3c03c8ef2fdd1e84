package model_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"pawgate/internal/category/model"
	"pawgate/internal/client/hub"
	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/gguf/gguftest"
	"pawgate/internal/client/llama/llamatest"
	"pawgate/internal/tool"
)

func TestMain(m *testing.M) { llamatest.Main(m) }

// bench is the category over a host with a fake llama-server.
type bench struct {
	host *llama.Host
	cat  tool.Category
}

func setup(t *testing.T, mode string) bench {
	t.Helper()
	return setupWith(t, llama.Config{Server: llamatest.Program(t, llamatest.Shebang, mode)})
}

func setupWith(t *testing.T, cfg llama.Config) bench {
	t.Helper()
	return setupHub(t, cfg, hub.Config{URL: "http://127.0.0.1:1"})
}

// setupHub is setupWith and a hub.
func setupHub(t *testing.T, cfg llama.Config, at hub.Config) bench {
	t.Helper()
	cfg.Data = t.TempDir()
	host, err := llama.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	client, err := hub.New(at)
	if err != nil {
		t.Fatal(err)
	}
	downloads := hub.NewDownloads(client, host.Models.Root())
	t.Cleanup(downloads.Close)
	return bench{host, model.New(host, downloads, time.Now)}
}

func (b bench) put(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.host.Models.Dir(), name), content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (b bench) tiny(t *testing.T, names ...string) bench {
	t.Helper()
	for _, name := range names {
		b.put(t, name+".gguf", gguftest.Tiny())
	}
	return b
}
