package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"pawgate/internal/category/inference"
	"pawgate/internal/client/llama"
)

// endpoint is one kind of request.
type endpoint struct {
	path  string
	needs string // the member that the request must have
}

// The kinds; they never change.
var (
	chat       = endpoint{"/chat/completions", "messages"}
	embeddings = endpoint{"/embeddings", "input"}
)

// maxRequest is the largest request, in bytes: a long context, or a picture.
const maxRequest = 20 << 20

// complete hands a request to who answers it, and the answer back as it comes.
func (h Handler) complete(w http.ResponseWriter, r *http.Request, c who, e endpoint) {
	body, model, err := readRequest(w, r, e)
	if err != nil {
		refuse(w, err)
		return
	}
	t, err := h.choose(c, model)
	if err != nil {
		refuse(w, err)
		return
	}
	defer t.release()
	if err := h.prepare(r.Context(), c, t, e, body); err != nil {
		refuse(w, err)
		return
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		refuse(w, err)
		return
	}
	resp, err := t.Post(r.Context(), e.path, encoded)
	if err != nil {
		if r.Context().Err() == nil {
			refuse(w, lost(t))
		}
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		refuse(w, translated(resp, t))
		return
	}
	copyAnswer(w, r, resp, t)
}

// readRequest reads a request far enough to know whom it is for. What it does
// not know it passes on.
func readRequest(w http.ResponseWriter, r *http.Request, e endpoint) (body map[string]json.RawMessage, model string, err error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, "", &apiError{http.StatusRequestEntityTooLarge, "invalid_request_error", "too_large", "the request is larger than " + strconv.Itoa(maxRequest>>20) + " MiB"}
	case err != nil:
		return nil, "", badRequest("the request could not be read")
	}
	if err := json.Unmarshal(raw, &body); err != nil || body == nil {
		return nil, "", badRequest("the request is not a JSON object")
	}
	if m, ok := body["model"]; ok && json.Unmarshal(m, &model) != nil {
		return nil, "", badRequest("model must be a string")
	}
	if v := bytes.TrimSpace(body[e.needs]); len(v) == 0 || string(v) == "null" || string(v) == "[]" {
		return nil, "", badRequest(e.needs + " is missing")
	}
	return body, model, nil
}

// prepare names the model as its server knows it, and adds what the agent said
// of earlier answers. A request with a bias of its own keeps it.
func (h Handler) prepare(ctx context.Context, c who, t target, e endpoint, body map[string]json.RawMessage) error {
	name, err := json.Marshal(t.model)
	if err != nil {
		return err
	}
	if t.model != "" {
		body["model"] = name
	}
	if _, own := body["logit_bias"]; !t.local || e != chat || own || !h.Settings.Feedback {
		return nil
	}
	bias, err := inference.Bias(ctx, h.DB, c.Agent, lastPrompt(body["messages"]), h.Now(), t.Tokenize)
	if err != nil { // an answer without it is better than none
		h.Log.Warn("apply feedback", "agent", c.Agent, "error", err)
		return nil
	}
	if bias != nil {
		encoded := map[string]float64{}
		for id, b := range bias {
			encoded[strconv.Itoa(id)] = b
		}
		if body["logit_bias"], err = json.Marshal(encoded); err != nil {
			return err
		}
	}
	return nil
}

// lastPrompt is the text of the last message of the user.
func lastPrompt(messages json.RawMessage) string {
	var list []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(messages, &list) != nil {
		return ""
	}
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Role != "user" {
			continue
		}
		var text string
		if json.Unmarshal(list[i].Content, &text) == nil {
			return text
		}
		var parts []struct{ Text string }
		_ = json.Unmarshal(list[i].Content, &parts) // of anything else there is no text
		for _, p := range parts {
			text += p.Text + " "
		}
		return strings.TrimSpace(text)
	}
	return ""
}

// copyAnswer passes an answer on, piece by piece where it is a stream. A
// server that dies in the middle of a stream leaves an error as the last
// event; otherwise the connection is broken, so that half an answer is not
// taken for one.
func copyAnswer(w http.ResponseWriter, r *http.Request, resp *http.Response, t target) {
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	if n := resp.Header.Get("Content-Length"); n != "" {
		w.Header().Set("Content-Length", n)
	}
	w.WriteHeader(resp.StatusCode)
	flush := http.NewResponseController(w).Flush
	buf := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return // the client is gone; the server stops when its request ends
			}
			if stream {
				_ = flush()
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err == nil:
			continue
		case r.Context().Err() != nil:
			return
		case !stream:
			panic(http.ErrAbortHandler)
		}
		event, _ := json.Marshal(lost(t).(*apiError).body())
		_, _ = w.Write(append(append([]byte("data: "), event...), "\n\n"...))
		return
	}
}

func lost(t target) error {
	if t.local {
		return &apiError{http.StatusBadGateway, "server_error", "model_lost", "the model's server ended before it had answered; it is started again, try again in a few seconds"}
	}
	return &apiError{http.StatusBadGateway, "server_error", "remote_unreachable", "the remote endpoint is not reachable"}
}

// requestTrouble is what a server says, with status 500, of a request that it
// cannot read.
var requestTrouble = regexp.MustCompile(`(?i)failed to parse|missing '|is not supported|unsupported|must be an? `)

// templateTrouble is what a server says when the messages do not fit the
// model's chat template: a mistake of the request, whatever the status.
var templateTrouble = regexp.MustCompile(`(?i)jinja|chat[_ ]?template|conversation roles|roles must alternate|unsupported role|unknown role|system (role|message)`)

// maxError is as much of an error as is read, in bytes.
const maxError = 64 << 10

// translated is the error of a server, without what only the host should know.
func translated(resp *http.Response, t target) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	var detail struct{ Message, Type string }
	if json.Unmarshal(body, &answer) != nil || json.Unmarshal(answer.Error, &detail) != nil {
		_ = json.Unmarshal(answer.Error, &detail.Message)
	}
	message := llama.Clean(detail.Message)
	e := &apiError{resp.StatusCode, detail.Type, "model_error", message}
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return &apiError{http.StatusBadGateway, "server_error", "remote_refused", "the endpoint refuses the key that the operator configured"}
	case templateTrouble.MatchString(message):
		return &apiError{http.StatusBadRequest, "invalid_request_error", "chat_template", "the messages do not fit the model's chat template: " + message}
	case message == "":
		e.message = "the model's server answers HTTP " + strconv.Itoa(resp.StatusCode)
	case resp.StatusCode == http.StatusNotImplemented && t.local, requestTrouble.MatchString(message):
		e.status, e.kind, e.code = http.StatusBadRequest, "invalid_request_error", "not_supported"
	}
	return e
}
