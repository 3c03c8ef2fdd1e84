package router

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"pawgate/internal/claudecode"
	"pawgate/internal/fault"
	"pawgate/internal/otlp"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
	"pawgate/internal/usage"
)

// The routes by which usage comes in: OTLP over HTTP, and a POST of our own.
const (
	metricsPath = "/v1/metrics"
	logsPath    = "/v1/logs"
	usagePath   = "/v1/usage"
)

// maxUnpacked is the largest body after decompression, in bytes.
const maxUnpacked = 16 << 20

// telemetryTimeout is how long recording may take.
const telemetryTimeout = 20 * time.Second

// serveUsage takes usage in. Whoever may call tools may tell what it spent, and
// of itself only: the agent is the credential's. A stop or a pause does not
// keep it from that, because the money is spent.
func (r *Router) serveUsage(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		writeError(w, http.StatusMethodNotAllowed, "method_not_allowed", "send telemetry by POST")
		return
	}
	media, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	asJSON := media == "application/json"
	if err != nil || !asJSON && (media != "application/x-protobuf" || req.URL.Path == usagePath) {
		writeError(w, http.StatusUnsupportedMediaType, "unsupported_media_type", "send application/json, or for OTLP application/x-protobuf")
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), telemetryTimeout)
	defer cancel()
	c := r.newCall(ctx, new(message))
	if !r.authenticate(ctx, w, req, c) { // before the body is read
		return
	}
	if d := policy.Flooded(c.snapshot); d.Step != 0 {
		r.refuseFlood(ctx, w, c, d)
		return
	}
	body, ok := unpack(w, req)
	if !ok {
		return
	}
	answer, err := r.take(ctx, c.snapshot.Agent.ID, req.URL.Path, body, asJSON)
	var bad *fault.InvalidArgument
	switch {
	case errors.Is(err, otlp.ErrMalformed):
		writeError(w, http.StatusBadRequest, "malformed", err.Error())
	case errors.Is(err, otlp.ErrTooMany):
		writeError(w, http.StatusRequestEntityTooLarge, "too_many", err.Error())
	case errors.As(err, &bad):
		writeError(w, http.StatusBadRequest, "invalid_argument", bad.Message)
	case postgres.BadData(err):
		writeError(w, http.StatusBadRequest, "invalid_argument", "it holds what cannot be kept")
	case err != nil && passing(err):
		r.unavailable(ctx, w, c.message, err)
	case err != nil:
		r.Log.Error("usage not recorded", "request_id", c.requestID, "error", err)
		writeError(w, http.StatusInternalServerError, "internal", "it could not be recorded; the operator finds the cause in the log")
	default:
		w.Header().Set("Content-Type", media)
		_, _ = w.Write(answer)
	}
}

// unpack reads the body, also a compressed one; on failure it has answered.
func unpack(w http.ResponseWriter, req *http.Request) ([]byte, bool) {
	var in io.Reader = req.Body
	switch req.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(req.Body)
		if err != nil {
			return nil, unreadable(w, err)
		}
		in = unzipped
	default:
		writeError(w, http.StatusUnsupportedMediaType, "unsupported_encoding", "compress with gzip, or not at all")
		return nil, false
	}
	body, err := io.ReadAll(io.LimitReader(in, maxUnpacked+1))
	switch {
	case err != nil:
		return nil, unreadable(w, err)
	case len(body) > maxUnpacked:
		tooLarge(w, maxUnpacked)
		return nil, false
	}
	return body, true
}

func unreadable(w http.ResponseWriter, err error) bool {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		tooLarge(w, large.Limit)
	} else {
		writeError(w, http.StatusBadRequest, "malformed", "the body ends early or is not what its encoding says")
	}
	return false
}

