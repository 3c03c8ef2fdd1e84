package llamafile

import (
	"context"
	"strings"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama"
	"pawgate/internal/fault"
)

type startArgs struct {
	File string `json:"file,omitempty" doc:"A llamafile, or a .gguf model" maxlen:"220"`
	llama.LoadArgs
}

type startResult struct {
	llama.Loaded
}

// ggufEnding tells a model from a llamafile.
const ggufEnding = ".gguf"

// start runs a file's server. It fails with fault.NotFound, fault.Conflict (no
// room, other options, no file named and several there), or a fault with the
// reason why it did not start.
func (c llamafile) start(ctx context.Context, _ caller.Caller, a startArgs) (startResult, error) {
	file := a.File
	if file == "" {
		only, err := c.only()
		if err != nil {
			return startResult{}, err
		}
		file = only
	}
	load := c.host.StartLlamafile
	if strings.HasSuffix(file, ggufEnding) {
		load = c.host.LoadModel
	}
	loading, err := load(ctx, "file", file, a.Load())
	if err != nil {
		return startResult{}, err
	}
	return startResult{loading.Show("llamafile_list")}, nil
}

// only is the file that is meant when none is named.
func (c llamafile) only() (string, error) {
	entries, err := c.host.Llamafiles.List()
	if err != nil {
		return "", err
	}
	switch len(entries) {
	case 0:
		return "", fault.New(fault.NotFound, "there is no llamafile on this host; the operator puts one into its folder, or name a model ending in .gguf")
	case 1:
		return entries[0].ID, nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.ID
	}
	return "", fault.New(fault.Conflict, "say which file: %s", strings.Join(names[:min(len(names), 20)], ", "))
}
