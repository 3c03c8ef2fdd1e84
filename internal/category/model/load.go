package model

import (
	"context"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/supervise"
)

type loadArgs struct {
	ModelID string `json:"model_id" doc:"Which model, as model_list names it" maxlen:"200"`
	llama.LoadArgs
}

type loadResult struct {
	llama.Loaded
}

// load has a server load a model. Faults: see llama.Host.LoadModel.
func (m model) load(ctx context.Context, _ caller.Caller, a loadArgs) (loadResult, error) {
	loading, err := m.host.LoadModel(ctx, "model_id", a.ModelID, a.Load())
	if err != nil {
		return loadResult{}, err
	}
	return loadResult{loading.Show("model_list")}, nil
}

type unloadArgs struct {
	ModelID string `json:"model_id" doc:"Which model, as model_list names it" maxlen:"200"`
}

type unloadResult struct {
	ModelID string `json:"model_id"`
	State   string `json:"state"`   // always unloaded
	Changed bool   `json:"changed"` // false: it was not loaded
}

// unloadTimeout bounds the wait for a server to end; it is killed before that.
const unloadTimeout = 20 * time.Second

// unload ends a model's server and frees its memory. That a model is not
// loaded is no error.
func (m model) unload(ctx context.Context, _ caller.Caller, a unloadArgs) (unloadResult, error) {
	name, err := m.host.Models.Name("model_id", a.ModelID)
	if err != nil {
		return unloadResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, unloadTimeout)
	defer cancel()
	ok, err := m.host.Unload(ctx, supervise.Model, name)
	return unloadResult{ModelID: name, State: "unloaded", Changed: ok}, err
}
