package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

const (
	anthropicURL     = "https://api.anthropic.com/v1"
	anthropicVersion = "2023-06-01"
	// anthropicMax stands for a missing MaxTokens, which this API insists on.
	anthropicMax = 4096
)

// anthropic speaks Anthropic's Messages API (POST /messages).
type anthropic struct{ endpoint }

type anthropicRequest struct {
	Model      string             `json:"model"`
	MaxTokens  int64              `json:"max_tokens"`
	System     []anthropicBlock   `json:"system,omitempty"`
	Messages   []anthropicMessage `json:"messages"`
	Tools      []anthropicTool    `json:"tools,omitempty"`
	ToolChoice *anthropicChoice   `json:"tool_choice,omitempty"`
}

type anthropicChoice struct {
	Type string `json:"type"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type anthropicMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"` // blocks
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Cache     json.RawMessage `json:"cache_control,omitempty"`
}

// breakpoint ends a part that the provider may keep for the next turn: what
// stands before it is then read from its cache, at a tenth of the price.
var breakpoint = json.RawMessage(`{"type":"ephemeral"}`)

type anthropicAnswer struct {
	ID         string            `json:"id"`
	Model      string            `json:"model"`
	StopReason string            `json:"stop_reason"`
	Content    []json.RawMessage `json:"content"`
	Usage      struct {
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
		CacheRead  int64 `json:"cache_read_input_tokens"`
		CacheWrite int64 `json:"cache_creation_input_tokens"`
		Written    struct {
			Hour int64 `json:"ephemeral_1h_input_tokens"`
		} `json:"cache_creation"`
	} `json:"usage"`
}

// Complete asks once.
func (c *anthropic) Complete(ctx context.Context, r Request) (Completion, error) {
	header := http.Header{"Anthropic-Version": {anthropicVersion}}
	if c.key != "" {
		header.Set("X-Api-Key", c.key)
	}
	var answer anthropicAnswer
	if err := c.post(ctx, "/messages", header, anthropicQuestion(r), &answer); err != nil {
		return Completion{}, err
	}
	return readAnthropic(answer)
}

func anthropicQuestion(r Request) anthropicRequest {
	q := anthropicRequest{Model: r.Model, MaxTokens: r.MaxTokens}
	if q.MaxTokens <= 0 {
		q.MaxTokens = anthropicMax
	}
	if r.System != "" {
		q.System = []anthropicBlock{{Type: "text", Text: r.System, Cache: breakpoint}}
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, anthropicTool{t.Name, t.About, t.Schema})
	}
	if r.NoCalls && len(q.Tools) > 0 {
		q.ToolChoice = &anthropicChoice{Type: "none"}
	}
	for i, m := range r.Messages {
		if m.Native != nil {
			q.Messages = append(q.Messages, anthropicMessage{Role: string(m.Role), Content: m.Native})
			continue
		}
		blocks := anthropicBlocks(m)
		if len(blocks) == 0 {
			continue // a turn without words; the API refuses it
		}
		if i == len(r.Messages)-1 {
			blocks[len(blocks)-1].Cache = breakpoint
		}
		q.Messages = append(q.Messages, anthropicMessage{Role: string(m.Role), Content: blocks})
	}
	return q
}

func anthropicBlocks(m Message) []anthropicBlock {
	var blocks []anthropicBlock
	for _, r := range m.Results { // results come first (API: tool_result blocks before text)
		blocks = append(blocks, anthropicBlock{Type: "tool_result", ToolUseID: r.ID, Content: r.Text, IsError: r.Failed})
	}
	if m.Text != "" {
		blocks = append(blocks, anthropicBlock{Type: "text", Text: m.Text})
	}
	return blocks
}

func readAnthropic(answer anthropicAnswer) (Completion, error) {
	out := Completion{ID: answer.ID, Model: answer.Model, Message: Message{Role: Assistant}}
	for _, raw := range answer.Content {
		var block struct {
			Type, Text, ID, Name string
			Input                json.RawMessage
		}
		if err := json.Unmarshal(raw, &block); err != nil {
			return Completion{}, &Error{Status: http.StatusOK, Text: "the model's server does not answer as its API says"}
		}
		switch block.Type {
		case "text":
			out.Text += block.Text
		case "tool_use":
			text, broken := arguments(block.Input)
			out.Calls = append(out.Calls, Call{ID: block.ID, Name: block.Name, Arguments: text, Broken: broken})
		}
	}
	if len(answer.Content) > 0 { // a turn without content may not go back
		native, err := json.Marshal(answer.Content)
		if err != nil {
			return Completion{}, fmt.Errorf("keep turn: %w", err)
		}
		out.Native = native
	}
	u := answer.Usage
	hour := min(u.Written.Hour, u.CacheWrite)
	out.Usage = Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite5m: u.CacheWrite - hour, CacheWrite1h: hour}
	switch answer.StopReason {
	case "max_tokens", "model_context_window_exceeded":
		out.Stop = Length
	case "refusal":
		out.Stop = Filtered
	case "tool_use":
		out.Stop = Calls
	default:
		out.Stop = Done
	}
	return out, nil
}