// take records a body and gives the answer to it. Records that are of no use
// here are no errors: senders send everything.
func (r *Router) take(ctx context.Context, agent, path string, body []byte, asJSON bool) ([]byte, error) {
	now := r.Now()
	var late int64
	member := "rejectedDataPoints"
	switch path {
	case usagePath:
		return r.takeRows(ctx, agent, body)
	case metricsPath:
		read := otlp.MetricsProtobuf
		if asJSON {
			read = otlp.MetricsJSON
		}
		points, err := read(body)
		if err != nil {
			return nil, err
		}
		done, err := claudecode.Metrics(ctx, r.DB, agent, points, now)
		if err != nil {
			return nil, err
		}
		late = done.Late
	default:
		member = "rejectedLogRecords"
		read := otlp.LogsProtobuf
		if asJSON {
			read = otlp.LogsJSON
		}
		records, err := read(body)
		if err != nil {
			return nil, err
		}
		done, err := claudecode.Events(ctx, r.DB, agent, records, now)
		if err != nil {
			return nil, err
		}
		late = done.Late
	}
	const why = "from before the time that single rows are kept for"
	if asJSON {
		return otlp.RejectedJSON(member, int(late), why), nil
	}
	return otlp.RejectedProtobuf(int(late), why), nil
}

// posted is one row of a POST to /v1/usage. What a row of usage has besides, the
// router says.
type posted struct {
	ID          string            `json:"id"`
	At          time.Time         `json:"at"`
	User        string            `json:"user_id"`
	Session     string            `json:"session_id"`
	Task        string            `json:"task_id"`
	RequestType usage.RequestType `json:"request_type"`
	Provider    string            `json:"provider"`
	Model       string            `json:"model"`
	AskedModel  string            `json:"asked_model"`
	Tool        string            `json:"tool"`
	Requests    *int64            `json:"requests"`
	Units       int64             `json:"units"`
	Input       int64             `json:"input_tokens"`
	Output      int64             `json:"output_tokens"`
	CacheRead   int64             `json:"cache_read_tokens"`
	CacheWrite5 int64             `json:"cache_write_5m_tokens"`
	CacheWrite1 int64             `json:"cache_write_1h_tokens"`
	Reasoning   int64             `json:"reasoning_tokens"`
	Cost        *int64            `json:"cost_micro_usd"` // absent: by the prices here
}

// maxPosted is how many rows one POST may have.
const maxPosted = 1000

// maxMembers is more than a row has.
const maxMembers = 40

func (r *Router) takeRows(ctx context.Context, agent string, body []byte) ([]byte, error) {
	var request struct {
		Usage []posted `json:"usage"`
	}
	if bytes.Count(body, []byte{','}) > maxPosted*maxMembers { // before it takes a hundred times as much memory
		return nil, fault.Invalid("usage", "usage must have 1 to %d rows", maxPosted)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields() // a misspelt count would be taken for 0
	if err := dec.Decode(&request); err != nil || dec.More() {
		return nil, fault.Invalid("usage", `send {"usage": [{"id": …, "at": …, "model": …, "input_tokens": …}]}, with no other members`)
	}
	if len(request.Usage) == 0 || len(request.Usage) > maxPosted {
		return nil, fault.Invalid("usage", "usage must have 1 to %d rows", maxPosted)
	}
	rows := make([]usage.Row, len(request.Usage))
	for i, p := range request.Usage {
		if p.ID == "" {
			return nil, fault.Invalid("id", "every row needs an id of its own, so that sending it again counts once")
		}
		if p.At.After(r.Now().Add(time.Hour)) {
			return nil, fault.Invalid("at", "at lies in the future")
		}
		rows[i] = usage.Row{At: p.At, Agent: agent, User: p.User, Session: p.Session, Task: p.Task, RequestType: p.RequestType, Provider: p.Provider,
			Model: p.Model, AskedModel: p.AskedModel, Tool: p.Tool, Requests: p.Requests, Units: p.Units, Input: p.Input, Output: p.Output,
			CacheRead: p.CacheRead, CacheWrite: p.CacheWrite5, CacheWrite1: p.CacheWrite1, Reasoning: p.Reasoning, Reported: p.Cost,
			Source: usage.SourceAPI, ID: agent + "/" + p.ID}
	}
	done, err := usage.Record(ctx, r.DB, rows...)
	if err != nil {
		return nil, err
	}
	return tool.Marshal(map[string]any{"status": "ok", "added": done.Added, "grown": done.Grown, "late": done.Late})
}
