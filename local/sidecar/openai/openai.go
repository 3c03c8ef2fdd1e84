// Package openai is the OpenAI-compatible endpoint of the sidecar: the models
// that are loaded, chat completions with streaming, embeddings (OpenAI API,
// /v1/models, /v1/chat/completions, /v1/embeddings).
//
// Every path needs an agent's key: the same keys as the router's, with the
// scope inference:execute, of an agent that is active and not stopped. The
// mode of inference decides who answers: the loaded model, or the remote
// endpoint that the operator configured. What an agent said of earlier answers
// (jitrl_feedback) biases those of the local model.
//
// The package never shows an agent the key of a server, an address, or a path
// of the host, and hands no request to a server but the three kinds above.
package openai

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/category/inference"
	"pawgate/internal/client/llama"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed key.sql
	keySQL string
	//go:embed used.sql
	usedSQL string
)

// Handler answers the endpoint's requests.
type Handler struct {
	DB       postgres.DB
	Host     *llama.Host
	Settings inference.Settings
	Log      *slog.Logger
	Now      func() time.Time
}

// who is the agent of a request, and the mode in force.
type who struct {
	Credential string
	Scopes     []string
	Unnoted    bool // that the key is in use is not on record yet
	Agent      string
	State      string
	Stopped    bool
	Mode       inference.Mode
}

// ServeHTTP lets nobody further without a key, whatever the path.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	caller, err := h.authenticate(r)
	if err != nil {
		refuse(w, err)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/models":
		h.models(w, caller)
	case "POST /v1/chat/completions":
		h.complete(w, r, caller, chat)
	case "POST /v1/embeddings":
		h.complete(w, r, caller, embeddings)
	default:
		refuse(w, &apiError{http.StatusNotFound, "invalid_request_error", "not_found",
			"there is no " + r.Method + " on this path; there are GET /v1/models, POST /v1/chat/completions and POST /v1/embeddings"})
	}
}

// authenticate finds out whose key it is and what else may speak against the
// request, in one round trip.
func (h Handler) authenticate(r *http.Request) (who, error) {
	token, ok := bearer(r.Header)
	if !ok {
		return who{}, badKey()
	}
	sum := sha256.Sum256([]byte(token))
	c, err := postgres.One[who](r.Context(), h.DB, keySQL, pgx.StrictNamedArgs{"hash": sum[:]})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return who{}, badKey()
	case err != nil:
		return who{}, err
	case c.Stopped:
		return who{}, &apiError{http.StatusForbidden, "permission_error", "stopped", "an emergency stop covers agent " + c.Agent + "; an operator can resume it"}
	case c.State != "active":
		return who{}, &apiError{http.StatusForbidden, "permission_error", "agent_not_active", "agent " + c.Agent + " is " + c.State}
	case !(caller.Caller{Scopes: c.Scopes}).Allows("inference", "execute"):
		return who{}, &apiError{http.StatusForbidden, "permission_error", "insufficient_scope", "the key has not the scope inference:execute"}
	}
	if c.Unnoted {
		if _, err := postgres.Exec(r.Context(), h.DB, usedSQL, pgx.StrictNamedArgs{"id": c.Credential}); err != nil {
			h.Log.Warn("note the use of a key", "error", err)
		}
	}
	return c, nil
}

// bearer takes the token out of the one Authorization header (RFC 6750 §2.1).
func bearer(header http.Header) (string, bool) {
	values := header.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(strings.TrimSpace(values[0]), " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != ""
}

// models lists what would answer now.
func (h Handler) models(w http.ResponseWriter, c who) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{}}
	if c.Mode == inference.Auto || c.Mode == inference.Local {
		for _, v := range h.Host.Ready() {
			list.Data = append(list.Data, model{v.Name, "model", v.Since.Unix(), "local"})
		}
	}
	if (c.Mode == inference.Auto || c.Mode == inference.Remote) && h.Settings.RemoteURL != "" && h.Settings.RemoteModel != "" {
		list.Data = append(list.Data, model{h.Settings.RemoteModel, "model", 0, "remote"})
	}
	slices.SortFunc(list.Data, func(a, b model) int { return strings.Compare(a.ID, b.ID) })
	writeJSON(w, http.StatusOK, list)
}

// target is who answers a request.
type target struct {
	llama.Endpoint
	model   string
	local   bool
	release func()
}

// choose finds who answers, by the mode and by the model that was asked for.
func (h Handler) choose(c who, model string) (target, error) {
	remote := target{Endpoint: llama.NewEndpoint(h.Settings.RemoteURL, h.Settings.RemoteKey), model: h.Settings.RemoteModel, release: func() {}}
	configured := h.Settings.RemoteURL != ""
	switch {
	case c.Mode == inference.Off:
		return target{}, &apiError{http.StatusServiceUnavailable, "service_unavailable", "inference_off", "inference is off; inference_mode sets it"}
	case c.Mode == inference.Remote && !configured:
		return target{}, &apiError{http.StatusServiceUnavailable, "service_unavailable", "not_configured", "the mode is remote, and no remote endpoint is configured"}
	case c.Mode == inference.Remote, c.Mode == inference.Auto && configured && model != "" && model == remote.model:
		return remote, nil
	}
	lease, err := h.Host.Lease(strings.TrimSuffix(model, ".gguf"))
	if err == nil {
		return target{Endpoint: h.Host.At(lease), model: lease.Name, local: true, release: lease.Release}, nil
	}
	f, isFault := fault.Of(err)
	if isFault && f.Reason == fault.NotFound && model == "" && c.Mode == inference.Auto && configured {
		return remote, nil
	}
	return target{}, err
}
