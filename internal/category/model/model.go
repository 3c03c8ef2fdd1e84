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

	"pawgate/internal/client/hub"
	"pawgate/internal/client/llama"
	"pawgate/internal/tool"
)

// Config is what the category reads from its environment.
type Config struct {
	Llama llama.Config
	Hub   hub.Config
}

// Open opens the host's models for this category alone. A process with
// several categories of the host opens it once and calls New.
func Open(_ context.Context, cfg Config) (tool.Category, error) {
	client, err := hub.New(cfg.Hub)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open model: %w", err)
	}
	host, err := llama.Open(cfg.Llama)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open model: %w", err)
	}
	downloads := hub.NewDownloads(client, host.Models.Root())
	c := New(host, downloads, time.Now)
	c.Close = func() { downloads.Close(); _ = host.Close() }
	return c, nil
}

// New is the category over an open host and the downloads into its folder. It
// does no I/O.
func New(host *llama.Host, downloads *hub.Downloads, now func() time.Time) tool.Category {
	m := model{host: host, downloads: downloads, now: now}
	return tool.Category{Name: "model", Tools: []tool.Tool{
		tool.Read("hardware_info", "Tell the host's processors, memory and GPUs, and how large a model fits.", m.hardware),
		tool.Read("model_list", "List the models on the host: size, architecture, quantization, context, memory, whether loaded.", m.list),
		tool.Write("model_load", "Load a model into a llama-server and wait until it is ready.", m.load, tool.Idempotent, tool.Rate(tool.ClassExecute)),
		tool.Write("model_unload", "Unload a model and free its memory.", m.unload, tool.Idempotent, tool.Rate(tool.ClassExecute)),
		tool.Read("model_search", "Search the model hub for GGUF models and tell which builds fit this host.", m.search, tool.OpenWorld),
		tool.Write("model_download", "Download a GGUF model, verified; repeat the call to follow it.", m.download, tool.OpenWorld, tool.Idempotent),
		tool.Read("model_recommend", "Recommend models that fit this host, with the arithmetic.", m.recommend),
	}}
}

type model struct {
	host      *llama.Host
	downloads *hub.Downloads
	now       func() time.Time
}
