package router

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/card"
	"pawgate/internal/catalog"
	"pawgate/internal/licence"
	"pawgate/internal/oauth"
	"pawgate/internal/postgres"
)

// Settings are what a router reads from its environment.
type Settings struct {
	postgres.Config
	Env            string            `envconfig:"PAWGATE_ENV" default:"local" desc:"local, staging or prod; part of every key"`
	AllowedHosts   []string          `envconfig:"PAWGATE_ALLOWED_HOSTS" desc:"Host headers that are served, separated by commas; empty: any"`
	AllowedOrigins []string          `envconfig:"PAWGATE_ALLOWED_ORIGINS" desc:"browser origins that may call, separated by commas"`
	PublicURL      string            `envconfig:"PAWGATE_PUBLIC_URL" desc:"the router as people reach it, for links in approval cards"`
	Timeout        time.Duration     `envconfig:"PAWGATE_CALL_TIMEOUT" default:"5m" desc:"longest call; behind an HTTP API below 29s"`
	Functions      map[string]string `ignored:"true" prefix:"PAWGATE_FUNCTION_" desc:"name or ARN of a category's Lambda function, as PAWGATE_FUNCTION_MEMORY"`
	SidecarURL     string            `envconfig:"PAWGATE_SIDECAR_URL" desc:"sidecar host that serves model, inference and llamafile"`
	AssertionKey   string            `envconfig:"PAWGATE_ASSERTION_KEY" desc:"signs calls to functions and the sidecar (base64, Ed25519 seed)"`
	AWS            AWS
	OAuth          oauth.Config
	Licence        licence.Config
	LogLevel       slog.Level `envconfig:"PAWGATE_LOG_LEVEL" default:"INFO" desc:"DEBUG, INFO, WARN or ERROR"`
}

// SidecarCategories are served by the sidecar host when one is configured.
var sidecarCategories = []string{"model", "inference", "llamafile"}

// RemoteBackends are the backends that the settings name: functions and the
// sidecar. It refuses a signing key that is missing or broken, because a call
// without an assertion would be refused later, one at a time.
func (s Settings) RemoteBackends(db postgres.DB) (map[string]Backend, error) {
	backends := map[string]Backend{}
	if len(s.Functions) == 0 && s.SidecarURL == "" {
		return backends, nil
	}
	key, err := caller.ParsePrivateKey(s.AssertionKey)
	if err != nil {
		return nil, fmt.Errorf("PAWGATE_ASSERTION_KEY: %w", err)
	}
	signer := caller.NewSigner(key, time.Now)
	client := sync.OnceValues(func() (Invoker, error) { return NewInvoker(s.AWS) })
	for category, name := range s.Functions {
		backends[category] = Function{Client: client, Name: name, Signer: signer, Now: time.Now}
	}
	if s.SidecarURL != "" {
		if err := CheckSidecarURL(s.SidecarURL); err != nil {
			return nil, err
		}
		sidecar := Sidecar{URL: strings.TrimRight(s.SidecarURL, "/"), Client: NewSidecarClient(), Signer: signer, DB: db, Now: time.Now}
		for _, category := range sidecarCategories {
			backends[category] = sidecar
		}
	}
	return backends, nil
}

// Open is a router over the embedded catalogue with the remote backends of its
// settings: what the router's function serves.
func Open(ctx context.Context, s Settings, version string, log *slog.Logger) (*Router, error) {
	tools, err := catalog.Load()
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(ctx, s.Config)
	if err != nil {
		return nil, err
	}
	backends, err := s.RemoteBackends(db)
	if err != nil {
		return nil, err
	}
	cfg, err := s.Router(version, tools, backends, db, log)
	if err != nil {
		return nil, err
	}
	return New(cfg), nil
}

// Router is the router's configuration with these settings.
func (s Settings) Router(version string, tools *catalog.Catalog, backends map[string]Backend, db postgres.DB, log *slog.Logger) (Config, error) {
	cfg := Config{Version: version, Catalog: tools, Backends: backends, DB: db, Log: log, Now: time.Now,
		AllowedHosts: s.AllowedHosts, AllowedOrigins: s.AllowedOrigins, Timeout: s.Timeout}
	var err error
	if cfg.Cards.Links.Base, err = card.ParseBase(s.PublicURL); err != nil {
		return Config{}, err
	}
	if cfg.Licence, err = s.Licence.Check(cfg.Now()); err != nil {
		return Config{}, err
	}
	if notice := cfg.Licence.Notice(cfg.Now()); notice != "" {
		log.Warn(notice)
	}
	if cfg.Resource, err = oauth.NewResource(s.OAuth); err != nil || !s.OAuth.Enabled() {
		return cfg, err
	}
	cfg.Tokens, err = oauth.New(s.OAuth, cfg.Now)
	return cfg, err
}
