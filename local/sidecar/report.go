package sidecar

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/hardware"
	"pawgate/internal/postgres"
)

//go:embed report.sql
var reportSQL string

// reportEvery is how often the sidecar says what it is.
const reportEvery = time.Minute

// reportTimeout bounds one report, probing the hardware included.
const reportTimeout = 15 * time.Second

// reporter writes what this host is to Postgres.
type reporter struct {
	id         string
	categories []string
	host       *llama.Host
	db         postgres.DB
	log        *slog.Logger
	started    time.Time
	tls        bool
}

// report is what the router shows when it cannot reach the host. It names no
// path, no address and no key.
type report struct {
	State     string           `json:"state"` // running or stopped
	StartedAt time.Time        `json:"started_at"`
	TLS       bool             `json:"tls"`
	Hardware  hardware.Info    `json:"hardware"`
	Room      *hardware.Budget `json:"room_for_model"`
	Models    []modelReport    `json:"models"`
	Loaded    []llama.Server   `json:"loaded"`
}

type modelReport struct {
	ModelID   string `json:"model_id"`
	SizeBytes int64  `json:"size_bytes"`
}

// during reports before and while fn runs, and once more when it is over. A
// database that is away does not keep the host from serving.
func (r reporter) during(ctx context.Context, fn func(context.Context) error) error {
	background, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.repeat(background)
	}()
	err := fn(ctx)
	stop()
	<-done
	r.write(context.WithoutCancel(ctx), "stopped")
	return err
}

func (r reporter) repeat(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		r.write(ctx, "running")
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r reporter) write(ctx context.Context, state string) {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	body, err := json.Marshal(r.read(ctx, state))
	if err == nil {
		_, err = postgres.Exec(ctx, r.db, reportSQL, pgx.StrictNamedArgs{"id": r.id, "categories": r.categories, "report": body})
	}
	if err != nil && ctx.Err() == nil {
		r.log.Warn("write sidecar report", "error", fmt.Errorf("report as %s: %w", r.id, err))
	}
}

func (r reporter) read(ctx context.Context, state string) report {
	info := r.host.Hardware.Read(ctx)
	rep := report{State: state, StartedAt: r.started.UTC(), TLS: r.tls, Hardware: info,
		Models: []modelReport{}, Loaded: []llama.Server{}}
	if state == "running" { // what is loaded ends with the host
		rep.Loaded = r.host.Loaded(ctx)
	}
	if room, ok := info.Budget(); ok {
		rep.Room = &room
	}
	entries, err := r.host.Models.List()
	if err != nil {
		r.log.Warn("list models for report", "error", err)
	}
	for _, e := range entries {
		rep.Models = append(rep.Models, modelReport{ModelID: e.ID, SizeBytes: e.Size})
	}
	return rep
}
