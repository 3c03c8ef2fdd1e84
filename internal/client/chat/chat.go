// Package chat asks a model for the next turn of a conversation, tools
// included: by OpenAI's chat completions, which most providers and the sidecar
// speak, or by Anthropic's Messages API.
//
// The server is one that the operator configures, never one that a caller
// names. A client asks once and says of a failure whether asking again may
// help; it repeats nothing by itself, because whoever asks knows how much time
// and money is left. What a provider must get back unchanged on the next turn
// (signed thoughts, signatures of calls) is kept with the turn.
package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Config is the server that completes conversations.
type Config struct {
	API   API    `envconfig:"PAWGATE_CHAT_API" default:"openai" desc:"what the model's server speaks: openai (chat completions) or anthropic (Messages API)"`
	URL   string `envconfig:"PAWGATE_CHAT_URL" desc:"server of the model loop, up to and with /v1; unset with anthropic: Anthropic's own"`
	Key   string `envconfig:"PAWGATE_CHAT_KEY" desc:"key of that server, or a reference to it"`
	Model string `envconfig:"PAWGATE_CHAT_MODEL" desc:"model for agents that name none"`
	// Provider is the server's name in usage rows, as price lists call it.
	Provider string `envconfig:"PAWGATE_CHAT_PROVIDER" desc:"name of that server in price lists; unset: anthropic, or what the host's name says"`
}

// API is a way of speaking to a model.
type API string

// The APIs.
const (
	OpenAI    API = "openai"
	Anthropic API = "anthropic"
)

// Message is one turn. Exactly one of its contents is set for a user's turn
// (Text or Results); an assistant's may have text and calls.
type Message struct {
	Role    Role     `json:"role"`
	Text    string   `json:"text,omitempty"`
	Calls   []Call   `json:"calls,omitempty"`   // what the assistant wants called
	Results []Result `json:"results,omitempty"` // what the calls of the turn before came to
	// Native is an assistant's turn as its provider wants it back.
	Native json.RawMessage `json:"native,omitempty"`
}

// Role is whose turn it is.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Call is a tool call that the model asks for.
type Call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // a JSON object, unless Broken
	Broken    bool   `json:"broken,omitempty"`
}

// Result is what a call came to.
type Result struct {
	ID     string `json:"id"` // of the call
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// Tool is a tool that the model may ask for.
type Tool struct {
	Name   string
	About  string
	Schema json.RawMessage // of its arguments
}

// Request is one question to a model.
type Request struct {
	Model     string
	System    string
	Messages  []Message
	Tools     []Tool
	NoCalls   bool  // the model must answer in words, although it sees the tools
	MaxTokens int64 // most tokens of the answer
}

// Stop is why a turn ended.
type Stop string

// The ends of a turn.
const (
	Done     Stop = "done"
	Calls    Stop = "calls"
	Length   Stop = "length"   // the answer was cut at MaxTokens or at the model's window
	Filtered Stop = "filtered" // the model or its provider would not answer
)

// Completion is a model's turn.
type Completion struct {
	Message
	ID    string // the provider's, for its support
	Model string // the one that served
	Stop  Stop
	Usage Usage
}

// Usage is what a completion took, in tokens. Input is what was neither read
// from the provider's cache nor written to it; Output holds Reasoning.
type Usage struct {
	Input        int64 `json:"input"`
	Output       int64 `json:"output"`
	CacheRead    int64 `json:"cache_read"`
	CacheWrite5m int64 `json:"cache_write_5m"`
	CacheWrite1h int64 `json:"cache_write_1h"`
	Reasoning    int64 `json:"reasoning"`
}

// Prompt is all that was read.
func (u Usage) Prompt() int64 { return u.Input + u.CacheRead + u.CacheWrite5m + u.CacheWrite1h }

// Total is all that was read and written.
func (u Usage) Total() int64 { return u.Prompt() + u.Output }

// Add is the sum of two.
func (u Usage) Add(v Usage) Usage {
	return Usage{Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead,
		CacheWrite5m: u.CacheWrite5m + v.CacheWrite5m, CacheWrite1h: u.CacheWrite1h + v.CacheWrite1h, Reasoning: u.Reasoning + v.Reasoning}
}

// Error is a completion that failed. Its text holds no key and no address.
type Error struct {
	Status int // HTTP; 0 when there was no answer
	Text   string
	// Again says that the same question may be answered another time, After
	// how long the provider wants to be left alone first.
	Again bool
	After time.Duration
}

func (e *Error) Error() string { return e.Text }

// Model completes conversations.
type Model interface {
	// Complete asks once. It fails with an *Error, or the context's error.
	Complete(ctx context.Context, r Request) (Completion, error)
	// Provider is the server's name in usage rows.
	Provider() string
}

// New is a client for the configured server; it connects to nothing.
func New(cfg Config) (Model, error) {
	switch cfg.API {
	case OpenAI, "":
		e, err := newEndpoint(cfg, "PAWGATE_CHAT_URL must be set to the model's server, such as http://127.0.0.1:8081/v1")
		return &openAI{endpoint: e}, err
	case Anthropic:
		if cfg.URL == "" {
			if cfg.Key == "" {
				return nil, errors.New("PAWGATE_CHAT_KEY must be set to a key of Anthropic's, or PAWGATE_CHAT_URL to another server")
			}
			cfg.URL = anthropicURL
		}
		e, err := newEndpoint(cfg, "")
		return &anthropic{endpoint: e}, err
	}
	return nil, fmt.Errorf("PAWGATE_CHAT_API must be openai or anthropic, not %q", cfg.API)
}
