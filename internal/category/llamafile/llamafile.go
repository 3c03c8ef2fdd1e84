// Package llamafile holds the tools that run llamafiles: files that are a model
// and its server in one. They run GGUF models in a llama-server as well, so
// that whoever knows only these tools can use both.
//
// A file is named as its folder lists it, never by a path, and gets listed
// flags only; address, port and key are the host's business.
package llamafile

import (
	"context"
	"fmt"

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
		return tool.Category{}, fmt.Errorf("open llamafile: %w", err)
	}
	c := New(host)
	c.Close = func() { _ = host.Close() }
	return c, nil
}

// New is the category over an open host. It does no I/O.
func New(host *llama.Host) tool.Category {
	l := llamafile{host: host}
	return tool.Category{Name: "llamafile", Tools: []tool.Tool{
		tool.Write("llamafile_start", "Start a llamafile, or a GGUF model in a llama-server, and wait until it is ready.", l.start, tool.Idempotent, tool.Rate(tool.ClassExecute)),
		tool.Write("llamafile_stop", "Stop a running llamafile or model, or all llamafiles.", l.stop, tool.Idempotent, tool.Rate(tool.ClassExecute)),
		tool.Read("llamafile_list", "List the llamafiles on the host and every model server with its state.", l.list),
	}}
}

type llamafile struct{ host *llama.Host }
