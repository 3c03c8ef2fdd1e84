package inference

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/supervise"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed mode.sql
	modeSQL string
	//go:embed set_mode.sql
	setModeSQL string
)

// Mode says where prompts may be answered.
type Mode string

// The modes. Auto is in force until somebody sets another.
const (
	Auto   Mode = "auto"
	Local  Mode = "local"
	Remote Mode = "remote"
	Off    Mode = "off"
)

type modeArgs struct {
	Mode string `json:"mode,omitempty" doc:"Sets it; left out: only shows" enum:"auto,local,remote,off"`
}

type modeResult struct {
	setting
	Changed bool     `json:"changed"`
	Answers string   `json:"answers"` // who would answer a prompt now: local, remote or nobody
	Why     string   `json:"why"`
	Loaded  []string `json:"loaded"` // models that are ready
	Remote  bool     `json:"remote_configured"`
}

// setting is the mode in force and who set it; nobody, when it is the default.
type setting struct {
	Mode  Mode       `json:"mode"`
	SetBy string     `json:"set_by,omitzero"`
	SetAt *time.Time `json:"set_at,omitzero"`
}

// mode shows the mode, or sets it for every agent and host, until it is set
// again. It starts nothing. It fails with fault.NotConfigured for mode remote
// without a remote endpoint.
func (c inference) mode(ctx context.Context, who caller.Caller, a modeArgs) (modeResult, error) {
	before, err := ReadMode(ctx, c.db)
	if err != nil {
		return modeResult{}, err
	}
	r := modeResult{setting: before}
	if a.Mode != "" {
		if r.setting, err = c.setMode(ctx, who, Mode(a.Mode)); err != nil {
			return modeResult{}, err
		}
		r.Changed = r.Mode != before.Mode
	}
	r.Loaded, r.Remote = c.ready(ctx), c.remote.URL != ""
	r.Answers, r.Why = whoAnswers(r.Mode, r.Loaded, r.Remote)
	return r, nil
}

func (c inference) setMode(ctx context.Context, who caller.Caller, mode Mode) (setting, error) {
	if mode == Remote && c.remote.URL == "" {
		return setting{}, fault.New(fault.NotConfigured, "no remote endpoint is configured; the operator sets PAWGATE_REMOTE_URL first")
	}
	s, err := postgres.One[setting](ctx, c.db, setModeSQL, pgx.StrictNamedArgs{
		"mode": string(mode), "by": who.Agent + " (" + who.Credential + ")", "now": c.now()})
	if err != nil {
		return setting{}, fmt.Errorf("write inference mode: %w", err)
	}
	return s, nil
}

// ready are the models that can answer now.
func (c inference) ready(ctx context.Context) []string { return readyOf(c.host.Loaded(ctx)) }

func readyOf(servers []llama.Server) []string {
	names := []string{}
	for _, v := range servers {
		if v.State == supervise.Ready {
			names = append(names, v.Name)
		}
	}
	return names
}

// whoAnswers explains what a mode comes to with what is there.
func whoAnswers(mode Mode, loaded []string, remote bool) (answers, why string) {
	switch {
	case mode == Off:
		return "nobody", "inference is off"
	case mode == Remote && remote:
		return "remote", "the mode is remote"
	case mode == Remote:
		return "nobody", "the mode is remote, and no remote endpoint is configured"
	case len(loaded) > 0:
		return "local", loaded[0] + " is loaded"
	case mode == Local:
		return "nobody", "the mode is local, and no model is loaded"
	case remote:
		return "remote", "no model is loaded"
	}
	return "nobody", "no model is loaded, and no remote endpoint is configured"
}

// ReadMode is the mode in force.
func ReadMode(ctx context.Context, db postgres.DB) (setting, error) {
	s, err := postgres.One[setting](ctx, db, modeSQL, pgx.StrictNamedArgs{})
	if errors.Is(err, pgx.ErrNoRows) {
		return setting{Mode: Auto}, nil
	}
	if err != nil {
		return setting{}, fmt.Errorf("read inference mode: %w", err)
	}
	return s, nil
}
