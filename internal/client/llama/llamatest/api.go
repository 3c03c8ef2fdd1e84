package llamatest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// request is what the fake looks at.
type request struct {
	Model     string
	Stream    bool
	Content   string
	Input     string
	Messages  []struct{ Role, Content string }
	LogitBias json.RawMessage `json:"logit_bias"`
}

// api is the part behind the key. It says back what it was asked. A message
// "template" fails as a chat template does, "die" ends the server in the
// middle of its answer, "slow" lets it think for a while.
func (s server) api(w http.ResponseWriter, r *http.Request) {
	var q request
	_ = json.NewDecoder(r.Body).Decode(&q)
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/tokenize":
		tokens := []int{}
		for _, word := range strings.Fields(q.Content) {
			tokens = append(tokens, len(word)) // a word's token is its length
		}
		answer(w, http.StatusOK, map[string]any{"tokens": tokens})
	case "/v1/embeddings":
		answer(w, http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{"embedding": []float64{float64(len(q.Input))}}}})
	case "/v1/chat/completions":
		s.chat(w, r, q)
	default:
		answer(w, http.StatusOK, map[string]any{})
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (s server) chat(w http.ResponseWriter, r *http.Request, q request) {
	last := ""
	if n := len(q.Messages); n > 0 {
		last = q.Messages[n-1].Content
	}
	switch last {
	case "template":
		answer(w, http.StatusInternalServerError, map[string]any{"error": map[string]any{"code": 500, "type": "server_error",
			"message": "Jinja Exception: Conversation roles must alternate at /models/tiny.gguf"}})
		return
	case "slow":
		select {
		case <-r.Context().Done():
			say("client went away")
			return
		case <-time.After(10 * time.Second):
		}
	}
	text := fmt.Sprintf("%s bias=%s", last, q.LogitBias)
	if !q.Stream {
		answer(w, http.StatusOK, map[string]any{"object": "chat.completion", "model": q.Model,
			"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": text}}},
			"usage":   map[string]any{"prompt_tokens": 1, "completion_tokens": 2}})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, part := range strings.SplitAfter(text, " ") {
		chunk, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"delta": map[string]any{"content": part}}}})
		fmt.Fprintf(w, "data: %s\n\n", chunk)
		w.(http.Flusher).Flush()
		if last == "die" {
			os.Exit(139)
		}
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}
