package search

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

// SearXNG is an instance of the metasearch engine SearXNG, best one's own:
// public instances serve no JSON and limit programs (docs.searxng.org,
// dev/search_api and admin/searx.limiter).
type SearXNG struct{ api }

// NewSearXNG is the instance at base. It does no I/O.
func NewSearXNG(base string, options ...Option) (SearXNG, error) {
	a, err := newAPI("searxng", base, "SEARXNG_URL", options)
	a.refusal = "the instance refuses to answer in JSON; its operator adds json to search.formats in its settings"
	return SearXNG{a}, err
}

type searxngAnswer struct {
	Results []struct {
		URL           string
		Title         string
		Content       string
		Engine        string
		PublishedDate string
	}
	// Pairs of an engine's name and why it gave nothing.
	Unresponsive [][]string `json:"unresponsive_engines"`
}

// Search asks the instance.
func (s SearXNG) Search(ctx context.Context, q Query) ([]Result, error) {
	parameters := url.Values{"q": {q.Text}, "format": {"json"}}
	if q.Freshness != "" {
		parameters.Set("time_range", q.Freshness) // day, week, month, year
	}
	if q.Language != "" {
		parameters.Set("language", q.Language)
	}
	var answer searxngAnswer
	err := s.ask(ctx, safehttp.Request{URL: s.endpoint("/search", parameters), Header: http.Header{"Accept": {"application/json"}}}, &answer)
	if err != nil {
		return nil, err
	}
	if len(answer.Results) == 0 && len(answer.Unresponsive) > 0 {
		e := s.failed(fault.Unavailable, "none of its engines answered: "+reasons(answer.Unresponsive))
		e.RetryAfter = defaultWait
		return nil, e
	}
	results := []Result{}
	for _, r := range answer.Results {
		name := s.name
		if r.Engine != "" {
			name += ":" + r.Engine
		}
		results = append(results, Result{Title: r.Title, URL: r.URL, Snippet: r.Content, Published: parseTime(r.PublishedDate), Engine: name})
	}
	return Merge(q.Limit, results), nil
}

// reasons lists at most five engines and what they said.
func reasons(unresponsive [][]string) string {
	var parts []string
	for _, pair := range unresponsive[:min(len(unresponsive), 5)] {
		if len(pair) >= 2 {
			parts = append(parts, fmt.Sprintf("%.40s (%.60s)", pair[0], pair[1]))
		}
	}
	return strings.Join(parts, ", ")
}
