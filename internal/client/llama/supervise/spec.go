package supervise

import (
	"slices"
	"time"
)

// Kind says what a server is made of.
type Kind string

// The kinds.
const (
	Model     Kind = "model"     // a GGUF file in a llama-server
	Llamafile Kind = "llamafile" // a file that is model and server in one
)

// Spec is a server to run. Kind and Name tell it from others; the caller has
// checked Name to be a plain file name.
type Spec struct {
	Kind    Kind     `json:"kind"`
	Name    string   `json:"name"`
	Program string   `json:"program"` // path of the executable
	Args    []string `json:"args"`    // its own; address and key are added
	Shown   []string `json:"options"` // the options as a caller may see them
	// TTL is how long the server may be idle before it is ended; 0: for ever.
	TTL time.Duration `json:"ttl"`
}

// record is the name of the server's files.
func (s Spec) record() string { return string(s.Kind) + "-" + s.Name }

func (s Spec) same(other Spec) bool {
	return s.Program == other.Program && slices.Equal(s.Args, other.Args)
}

// State of a server.
type State string

// The states. A server that was stopped, or ended because it was idle, is no
// longer listed: that is not a failure.
const (
	Starting   State = "starting"
	Ready      State = "ready"
	Restarting State = "restarting" // it crashed and waits for its next start
	Stopping   State = "stopping"
	Stopped    State = "stopped"
	Failed     State = "failed"
)

func (s State) live() bool { return s == Starting || s == Ready || s == Restarting || s == Stopping }

// Server is what a caller may know of a server.
type Server struct {
	Kind     Kind      `json:"kind"`
	Name     string    `json:"name"`
	State    State     `json:"state"`
	Since    time.Time `json:"since"` // of the state
	Options  []string  `json:"options"`
	Busy     int       `json:"requests_running"`
	LastUsed time.Time `json:"last_used_at,omitzero"`
	TTL      int64     `json:"idle_ttl_seconds"` // 0: it is never ended for being idle
	Restarts int       `json:"restarts"`
	Phases   Phases    `json:"start_phases"`
	Note     string    `json:"note,omitzero"`
	// Failure says why, in state failed or restarting.
	Failure *Failure `json:"failure,omitzero"`
}

// Phases are the parts of the last start, in milliseconds from its beginning.
type Phases struct {
	Spawned   int64 `json:"process_ms"`   // the process runs
	Listening int64 `json:"listening_ms"` // it takes connections
	Ready     int64 `json:"ready_ms"`     // the model is loaded
}

// Failure is why a server is not there.
type Failure struct {
	Reason Reason   `json:"reason"`
	Advice string   `json:"advice"`
	Log    []string `json:"log"` // its last lines, without paths
}
