package openai

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"pawgate/internal/fault"
)

// apiError is an error in the form of the OpenAI API.
type apiError struct {
	status  int
	kind    string // "type" of the answer
	code    string
	message string
}

func (e *apiError) Error() string { return e.message }

func badKey() error {
	return &apiError{http.StatusUnauthorized, "authentication_error", "invalid_api_key", "send a valid key as \"Authorization: Bearer paw_…\""}
}

func badRequest(message string) error {
	return &apiError{http.StatusBadRequest, "invalid_request_error", "invalid_request", message}
}

// refuse answers an error. One that is neither of the API nor a fault is an
// accident and is only logged.
func refuse(w http.ResponseWriter, err error) {
	var e *apiError
	if f, ok := fault.Of(err); ok && !errors.As(err, &e) {
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(max(int(f.RetryAfter.Seconds()), 1)))
		}
		e = &apiError{statusOf(f.Reason), "service_unavailable", string(f.Reason), f.Message}
		if e.status == http.StatusNotFound {
			e.kind = "invalid_request_error"
		}
	}
	if e == nil && !errors.As(err, &e) {
		if invalid, ok := fault.InvalidOf(err); ok {
			e = badRequest(invalid.Message).(*apiError)
		} else {
			slog.Error("answer completion", "error", err)
			e = &apiError{http.StatusInternalServerError, "server_error", "internal", "internal error; the operator finds it in the log"}
		}
	}
	if e.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="pawgate"`)
	}
	writeJSON(w, e.status, e.body())
}

func statusOf(r fault.Reason) int {
	switch r {
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

// body is the JSON of an error (OpenAI API, error object).
func (e *apiError) body() any {
	return map[string]any{"error": map[string]any{"message": e.message, "type": e.kind, "code": e.code, "param": nil}}
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	b, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client is gone
}
