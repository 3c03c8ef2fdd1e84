// Package llama is the local models of one host: the folders they lie in, the
// hardware they run on, and the servers (llama-server or a llamafile) that
// have them loaded.
//
// A Host is made once per process and shared by the categories that use it.
// It never reaches outside the host: downloads are package hub's.
package llama

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"pawgate/internal/client/llama/hardware"
	"pawgate/internal/client/llama/library"
)

// Config is where a host keeps its models.
type Config struct {
	Data       string `envconfig:"PAWGATE_DATA" desc:"folder of pawgate's data; unset: a per-user folder"`
	Models     string `envconfig:"PAWGATE_MODELS" desc:"folder of the GGUF models; unset: models in PAWGATE_DATA"`
	Llamafiles string `envconfig:"PAWGATE_LLAMAFILES" desc:"folder of the llamafiles; unset: llamafiles in PAWGATE_DATA"`
}

// Host is the local models of this machine.
type Host struct {
	Models     *library.Library
	Llamafiles *library.Library
	Hardware   hardware.Prober
}

// Open opens the folders and makes those that are missing.
func Open(cfg Config) (*Host, error) {
	data, err := cfg.dataDir()
	if err != nil {
		return nil, err
	}
	h := &Host{Hardware: hardware.Host()}
	if h.Models, err = library.OpenModels(or(cfg.Models, data, "models")); err != nil {
		return nil, fmt.Errorf("%w; set PAWGATE_MODELS to a folder you can write to", err)
	}
	if h.Llamafiles, err = library.OpenLlamafiles(or(cfg.Llamafiles, data, "llamafiles")); err != nil {
		_ = h.Models.Close()
		return nil, fmt.Errorf("%w; set PAWGATE_LLAMAFILES to a folder you can write to", err)
	}
	return h, nil
}

// Close lets go of the folders.
func (h *Host) Close() error { return errors.Join(h.Models.Close(), h.Llamafiles.Close()) }

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
