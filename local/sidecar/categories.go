package sidecar

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"pawgate/internal/category/inference"
	"pawgate/internal/category/llamafile"
	"pawgate/internal/category/model"
	"pawgate/internal/client/hub"
	"pawgate/internal/client/llama"
	"pawgate/internal/postgres"
	"pawgate/internal/serve"
	"pawgate/internal/tool"
	"pawgate/local/sidecar/openai"
)

// categories are what this host serves; they share the host's models.
func (cfg Config) categories(db postgres.DB, host *llama.Host, downloads *hub.Downloads) []tool.Category {
	return []tool.Category{
		model.New(host, downloads, time.Now),
		inference.New(db, host, cfg.Inference, time.Now),
		llamafile.New(host),
	}
}

// handler is everything that the sidecar answers, and the names of its
// categories.
func (cfg Config) handler(db postgres.DB, host *llama.Host, downloads *hub.Downloads) (http.Handler, []string, error) {
	cfg.Serve.SAMLocal = false // that exception is for functions
	hosts := map[string]*serve.Host{}
	var names []string
	for _, c := range cfg.categories(db, host, downloads) {
		h, err := serve.NewHost(c, cfg.Serve, time.Now)
		if err != nil {
			return nil, nil, fmt.Errorf("host category %s: %w", c.Name, err)
		}
		hosts[c.Name] = h
		names = append(names, c.Name)
	}
	calls := serve.Handler(hosts)
	mux := http.NewServeMux()
	mux.Handle("/call/", calls)
	mux.Handle("/healthz", calls)
	// All else needs an agent's key, whether there is something or not.
	mux.Handle("/", openai.Handler{DB: db, Host: host, Settings: cfg.Inference, Log: slog.Default(), Now: time.Now})
	return mux, names, nil
}
