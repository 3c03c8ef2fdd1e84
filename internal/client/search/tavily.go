package search

import (
	"context"
	"encoding/json"
	"net/http"

	"pawgate/internal/safehttp"
)

// TavilyURL is where Tavily's API is.
const TavilyURL = "https://api.tavily.com"

// Tavily is Tavily's search API (docs.tavily.com, POST /search).
type Tavily struct {
	api
	key string
}

// NewTavily is the API at base with a key. It does no I/O.
func NewTavily(base, key string, options ...Option) (Tavily, error) {
	a, err := newAPI("tavily", base, "TAVILY_API_KEY", options)
	return Tavily{a, key}, err
}

// tavilyMax is the most results of one search.
const tavilyMax = 20

type tavilyQuery struct {
	Query      string `json:"query"`
	MaxResults int    `json:"max_results"`
	TimeRange  string `json:"time_range,omitempty"` // day, week, month, year
	Depth      string `json:"search_depth"`
}

// Search asks the API. It has no choice of language; the query's own decides.
func (t Tavily) Search(ctx context.Context, q Query) ([]Result, error) {
	body, err := json.Marshal(tavilyQuery{q.Text, min(q.Limit, tavilyMax), q.Freshness, "basic"})
	if err != nil {
		return nil, t.failed(Refused, "the query cannot be written")
	}
	var answer struct {
		Results []struct {
			Title         string
			URL           string
			Content       string
			PublishedDate string `json:"published_date"`
		}
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "Authorization": {"Bearer " + t.key}}
	request := safehttp.Request{Method: http.MethodPost, URL: t.endpoint("/search", nil), Header: header, Body: body}
	if err := t.ask(ctx, request, &answer); err != nil {
		return nil, err
	}
	results := []Result{}
	for _, r := range answer.Results {
		results = append(results, Result{Title: r.Title, URL: r.URL, Snippet: r.Content, Published: parseTime(r.PublishedDate), Engine: t.name})
	}
	return Merge(q.Limit, results), nil
}
