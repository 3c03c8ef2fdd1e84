package serve

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// maxCall is the largest call the sidecar reads, in bytes: the router's own
// bound on a body, and room for the envelope.
const maxCall = 5 << 20

// Handler serves calls over HTTP: POST /call/<category>. The answer to a call
// that was read is always 200 with an outcome in it.
func Handler(hosts map[string]*Host) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /call/{category}", func(w http.ResponseWriter, req *http.Request) {
		host, ok := hosts[req.PathValue("category")]
		if !ok {
			reply(w, http.StatusNotFound, tool.Outcome{Fault: fault.New(fault.NotFound, "this sidecar does not serve that category")})
			return
		}
		var call tool.Call
		if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, maxCall)).Decode(&call); err != nil {
			status := http.StatusBadRequest
			if over := new(http.MaxBytesError); errors.As(err, &over) {
				status = http.StatusRequestEntityTooLarge
			}
			reply(w, status, tool.Outcome{Fault: fault.New(fault.Denied, "the call could not be read")})
			return
		}
		if req.Header.Get("Accept") == tool.MediaLines {
			teller := &teller{w: w}
			teller.finish(host.Handle(tool.WithProgress(req.Context(), teller.report), call))
			return
		}
		reply(w, http.StatusOK, host.Handle(req.Context(), call))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"ok"}`))
	})
	return mux
}

// teller tells a router the progress of a call, a line for each report, before
// the outcome. A call without any is answered like every other.
type teller struct {
	w http.ResponseWriter

	mu    sync.Mutex
	told  bool
	ended bool // a handler may report after it gave up; nobody listens then
}

func (t *teller) report(p tool.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	if !t.told {
		t.told = true
		t.w.Header().Set("Content-Type", tool.MediaLines)
		t.w.WriteHeader(http.StatusOK)
	}
	t.line(tool.Line{Progress: &p})
}

func (t *teller) line(l tool.Line) {
	body, err := tool.Marshal(l)
	if err != nil { // a report that is no number
		return
	}
	_, _ = t.w.Write(append(body, '\n'))
	_ = http.NewResponseController(t.w).Flush()
}

func (t *teller) finish(out tool.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if !t.told {
		reply(t.w, http.StatusOK, out)
		return
	}
	t.line(tool.Line{Outcome: out})
}

func reply(w http.ResponseWriter, status int, out tool.Outcome) {
	body, err := tool.Marshal(out)
	if err != nil {
		slog.Error("encode outcome", "error", err)
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the router is gone; it will say so to its client
}
