package llama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Endpoint is a server that speaks the OpenAI API: one of ours, or a remote
// one that the operator configured.
type Endpoint struct {
	URL    string // up to and with the version: https://host/v1
	Key    string
	Client *http.Client
}

// NewEndpoint is an endpoint that the operator configured. Its client follows
// no redirect, because the key is meant for one place.
func NewEndpoint(url, key string) Endpoint {
	return Endpoint{URL: url, Key: key, Client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// State of an endpoint.
type State string

// The states.
const (
	Healthy      State = "healthy"
	Refused      State = "refused" // it answers, but not to this key
	Failing      State = "failing" // it answers with errors, or not what such a server would
	Unreachable  State = "unreachable"
	Unconfigured State = "not_configured"
)

// Health is what an endpoint answered when asked for its models.
type Health struct {
	State   State         `json:"state"`
	Models  []string      `json:"models"`
	Detail  string        `json:"detail,omitzero"`
	Latency time.Duration `json:"-"`
}

const (
	healthTimeout = 3 * time.Second
	maxModelList  = 1 << 20
)

// Check asks an endpoint for its models (OpenAI API, GET /models). It does not
// fail: every trouble is a state.
func (e Endpoint) Check(ctx context.Context) Health {
	if e.URL == "" {
		return Health{State: Unconfigured, Models: []string{}}
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	start := time.Now()
	h := e.check(ctx)
	h.Latency = time.Since(start)
	if h.Models == nil {
		h.Models = []string{}
	}
	return h
}

func (e Endpoint) check(ctx context.Context) Health {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(e.URL, "/")+"/models", nil)
	if err != nil {
		return Health{State: Failing, Detail: "its address is not a URL"}
	}
	if e.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.Key)
	}
	resp, err := e.Client.Do(req)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return Health{State: Unreachable, Detail: "no answer in time"}
		}
		return Health{State: Unreachable, Detail: "no connection"}
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return Health{State: Refused, Detail: "it refuses the configured key"}
	case resp.StatusCode != http.StatusOK:
		return Health{State: Failing, Detail: fmt.Sprintf("it answers HTTP %d", resp.StatusCode)}
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxModelList)).Decode(&list); err != nil {
		return Health{State: Failing, Detail: "it answers, but not with a list of models"}
	}
	models := make([]string, 0, len(list.Data))
	for _, m := range list.Data {
		models = append(models, m.ID)
	}
	return Health{State: Healthy, Models: models}
}
