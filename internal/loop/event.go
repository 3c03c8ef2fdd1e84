package loop

import (
	"time"

	"pawgate/internal/client/chat"
)

// Kind is what happened.
type Kind string

// The kinds of events.
const (
	Completed Kind = "completed" // a completion came: Usage, Micros
	Said      Kind = "said"      // the model said Text beside the calls that it asks for
	Called    Kind = "called"    // Tool was called with the arguments Text
	Returned  Kind = "returned"  // Tool came to Text, after Took
	Waited    Kind = "waited"    // the provider failed with Text and is asked again after Took
)

// Event is one thing that happened in a run.
type Event struct {
	Kind   Kind          `json:"kind"`
	Round  int           `json:"round"` // from 1
	Tool   string        `json:"tool,omitempty"`
	Text   string        `json:"text,omitempty"`
	Failed bool          `json:"failed,omitempty"`
	Took   time.Duration `json:"took_ns,omitempty"`
	Usage  chat.Usage    `json:"usage,omitzero"`
	Micros int64         `json:"cost_micros,omitempty"`
}
