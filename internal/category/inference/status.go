package inference

import (
	"context"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama"
)

type statusArgs struct{}

type statusResult struct {
	Mode   setting        `json:"mode"`
	Loaded []llama.Server `json:"loaded"` // models that can answer now or are starting
	Found  []found        `json:"found"`  // models in the host's folder
	Remote remoteHealth   `json:"remote"`
}

type found struct {
	ModelID   string `json:"model_id"`
	SizeBytes int64  `json:"size_bytes"`
	Complete  bool   `json:"complete"` // every part of it is here
}

type remoteHealth struct {
	llama.Health
	Model     string  `json:"model,omitzero"` // the one that would be asked
	LatencyMS float64 `json:"latency_ms,omitzero"`
}

// status tells what there is now. It fails with fault.Unavailable when the
// database is away.
func (c inference) status(ctx context.Context, _ caller.Caller, _ statusArgs) (statusResult, error) {
	mode, err := ReadMode(ctx, c.db)
	if err != nil {
		return statusResult{}, err
	}
	entries, err := c.host.Models.List()
	if err != nil {
		return statusResult{}, err
	}
	r := statusResult{Mode: mode, Loaded: c.host.Loaded(ctx), Found: make([]found, len(entries))}
	for i, e := range entries {
		r.Found[i] = found{ModelID: e.ID, SizeBytes: e.Size, Complete: e.Complete()}
	}
	health := c.remote.Check(ctx)
	r.Remote = remoteHealth{Health: health, Model: c.settings.RemoteModel, LatencyMS: float64(health.Latency.Microseconds()) / 1000}
	return r, nil
}
