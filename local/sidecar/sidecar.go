// Package sidecar is the long-running host of the categories that Lambda
// cannot run: local models, inference, llamafiles. It serves the same small
// call as a function, over HTTPS or on loopback, and tells Postgres every
// minute what it is, so that the router can say so when the host is away.
//
// It answers no call without the router's assertion and never listens on a
// network without TLS.
package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"pawgate/internal/category/inference"
	"pawgate/internal/client/hub"
	"pawgate/internal/client/llama"
	"pawgate/internal/postgres"
	"pawgate/internal/serve"
	"pawgate/internal/tool"
	"pawgate/local/listen"
)

// Config is what the sidecar reads from its environment.
type Config struct {
	Serve     serve.Config
	Postgres  postgres.Config
	Llama     llama.Config
	Hub       hub.Config
	Inference inference.Settings

	Addr     string `envconfig:"PAWGATE_SIDECAR_ADDR" default:"127.0.0.1:8181" desc:"address that sidecar listens on; beyond loopback TLS is needed"`
	CertFile string `envconfig:"PAWGATE_SIDECAR_CERT" desc:"certificate chain of the sidecar, PEM file"`
	KeyFile  string `envconfig:"PAWGATE_SIDECAR_CERT_KEY" desc:"private key of that certificate, PEM file"`
	ID       string `envconfig:"PAWGATE_SIDECAR_ID" desc:"name of the sidecar in its reports; unset: the host's name"`
}

// sidecarConns is how many connections the sidecar may hold.
const sidecarConns = 8

// Check says what is wrong with the settings that need nothing else to be
// looked at: address, certificate and key.
func (cfg Config) Check() error {
	if _, err := cfg.security(); err != nil {
		return err
	}
	_, err := serve.NewHost(tool.Category{}, serve.Config{PublicKey: cfg.Serve.PublicKey}, time.Now)
	return err
}

// Run serves until ctx ends, lets running calls finish, and stops what it
// started. ready, if not nil, is told the address once calls are answered.
func Run(ctx context.Context, cfg Config, log *slog.Logger, ready func(net.Addr)) error {
	cfg.ID = cmp.Or(cfg.ID, hostName())
	security, err := cfg.security()
	if err != nil {
		return err
	}
	if cfg.Postgres.URL == "" {
		return errors.New("DATABASE_URL is not set: the sidecar keeps its report and its settings in the database of the router")
	}
	cfg.Postgres.MaxConns = max(cfg.Postgres.MaxConns, sidecarConns)
	db, err := postgres.Open(ctx, cfg.Postgres)
	if err != nil {
		return err
	}
	defer db.Close()
	host, err := llama.Open(cfg.Llama)
	if err != nil {
		return fmt.Errorf("open models: %w", err)
	}
	defer host.Close()
	client, err := hub.New(cfg.Hub)
	if err != nil {
		return err
	}
	downloads := hub.NewDownloads(client, host.Models.Root())
	defer downloads.Close()
	handler, categories, err := cfg.handler(db, host, downloads)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; PAWGATE_SIDECAR_ADDR names another address", cfg.Addr, err)
	}
	r := reporter{id: cfg.ID, categories: categories, host: host, db: db, log: log, started: time.Now(), tls: security != nil}
	return r.during(ctx, func(ctx context.Context) error {
		if ready != nil {
			ready(listener.Addr())
		}
		return listen.Serve(ctx, listener, security.config(), handler)
	})
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "sidecar"
	}
	return name
}
