package search

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"pawgate/internal/safehttp"
)

// Bing is a service that answers like Bing's Web Search API v7
// (learn.microsoft.com, bing-web-search). Microsoft's own ended on 2025-08-11,
// so its address must be configured.
type Bing struct {
	api
	key string
}

// NewBing is the service at base with a subscription key. It does no I/O.
func NewBing(base, key string, options ...Option) (Bing, error) {
	a, err := newAPI("bing", base, "BING_URL and BING_API_KEY", options)
	return Bing{a, key}, err
}

var bingFreshness = map[string]string{"day": "Day", "week": "Week", "month": "Month"}

// bingMax is the most results of one page.
const bingMax = 50

// Search asks the service. Freshness of a year is beyond it and left out.
func (b Bing) Search(ctx context.Context, q Query) ([]Result, error) {
	parameters := url.Values{"q": {q.Text}, "count": {strconv.Itoa(min(q.Limit, bingMax))}, "textDecorations": {"false"}, "responseFilter": {"Webpages"}}
	if f := bingFreshness[q.Freshness]; f != "" {
		parameters.Set("freshness", f)
	}
	if q.Language != "" {
		parameters.Set("setLang", q.Language)
	}
	var answer struct {
		WebPages struct {
			Value []struct {
				Name          string
				URL           string
				Snippet       string
				DatePublished string
			}
		}
	}
	header := http.Header{"Accept": {"application/json"}, "Ocp-Apim-Subscription-Key": {b.key}}
	if err := b.ask(ctx, safehttp.Request{URL: b.endpoint("/v7.0/search", parameters), Header: header}, &answer); err != nil {
		return nil, err
	}
	results := []Result{}
	for _, r := range answer.WebPages.Value {
		results = append(results, Result{Title: r.Name, URL: r.URL, Snippet: r.Snippet, Published: parseTime(r.DatePublished), Engine: b.name})
	}
	return Merge(q.Limit, results), nil
}
