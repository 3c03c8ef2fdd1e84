package llamafile

import (
	"context"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama"
)

type listArgs struct{}

type listResult struct {
	Files   []listed       `json:"files"`
	Servers []llama.Server `json:"servers"` // models and llamafiles that run, start, or failed
	Hint    string         `json:"hint,omitzero"`
}

type listed struct {
	File      string `json:"file"`
	SizeBytes int64  `json:"size_bytes"`
	State     string `json:"state"` // of its server, or stopped
}

// list shows the folder's llamafiles and every server of the host.
func (c llamafile) list(ctx context.Context, _ caller.Caller, _ listArgs) (listResult, error) {
	entries, err := c.host.Llamafiles.List()
	if err != nil {
		return listResult{}, err
	}
	r := listResult{Files: make([]listed, len(entries)), Servers: c.host.Loaded(ctx)}
	for i, e := range entries {
		r.Files[i] = listed{File: e.ID, SizeBytes: e.Size, State: "stopped"}
		for _, v := range r.Servers {
			if v.Kind == "llamafile" && v.Name == e.ID {
				r.Files[i].State = string(v.State)
			}
		}
	}
	if len(entries) == 0 {
		r.Hint = "no llamafiles on this host; the operator puts them into its folder. Models ending in .gguf can be started too: see model_list"
	}
	return r, nil
}
