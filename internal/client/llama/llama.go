// Package llama is the local models of one host: the folders they lie in, the
// hardware they run on, and the servers (llama-server or a llamafile) that
// have them loaded.
//
// A Host is made once per process and shared by the categories that use it.
// It never reaches outside the host: downloads are package hub's.
package llama

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"pawgate/internal/client/llama/hardware"
	"pawgate/internal/client/llama/library"
	"pawgate/internal/client/llama/supervise"
)

// Config is where a host keeps its models.
type Config struct {
	Data       string `envconfig:"PAWGATE_DATA" desc:"folder of pawgate's data; unset: a per-user folder"`
	Models     string `envconfig:"PAWGATE_MODELS" desc:"folder of the GGUF models; unset: models in PAWGATE_DATA"`
	Llamafiles string `envconfig:"PAWGATE_LLAMAFILES" desc:"folder of the llamafiles; unset: llamafiles in PAWGATE_DATA"`

	Server       string        `envconfig:"PAWGATE_LLAMA_SERVER" default:"llama-server" desc:"llama-server program, a path or a name on PATH"`
	MaxLoaded    int           `envconfig:"PAWGATE_MODELS_LOADED" default:"1" desc:"most models loaded at a time"`
	IdleTTL      time.Duration `envconfig:"PAWGATE_MODEL_TTL" default:"30m" desc:"idle time after which a model is unloaded; 0: never"`
	StartTimeout time.Duration `envconfig:"PAWGATE_MODEL_START_TIMEOUT" default:"5m" desc:"longest start of a model"`
	Restarts     int           `envconfig:"PAWGATE_MODEL_RESTARTS" default:"5" desc:"crashes within ten minutes after which a model is given up"`
}

// Host is the local models of this machine.
type Host struct {
	Models     *library.Library
	Llamafiles *library.Library
	Hardware   hardware.Prober

	servers *supervise.Supervisor
	program string // of a llama-server
	idleTTL time.Duration
	// loopback talks to the servers: no proxy, no limit on an answer's time.
	loopback *http.Client

	mu       sync.Mutex
	reserved map[string]int64 // bytes, by models that are loading
	headers  map[headerKey]headerResult
}

// Open opens the folders, makes those that are missing, and takes over the
// servers that a killed process left.
func Open(cfg Config) (*Host, error) {
	data, err := cfg.dataDir()
	if err != nil {
		return nil, err
	}
	h := &Host{Hardware: hardware.Host(), program: cmp.Or(cfg.Server, "llama-server"), idleTTL: cfg.IdleTTL,
		loopback: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, DisableCompression: true}},
		reserved: map[string]int64{}, headers: map[headerKey]headerResult{}}
	if h.Models, err = library.OpenModels(or(cfg.Models, data, "models")); err != nil {
		return nil, fmt.Errorf("%w; set PAWGATE_MODELS to a folder you can write to", err)
	}
	if h.Llamafiles, err = library.OpenLlamafiles(or(cfg.Llamafiles, data, "llamafiles")); err != nil {
		_ = h.Models.Close()
		return nil, fmt.Errorf("%w; set PAWGATE_LLAMAFILES to a folder you can write to", err)
	}
	h.servers, err = supervise.Open(supervise.Config{Dir: filepath.Join(data, "llama"), Log: slog.Default(),
		Max: cfg.MaxLoaded, StartTimeout: cfg.StartTimeout, MaxRestarts: cfg.Restarts})
	if err != nil {
		_ = h.Models.Close()
		_ = h.Llamafiles.Close()
		return nil, fmt.Errorf("%w; set PAWGATE_DATA to a folder you can write to", err)
	}
	return h, nil
}

// Close ends the servers that no other process looks after, and lets go of the
// folders.
func (h *Host) Close() error {
	return errors.Join(h.servers.Close(), h.Models.Close(), h.Llamafiles.Close())
}

func or(given, data, name string) string {
	if given != "" {
		return given
	}
	return filepath.Join(data, name)
}

// dataDir is the same folder that the private database is in.
func (cfg Config) dataDir() (string, error) {
	if cfg.Data != "" {
		return cfg.Data, nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pawgate"), nil
	}
	if os.Geteuid() == 0 && runtime.GOOS == "linux" {
		return "/var/lib/pawgate", nil
	}
	home, err := os.UserHomeDir()
	switch {
	case err != nil:
		return "", fmt.Errorf("find data folder: %w; set PAWGATE_DATA", err)
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "pawgate"), nil
	}
	return filepath.Join(home, ".local", "share", "pawgate"), nil
}
