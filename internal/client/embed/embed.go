// Package embed asks an OpenAI-compatible server what texts mean: it turns
// them into vectors, by POST to its /embeddings.
//
// The server is one that the operator configures, never one that a caller
// names. The package retries nothing and keeps nothing; a text that is too
// long is shortened, because the beginning tells what it is about.
package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Config is the server and its model.
type Config struct {
	// URL is the base of the API, such as http://127.0.0.1:8081/v1; unset
	// means that there is none.
	URL   string `envconfig:"EMBEDDINGS_URL" desc:"OpenAI-compatible API for embeddings, up to /v1; unset: search by words alone"`
	Model string `envconfig:"EMBEDDINGS_MODEL" desc:"the model for embeddings"`
	Key   string `envconfig:"EMBEDDINGS_KEY" desc:"bearer key of that API, if it wants one"`
}

// Client asks one server. It is safe for concurrent use.
type Client struct {
	cfg  Config
	http *http.Client
}

// New is a client; it connects to nothing.
func New(cfg Config) *Client {
	return &Client{cfg: cfg, http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirect would take the key elsewhere
	}}}
}

// Model names the model: vectors of different models are not comparable.
func (c *Client) Model() string { return c.cfg.Model }

const (
	maxText     = 8000     // bytes of a text that are sent
	maxResponse = 64 << 20 // bytes
	maxSize     = 4096     // dimensions
)

// Embed gives a vector of length 1 for each text, in their order.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	short := make([]string, len(texts))
	for i, text := range texts {
		short[i] = strings.ToValidUTF8(text[:min(len(text), maxText)], "")
	}
	body, err := json.Marshal(map[string]any{"model": c.cfg.Model, "input": short, "encoding_format": "float"})
	if err != nil {
		return nil, fmt.Errorf("encode texts: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.cfg.URL, "/")+"/embeddings", bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("ask for embeddings: EMBEDDINGS_URL is no URL")
	}
	request.Header.Set("Content-Type", "application/json")
	if c.cfg.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.cfg.Key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		if wrapped := new(url.Error); errors.As(err, &wrapped) {
			err = wrapped.Err // without the address, which may hold a secret
		}
		return nil, fmt.Errorf("ask for embeddings: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for embeddings: the server answers %d", response.StatusCode)
	}
	return read(io.LimitReader(response.Body, maxResponse), len(texts))
}

func read(r io.Reader, want int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.NewDecoder(r).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read embeddings: %w", err)
	}
	vectors := make([][]float32, want)
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= want || len(d.Embedding) == 0 || len(d.Embedding) > maxSize {
			return nil, fmt.Errorf("read embeddings: an embedding of %d dimensions at place %d", len(d.Embedding), d.Index)
		}
		vectors[d.Index] = d.Embedding
	}
	for i, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, fmt.Errorf("read embeddings: text %d has %d dimensions, the first %d", i, len(v), len(vectors[0]))
		}
		normalize(v)
	}
	return vectors, nil
}
