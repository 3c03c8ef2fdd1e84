package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
)

// openAI speaks OpenAI's chat completions (POST /chat/completions), in the
// form that other servers understand too.
type openAI struct {
	endpoint
	// newName: this server wants max_completion_tokens, which OpenAI's newer
	// models insist on and most other servers do not know.
	newName atomic.Bool
}

type openAIRequest struct {
	Model         string       `json:"model"`
	Messages      []any        `json:"messages"`
	Tools         []openAITool `json:"tools,omitempty"`
	ToolChoice    string       `json:"tool_choice,omitempty"`
	MaxTokens     int64        `json:"max_tokens,omitempty"`
	MaxCompletion int64        `json:"max_completion_tokens,omitempty"`
	Stream        bool         `json:"stream"`
}

type openAITool struct {
	Type     string         `json:"type"`
	Function openAIFunction `json:"function"`
}

type openAIFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type openAIMessage struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type openAIAnswer struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		FinishReason string                     `json:"finish_reason"`
		Message      map[string]json.RawMessage `json:"message"`
	} `json:"choices"`
	Usage struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Details    struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		Output struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	} `json:"usage"`
}

// Complete asks once.
func (c *openAI) Complete(ctx context.Context, r Request) (Completion, error) {
	answer, err := c.ask(ctx, r)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest && strings.Contains(refused.Text, "max_completion_tokens") && !c.newName.Swap(true) {
		answer, err = c.ask(ctx, r)
	}
	if err != nil {
		return Completion{}, err
	}
	if len(answer.Choices) == 0 {
		return Completion{}, &Error{Status: http.StatusOK, Text: "the model's server answers without a choice", Again: true}
	}
	return readOpenAI(answer)
}

func (c *openAI) ask(ctx context.Context, r Request) (answer openAIAnswer, err error) {
	header := http.Header{}
	if c.key != "" {
		header.Set("Authorization", "Bearer "+c.key)
	}
	q := openAIRequest{Model: r.Model, Messages: openAIMessages(r), MaxTokens: r.MaxTokens}
	if c.newName.Load() {
		q.MaxTokens, q.MaxCompletion = 0, r.MaxTokens
	}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, openAITool{Type: "function", Function: openAIFunction{t.Name, t.About, t.Schema}})
	}
	if r.NoCalls && len(q.Tools) > 0 {
		q.ToolChoice = "none"
	}
	return answer, c.post(ctx, "/chat/completions", header, q, &answer)
}

func openAIMessages(r Request) []any {
	var out []any
	if r.System != "" {
		out = append(out, openAIMessage{Role: "system", Content: r.System})
	}
	for _, m := range r.Messages {
		switch {
		case m.Native != nil:
			out = append(out, m.Native)
		case len(m.Results) > 0:
			for _, result := range m.Results {
				out = append(out, openAIMessage{Role: "tool", Content: result.Text, ToolCallID: result.ID})
			}
		default:
			out = append(out, openAIMessage{Role: string(m.Role), Content: m.Text})
		}
	}
	return out
}

// kept are the members of an assistant's message that go back to its server:
// some want the reasoning of a turn with calls again.
var kept = []string{"role", "content", "tool_calls", "reasoning_content", "reasoning_details"}

func readOpenAI(answer openAIAnswer) (Completion, error) {
	choice := answer.Choices[0]
	out := Completion{ID: answer.ID, Model: answer.Model, Message: Message{Role: Assistant, Text: openAIText(choice.Message["content"])}}
	if out.Text == "" {
		out.Text = openAIText(choice.Message["refusal"])
	}
	calls, native, err := openAICalls(choice.Message["tool_calls"])
	if err != nil {
		return Completion{}, err
	}
	out.Calls = calls
	message := map[string]json.RawMessage{}
	for _, name := range kept {
		if v, ok := choice.Message[name]; ok {
			message[name] = v
		}
	}
	message["role"] = json.RawMessage(`"assistant"`)
	delete(message, "tool_calls")
	if len(calls) > 0 {
		message["tool_calls"] = native
	} else if out.Text == "" {
		message["content"] = json.RawMessage(`""`)
	}
	if out.Native, err = json.Marshal(message); err != nil {
		return Completion{}, fmt.Errorf("keep turn: %w", err)
	}
	u := answer.Usage
	out.Usage = Usage{Input: max(0, u.Prompt-u.Details.Cached), CacheRead: u.Details.Cached, Output: u.Completion,
		Reasoning: min(u.Output.Reasoning, u.Completion)}
	out.Stop = openAIStop(choice.FinishReason, len(calls))
	return out, nil
}

func openAIStop(reason string, calls int) Stop {
	switch {
	case reason == "length":
		return Length
	case reason == "content_filter":
		return Filtered
	case calls > 0: // some servers say "stop" all the same
		return Calls
	}
	return Done
}

// openAIText reads a content that is a text, a list of parts, or null.
func openAIText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(raw, &parts)
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// openAICalls reads the calls of a message, and gives them as they may go back:
// with an id each, and with arguments that are JSON, because servers parse them
// again and fail on what they let through before.
func openAICalls(raw json.RawMessage) ([]Call, json.RawMessage, error) {
	var list []map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, nil, nil
	}
	calls, seen := make([]Call, len(list)), map[string]bool{}
	for i, raw := range list {
		var function map[string]json.RawMessage
		_ = json.Unmarshal(raw["function"], &function)
		c := &calls[i]
		_ = json.Unmarshal(raw["id"], &c.ID)
		_ = json.Unmarshal(function["name"], &c.Name)
		if c.ID == "" || seen[c.ID] {
			c.ID = fmt.Sprintf("call_%d", i+1)
		}
		seen[c.ID] = true
		c.Arguments, c.Broken = arguments(function["arguments"])
		sent := c.Arguments
		if c.Broken {
			sent = "{}"
		}
		function = map[string]json.RawMessage{"name": quote(c.Name), "arguments": quote(sent)}
		encoded, err := json.Marshal(function)
		if err != nil {
			return nil, nil, fmt.Errorf("keep call: %w", err)
		}
		raw["id"], raw["type"], raw["function"] = quote(c.ID), quote("function"), encoded
	}
	native, err := json.Marshal(list)
	return calls, native, err
}

// arguments reads the arguments of a call: the text of an object, or with some
// servers the object itself; nothing at all is an empty object.
func arguments(raw json.RawMessage) (text string, broken bool) {
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	trimmed := bytes.TrimSpace([]byte(text))
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return "{}", false
	}
	return text, !json.Valid(trimmed) || trimmed[0] != '{'
}

func quote(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil { // a string always encodes
		return json.RawMessage(`""`)
	}
	return b
}
