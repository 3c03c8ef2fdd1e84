package llama

import (
	"time"

	"pawgate/internal/client/llama/supervise"
)

// LoadArgs are the arguments that the tools which start a server share.
type LoadArgs struct {
	ContextSize int      `json:"context_size,omitempty" doc:"Tokens; default 4096" min:"256" max:"1048576"`
	GPULayers   *int     `json:"gpu_layers,omitempty" doc:"Default: all that fit" min:"0" max:"999"`
	Args        []string `json:"args,omitempty" doc:"llama-server flags, such as --embeddings"`
	TTL         *int     `json:"ttl_seconds,omitempty" doc:"Idle time; 0: never" min:"0" max:"604800"`
	Wait        *int     `json:"wait_seconds,omitempty" doc:"To be ready; default 20" min:"0" max:"300"`
	Force       bool     `json:"force,omitempty" doc:"Though it seems not to fit"`
}

// defaultWait is how long a load waits unless told otherwise.
const defaultWait = 20 * time.Second

// Load is what the arguments ask for.
func (a LoadArgs) Load() Load {
	l := Load{Force: a.Force, Wait: defaultWait, Options: Options{ContextSize: a.ContextSize, GPULayers: a.GPULayers, Args: a.Args}}
	if a.TTL != nil {
		l.TTL = new(time.Duration(*a.TTL) * time.Second)
	}
	if a.Wait != nil {
		l.Wait = time.Duration(*a.Wait) * time.Second
	}
	return l
}

// Loaded is a load as the tools show it.
type Loaded struct {
	supervise.Server
	Need Need   `json:"memory"`
	Hint string `json:"hint,omitzero"`
}

// Show is the answer of a tool; list names the tool that tells later how a
// start went on.
func (l Loading) Show(list string) Loaded {
	shown := Loaded{Server: l.Server, Need: l.Need}
	if l.Server.State != supervise.Ready {
		shown.Hint = "it is still starting; " + list + " tells when it is ready, and why if it fails"
	}
	return shown
}
