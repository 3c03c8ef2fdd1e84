// Package search asks search engines: SearXNG, Brave, Tavily, Google's Custom
// Search JSON API, and services that answer like Bing's Web Search API v7.
//
// Each engine is a thin client of its own over safehttp.Fixed, which speaks to
// the configured server and to nothing else, so neither a redirect nor a
// mistake carries a key elsewhere. No SDK is used: one request and one answer
// each do not pay for one.
//
// An answer that is not one (a rate limit, a refusal, a page of HTML, an
// instance all of whose own engines failed) is an *Error with the time after
// which to try again, never an empty list. The package keeps no state, makes
// no retries and never puts a key, or the URL that may hold it, into an error.
package search

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

// Query is what to look for.
type Query struct {
	Text  string
	Limit int // most results; an engine may give fewer
	// Freshness is how old a result may be: day, week, month, year, or empty.
	Freshness string
	// Language is that of the results, as BCP 47: en, zh-TW; empty for any.
	Language string
}

// Result is one page found. Text may hold markup.
type Result struct {
	Title     string
	URL       string
	Snippet   string
	Published time.Time // zero when the engine does not say
	Engine    string    // which engine found it, such as brave or searxng:qwant
}

// Engine is a search engine.
type Engine interface {
	Name() string
	// Search gives results, best first. The error is an *Error.
	Search(ctx context.Context, q Query) ([]Result, error)
}

// Error is a search that failed, in words for the caller of a tool.
type Error struct {
	Engine     string
	Reason     fault.Reason
	Message    string
	RetryAfter time.Duration // zero when waiting is not the remedy
	cause      error
}

func (e *Error) Error() string { return e.Engine + ": " + e.Message }

// Unwrap is the cause, for the log.
func (e *Error) Unwrap() error { return e.cause }

// The reasons of an Error beside those of package fault and safehttp.
const (
	Refused   fault.Reason = "engine_refused"  // the key or the request is not accepted
	Exhausted fault.Reason = "quota_exhausted" // the plan allows no more searches
	BadAnswer fault.Reason = "bad_response"    // the answer is not what the engine gives
)

// The waits that are named when an engine asks for patience without a time.
const (
	defaultWait      = 30 * time.Second
	defaultQuotaWait = time.Hour
)

// Limits of a request.
const (
	timeout  = 10 * time.Second // of one engine, so that time is left for the next
	maxBytes = 4 << 20
)

// Option replaces a part of an engine, for tests.
type Option func(*api)

// WithHTTP passes options to the HTTP client.
func WithHTTP(options ...safehttp.Option) Option {
	return func(a *api) { a.options = append(a.options, options...) }
}

// WithClock replaces time.Now, by which a Retry-After date is read.
func WithClock(now func() time.Time) Option { return func(a *api) { a.now = now } }

// api is what the engines share: one server, asked with one credential.
type api struct {
	name    string
	base    *url.URL
	client  *safehttp.Client
	setting string // that holds the key, for messages
	refusal string // what a 401 or 403 means, in words for the caller
	options []safehttp.Option
	now     func() time.Time
}

// newAPI prepares the server of an engine. It does no I/O.
func newAPI(name, base, setting string, options []Option) (api, error) {
	a := api{name: name, setting: setting, refusal: "it refuses the search; the operator checks " + setting, now: time.Now}
	for _, option := range options {
		option(&a)
	}
	u, err := safehttp.CheckURL(base)
	if err != nil {
		return api{}, err
	}
	a.base = u
	a.client, err = safehttp.Fixed(base, safehttp.Policy{Timeout: timeout, MaxBytes: maxBytes}, a.options...)
	return a, err
}

// Name is the engine's name.
func (a api) Name() string { return a.name }

// endpoint is a path below the configured base.
func (a api) endpoint(path string, query url.Values) string {
	u := *a.base
	u.Path = strings.TrimSuffix(u.Path, "/") + path
	u.RawQuery = query.Encode()
	return u.String()
}

// ask makes a request and decodes its JSON answer.
func (a api) ask(ctx context.Context, r safehttp.Request, answer any) error {
	return a.askWith(ctx, r, answer, new(http.Header))
}

