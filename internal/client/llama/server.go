package llama

import (
	"context"
	"time"
)

// Server is a process that has a model loaded, as it is shown.
type Server struct {
	Name   string    `json:"name"` // the model's id or the llamafile's
	State  string    `json:"state"`
	Since  time.Time `json:"since"`
	Health string    `json:"health"`
}

// Loaded are the servers of this host.
func (h *Host) Loaded(context.Context) []Server { return []Server{} }
