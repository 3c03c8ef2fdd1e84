// Package model holds the tools that look after the models of the sidecar
// host: what hardware there is, which models fit it, which are here, loading
// and unloading.
//
// A model is named by its file's name in one folder, never by a path. The
// tools never show where that folder is, nor anything else of the host's file
// system.
package model

import (
	"context"
	"fmt"
	"time"

	"pawgate/internal/client/llama"
	"pawgate/internal/tool"
)

// Config is what the category reads from its environment.
type Config struct {
	llama.Config
}

// Open opens the host's models for this category alone. A process with
// several categories of the host opens it once and calls New.
func Open(_ context.Context, cfg Config) (tool.Category, error) {
	host, err := llama.Open(cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open model: %w", err)
	}
	c := New(host, time.Now)
	c.Close = func() { _ = host.Close() }
	return c, nil
}

// New is the category over an open host. It does no I/O.
func New(host *llama.Host, now func() time.Time) tool.Category {
	m := model{host: host, now: now}
	return tool.Category{Name: "model", Tools: []tool.Tool{
		tool.Read("hardware_info", "Tell the sidecar host's processors, memory, GPUs and limits, and how large a model fits.", m.hardware),
		tool.Read("model_list", "List the models on the host: size, architecture, quantization, context, memory, whether loaded.", m.list),
		tool.Write("model_load", "Load a model into a llama-server and wait until it is ready.", m.load, tool.Idempotent, tool.Rate(tool.ClassExecute)),
		tool.Write("model_unload", "Unload a model and free its memory.", m.unload, tool.Idempotent, tool.Rate(tool.ClassExecute)),
	}}
}

type model struct {
	host *llama.Host
	now  func() time.Time
}