// askWith is ask for an engine that says more in its headers.
func (a api) askWith(ctx context.Context, r safehttp.Request, answer any, header *http.Header) error {
	response, err := a.client.Do(ctx, r)
	if err != nil {
		return a.unreached(err)
	}
	*header = response.Header
	if e := a.statusError(response); e != nil {
		return e
	}
	if response.Truncated || json.Unmarshal(response.Body, answer) != nil {
		return a.failed(BadAnswer, "its answer is not the JSON that was expected; the operator checks its address")
	}
	return nil
}

// unreached words an error of the HTTP client without its host, which may be
// one of the operator's own network.
func (a api) unreached(err error) *Error {
	e := a.failed(fault.Unavailable, "it cannot be reached at the moment")
	if f, ok := fault.Of(err); ok {
		e.Reason = f.Reason
	}
	switch e.Reason {
	case safehttp.Timeout, fault.Cancelled:
		e.Message = "it did not answer in time"
	case safehttp.BlockedRedirect:
		e.Message = "it redirects to another host; the operator checks its address"
	}
	e.RetryAfter, e.cause = defaultWait, err
	return e
}

func (a api) failed(reason fault.Reason, message string) *Error {
	return &Error{Engine: a.name, Reason: reason, Message: message}
}

// statusError words a status that is not success, as the engines share them.
func (a api) statusError(r *safehttp.Response) *Error {
	switch {
	case r.Status < 300:
		return nil
	case r.Status == http.StatusTooManyRequests:
		e := a.failed(fault.RateLimited, "it allows no more searches for now")
		e.RetryAfter = RetryAfter(r.Header, a.now())
		if e.RetryAfter == 0 {
			e.RetryAfter = defaultWait
		}
		return e
	case quotaSpent(r):
		e := a.failed(Exhausted, "the searches of its plan are used up; the operator checks the plan behind "+a.setting)
		e.RetryAfter = max(RetryAfter(r.Header, a.now()), defaultQuotaWait)
		return e
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		return a.failed(Refused, a.refusal)
	case r.Status >= 500:
		e := a.failed(fault.Unavailable, fmt.Sprintf("it has a failure of its own (HTTP status %d)", r.Status))
		e.RetryAfter = max(RetryAfter(r.Header, a.now()), defaultWait)
		return e
	}
	return a.failed(Refused, fmt.Sprintf("it does not accept the search (HTTP status %d); try a simpler query", r.Status))
}

// quotaSpent reads the statuses by which the engines say so: 402, Tavily's 432
// and 433, and a 403 whose body names a limit or quota (Google, Bing).
func quotaSpent(r *safehttp.Response) bool {
	switch r.Status {
	case http.StatusPaymentRequired, 432, 433:
		return true
	case http.StatusForbidden:
		body := strings.ToLower(string(r.Body[:min(len(r.Body), 4096)]))
		return strings.Contains(body, "quota") || strings.Contains(body, "limitexceeded")
	}
	return false
}

// parseTime reads the times that engines give.
func parseTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05.9999999", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02", time.RFC1123, time.RFC1123Z} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil && t.Year() > 1970 {
			return t.UTC()
		}
	}
	return time.Time{}
}

// primary is the language of a tag without its region: zh of zh-TW.
func primary(tag string) string {
	language, _, _ := strings.Cut(tag, "-")
	return strings.ToLower(language)
}

// Merge puts results in one list, best first, each page once: addresses that
// differ only in scheme, "www.", a closing slash, a fragment or tracking
// parameters are one page.
func Merge(limit int, lists ...[]Result) []Result {
	merged := []Result{}
	seen := map[string]bool{}
	for _, list := range lists {
		for _, r := range list {
			key, ok := pageKey(r.URL)
			if !ok || seen[key] || len(merged) >= limit {
				continue
			}
			seen[key] = true
			merged = append(merged, r)
		}
	}
	return merged
}

func pageKey(raw string) (string, bool) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", false
	}
	q := u.Query()
	for name := range q {
		if strings.HasPrefix(name, "utm_") || slices.Contains([]string{"fbclid", "gclid", "msclkid", "igshid"}, name) {
			q.Del(name)
		}
	}
	host := strings.TrimPrefix(strings.ToLower(u.Host), "www.")
	return host + strings.TrimSuffix(u.EscapedPath(), "/") + "?" + q.Encode(), true
}
