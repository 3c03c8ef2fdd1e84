package llama

import (
	"bytes"
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

// Post sends a JSON body and gives the answer as it comes, so that a stream
// stays one; the caller closes its body. path begins after the version.
func (e Endpoint) Post(ctx context.Context, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(e.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if e.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.Key)
	}
	return e.Client.Do(req)
}

// Tokenize turns a text into token ids. Only llama-server and llamafiles can;
// it stands beside the version of their API.
func (e Endpoint) Tokenize(ctx context.Context, text string) ([]int, error) {
	body, err := json.Marshal(map[string]string{"content": text})
	if err != nil {
		return nil, fmt.Errorf("encode text: %w", err)
	}
	beside := e
	beside.URL = strings.TrimSuffix(strings.TrimRight(e.URL, "/"), "/v1")
	resp, err := beside.Post(ctx, "/tokenize", body)
	if err != nil {
		return nil, fmt.Errorf("tokenize: %w", err)
	}
	defer resp.Body.Close()
	var answer struct{ Tokens []int }
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxModelList)).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("tokenize: HTTP %d", resp.StatusCode)
	}
	return answer.Tokens, nil
}
