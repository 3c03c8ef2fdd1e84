// Package inference holds the tools that decide where a prompt is answered:
// by a model on the sidecar host, or by a remote provider.
//
// The mode says what is allowed. auto: a local model where one can answer, the
// remote one otherwise; local: never leave the host; remote: never load the
// host; off: nobody answers. It is one row in Postgres, so it outlives every
// process and holds on every host.
//
// The tools tell what is there at the moment of the call. They never start a
// model as a side effect, and never show a key or an address with one in it.
package inference

import (
	"context"
	"fmt"
	"time"

	"pawgate/internal/client/llama"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

// Config is what the category reads from its environment.
type Config struct {
	postgres.Config
	Llama llama.Config
	Settings
}

// Settings are the category's own.
type Settings struct {
	RemoteURL   string `envconfig:"PAWGATE_REMOTE_URL" desc:"OpenAI-compatible endpoint for prompts that do not stay on the host, up to /v1"`
	RemoteKey   string `envconfig:"PAWGATE_REMOTE_KEY" desc:"key of that endpoint"`
	RemoteModel string `envconfig:"PAWGATE_REMOTE_MODEL" desc:"model to ask of that endpoint"`
	Feedback    bool   `envconfig:"PAWGATE_FEEDBACK" default:"true" desc:"keep jitrl_feedback and apply it to local answers"`
	Router      Router
}

// Open opens the database and the host's models for this category alone. A
// process with several categories of the host opens them once and calls New.
func Open(ctx context.Context, cfg Config) (tool.Category, error) {
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open inference: %w", err)
	}
	host, err := llama.Open(cfg.Llama)
	if err != nil {
		db.Close()
		return tool.Category{}, fmt.Errorf("open inference: %w", err)
	}
	c := New(db, host, cfg.Settings, time.Now)
	c.Close = func() { _ = host.Close(); db.Close() }
	return c, nil
}

// New is the category over an open database and host. It does no I/O.
func New(db postgres.DB, host *llama.Host, s Settings, now func() time.Time) tool.Category {
	i := inference{db: db, host: host, remote: llama.NewEndpoint(s.RemoteURL, s.RemoteKey), settings: s, now: now}
	return tool.Category{Name: "inference", Tools: []tool.Tool{
		tool.Read("inference_status", "Tell the inference mode, the models loaded and found, and which endpoints answer.", i.status),
		tool.Write("inference_mode", "Show or set where prompts are answered: auto, local, remote or off. Holds for every agent.", i.mode, tool.Idempotent),
		tool.Read("route_query", "Tell whether a fast local, a strong local or a remote model should answer a prompt, and why.", i.route),
		tool.Write("jitrl_feedback", "Reward or punish a local model's answer; similar prompts of yours are answered accordingly.", i.feedback),
	}}
}

type inference struct {
	db       postgres.DB
	host     *llama.Host
	remote   llama.Endpoint
	settings Settings
	now      func() time.Time
}
