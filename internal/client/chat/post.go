package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxAnswer = 16 << 20 // bytes
	maxReason = 300      // bytes of a provider's own words in an error
)

// endpoint is a server that the operator configured.
type endpoint struct {
	url, key, provider string
	client             *http.Client
}

func newEndpoint(cfg Config, missing string) (endpoint, error) {
	if cfg.URL == "" {
		return endpoint{}, errors.New(missing)
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return endpoint{}, errors.New("PAWGATE_CHAT_URL is not an http or https URL")
	}
	if cfg.Key != "" && u.Scheme == "http" && !loopback(u.Hostname()) {
		return endpoint{}, errors.New("PAWGATE_CHAT_URL must be https: a key goes with every request")
	}
	return endpoint{url: strings.TrimRight(cfg.URL, "/"), key: cfg.Key, provider: cmp.Or(cfg.Provider, providerOf(cfg.API, u.Hostname())),
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a redirect would take the key elsewhere
		}}}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// providerOf names a server as price lists do: api.mistral.ai is mistral. One
// on this machine is local, and has no price unless the operator sets one.
func providerOf(api API, host string) string {
	labels := strings.Split(host, ".")
	switch {
	case api == Anthropic:
		return string(Anthropic)
	case loopback(host) || net.ParseIP(host) != nil || len(labels) < 2:
		return "local"
	}
	return labels[len(labels)-2]
}

// Provider names the server.
func (e endpoint) Provider() string { return e.provider }

// post sends one question and decodes its answer.
func (e endpoint) post(ctx context.Context, path string, header http.Header, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("encode conversation: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+path, bytes.NewReader(body))
	if err != nil {
		return &Error{Text: "the address of the model's server is not a URL"}
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return broken(ctx, "the model's server (PAWGATE_CHAT_URL) cannot be reached")
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return broken(ctx, "the connection to the model's server broke off")
	case resp.StatusCode != http.StatusOK:
		return e.refused(resp, content)
	case len(content) > maxAnswer:
		return &Error{Status: resp.StatusCode, Text: "the answer of the model's server is too large"}
	}
	if err := json.Unmarshal(content, answer); err != nil {
		return &Error{Status: resp.StatusCode, Text: "the model's server does not answer as its API says; is PAWGATE_CHAT_API right?"}
	}
	return nil
}

// broken is a failure without an answer, which may go away; the error's own
// text holds the address, so it is not shown.
func broken(ctx context.Context, text string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return &Error{Text: text, Again: true}
}

// passing are the statuses that go away: time-outs, conflicts, limits, trouble
// at the provider, and Anthropic's "overloaded" (529).
var passing = []int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529}

func (e endpoint) refused(resp *http.Response, content []byte) error {
	var answer struct{ Error json.RawMessage }
	_ = json.Unmarshal(content, &answer) // a proxy in between answers in HTML
	var said struct {
		Type, Message string
		Code          any
	}
	if json.Unmarshal(answer.Error, &said) != nil {
		_ = json.Unmarshal(answer.Error, &said.Message) // some say it in a plain string
	}
	out := &Error{Status: resp.StatusCode, After: retryAfter(resp.Header, time.Now())}
	code := fmt.Sprint(said.Code)
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		// Their own words may quote the key.
		out.Text = fmt.Sprintf("the model's server refuses the key (HTTP %d); PAWGATE_CHAT_KEY sets it", resp.StatusCode)
		return out
	case code == "insufficient_quota" || said.Type == "insufficient_quota" || said.Type == "billing_error":
		out.Text = "the account at the model's provider has no money left"
		return out
	}
	out.Again = slices.Contains(passing, resp.StatusCode)
	if resp.Header.Get("X-Should-Retry") == "false" {
		out.Again = false
	}
	out.Text = fmt.Sprintf("the model's server answers HTTP %d", resp.StatusCode)
	if why := e.quotable(said.Message); why != "" {
		out.Text += ": " + why
	}
	return out
}

// quotable is what may be repeated of a provider's words.
func (e endpoint) quotable(s string) string {
	if e.key != "" {
		s = strings.ReplaceAll(s, e.key, "[key]")
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if len(s) > maxReason {
		s = s[:maxReason]
		for !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
		s += "…"
	}
	return s
}

// retryAfter is how long a provider wants to be left alone: seconds or a date
// (RFC 9110 §10.2.3), or milliseconds, as both OpenAI and Anthropic say it.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
