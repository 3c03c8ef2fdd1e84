package model

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/gguf"
	"pawgate/internal/client/llama/library"
	"pawgate/internal/client/llama/supervise"
)

// listContext is the context that the memory of a listed model is worked out
// for, in tokens.
const listContext = 4096

// defaultPage is how many models an answer holds unless told otherwise.
const defaultPage = 50

type listArgs struct {
	Limit  int    `json:"limit,omitempty" doc:"50 if left out" min:"1" max:"200"`
	Cursor string `json:"cursor,omitempty" doc:"-" maxlen:"200"`
}

type listResult struct {
	Models     []listed `json:"models"`
	NextCursor string   `json:"next_cursor,omitzero"`
	Hint       string   `json:"hint,omitzero"`
}

type listed struct {
	ModelID   string `json:"model_id"`
	State     string `json:"state"` // loaded, starting, failed …; unloaded
	SizeBytes int64  `json:"size_bytes"`
	Files     int    `json:"files"`
	*about
	Fits    *bool  `json:"fits"`             // null when the host's memory is unknown
	Problem string `json:"problem,omitzero"` // why it cannot be loaded
}

// about is what a model's own header says.
type about struct {
	Architecture  string     `json:"architecture"`
	Parameters    int64      `json:"parameters"`
	Quantisation  string     `json:"quantization"`
	ContextLength int64      `json:"context_length"`
	ChatTemplate  bool       `json:"has_chat_template"`
	Embedding     bool       `json:"embedding"`
	Need          llama.Need `json:"memory_at_4096_tokens"`
}

// list shows the models in the host's folder, by id.
func (m model) list(ctx context.Context, _ caller.Caller, a listArgs) (listResult, error) {
	entries, err := m.host.Models.List()
	if err != nil {
		return listResult{}, err
	}
	entries = slices.DeleteFunc(entries, func(e library.Entry) bool { return e.ID <= a.Cursor })
	r := listResult{Models: []listed{}}
	if limit := cmp.Or(a.Limit, defaultPage); len(entries) > limit {
		entries = entries[:limit]
		r.NextCursor = entries[limit-1].ID
	}
	if len(entries) == 0 && a.Cursor == "" {
		r.Hint = "no models yet: model_recommend names some that fit this host, model_search finds others, model_download gets one"
	}
	states := m.states(ctx)
	room, known := m.host.Hardware.Read(ctx).Budget()
	for _, e := range entries {
		l := m.describe(e)
		l.State = cmp.Or(states[e.ID], "unloaded")
		if known && l.about != nil {
			l.Fits = new(l.Need.Total <= room.Bytes)
		}
		r.Models = append(r.Models, l)
	}
	return r, nil
}

func (m model) describe(e library.Entry) listed {
	l := listed{ModelID: e.ID, SizeBytes: e.Size, Files: len(e.Files)}
	h, err := m.host.Header(e)
	switch {
	case errors.Is(err, gguf.ErrCorrupt):
		l.Problem = strings.TrimPrefix(err.Error(), gguf.ErrCorrupt.Error()+": ") + "; download it again"
	case err != nil:
		l.Problem = "its file cannot be read"
	case !e.Complete():
		l.Problem = "parts of it are missing; download it again"
	}
	if err != nil {
		return l
	}
	l.about = &about{Architecture: h.Architecture, Parameters: h.Parameters, Quantisation: h.Quantisation,
		ContextLength: h.ContextLength, ChatTemplate: h.ChatTemplate, Embedding: h.Embedding,
		Need: llama.NeedOf(e.Size, h.CacheBytesPerToken, listContext)}
	return l
}

// states are those of the models that have a server.
func (m model) states(ctx context.Context) map[string]string {
	states := map[string]string{}
	for _, v := range m.host.Loaded(ctx) {
		if v.Kind != supervise.Model {
			continue
		}
		states[v.Name] = string(v.State)
		if v.State == supervise.Ready {
			states[v.Name] = "loaded"
		}
	}
	return states
}
