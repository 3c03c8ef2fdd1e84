//go:build e2e

package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// modelTurn is one scripted answer of the model: a call of Tool with Input, or,
// with Tool empty, the closing Text.
type modelTurn struct {
	Tool  string
	Input any
	Text  string
}

// toolResult is what a client gave back to the model for one scripted call.
type toolResult struct {
	ToolUseID string
	IsError   bool
	Text      string // text blocks, joined
}

// modelStub stands in for the Anthropic Messages API on loopback. It answers by
// script: the number of tool results in a conversation says which turn is due,
// so it holds no state between requests and side requests (a title, a topic)
// cannot disturb it. Point ANTHROPIC_BASE_URL at URL.
type modelStub struct {
	URL   string
	turns []modelTurn

	mu      sync.Mutex
	results []toolResult
	tools   []string
}

// startModel serves the script until the test ends.
func startModel(t testing.TB, turns ...modelTurn) *modelStub {
	t.Helper()
	m := &modelStub{turns: turns}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	m.URL = srv.URL
	return m
}

// Results are the tool results of the longest conversation seen.
func (m *modelStub) Results() []toolResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.results)
}

// Tools are the names of the tools last offered to the model.
func (m *modelStub) Tools() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.tools)
}

type messagesRequest struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Tools  []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// toolResults are the tool_result blocks of a conversation, oldest first.
func (r messagesRequest) toolResults() []toolResult {
	var out []toolResult
	for _, msg := range r.Messages {
		var blocks []struct {
			Type      string          `json:"type"`
			ToolUseID string          `json:"tool_use_id"`
			IsError   bool            `json:"is_error"`
			Content   json.RawMessage `json:"content"`
		}
		if json.Unmarshal(msg.Content, &blocks) != nil {
			continue // a plain string
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				out = append(out, toolResult{b.ToolUseID, b.IsError, blockText(b.Content)})
			}
		}
	}
	return out
}

// blockText is the text of a content field, which is a string or blocks.
func blockText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &blocks)
	var sb strings.Builder
	for _, b := range blocks {
		sb.WriteString(b.Text)
	}
	return sb.String()
}

func (m *modelStub) messages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var req messagesRequest
	if err := json.Unmarshal(body, &req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	turn := modelTurn{Text: "ok"}
	if len(req.Tools) > 0 {
		turn = m.next(req)
	}
	if req.Stream {
		streamTurn(w, req, turn)
		return
	}
	block, stop := turnBlock(turn)
	writeJSON(w, messageEnvelope(req, []any{block}, stop))
}

// next records what the client sent and picks the turn that is due.
func (m *modelStub) next(req messagesRequest) modelTurn {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools = m.tools[:0]
	for _, tl := range req.Tools {
		m.tools = append(m.tools, tl.Name)
	}
	results := req.toolResults()
	if len(results) > len(m.results) {
		m.results = results
	}
	if len(results) < len(m.turns) {
		return m.turns[len(results)]
	}
	return modelTurn{Text: "the script is over"}
}

// turnBlock is the finished content block of a turn, and its stop reason.
func turnBlock(turn modelTurn) (block map[string]any, stop string) {
	if turn.Tool == "" {
		return map[string]any{"type": "text", "text": turn.Text}, "end_turn"
	}
	// Unique as the real ones are: the gate takes a repeated id for a repeated call.
	id := "toolu_" + rand.Text()
	return map[string]any{"type": "tool_use", "id": id, "name": turn.Tool, "input": turn.Input}, "tool_use"
}

func messageEnvelope(req messagesRequest, content []any, stop any) map[string]any {
	return map[string]any{
		"id": "msg_stub", "type": "message", "role": "assistant", "model": req.Model,
		"content": content, "stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": 100, "output_tokens": 10},
	}
}

// streamTurn writes one turn as the Messages API streams it.
// Source: Anthropic API reference, "Streaming messages".
func streamTurn(w http.ResponseWriter, req messagesRequest, turn modelTurn) {
	block, stop := turnBlock(turn)
	start, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": turn.Text}
	if turn.Tool != "" {
		input, err := json.Marshal(turn.Input)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		start = map[string]any{"type": "tool_use", "id": block["id"], "name": turn.Tool, "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(input)}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event(w, "message_start", map[string]any{"message": messageEnvelope(req, []any{}, nil)})
	event(w, "content_block_start", map[string]any{"index": 0, "content_block": start})
	event(w, "content_block_delta", map[string]any{"index": 0, "delta": delta})
	event(w, "content_block_stop", map[string]any{"index": 0})
	event(w, "message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": 10},
	})
	event(w, "message_stop", map[string]any{})
}

func event(w http.ResponseWriter, kind string, data map[string]any) {
	data["type"] = kind
	raw, err := json.Marshal(data)
	if err != nil {
		panic(fmt.Sprintf("encode %s: %v", kind, err))
	}
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, raw)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(fmt.Sprintf("encode answer: %v", err))
	}
}
