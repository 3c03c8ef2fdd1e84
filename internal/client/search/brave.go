package search

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

// BraveURL is where Brave's Search API is.
const BraveURL = "https://api.search.brave.com"

// Brave is Brave's Search API (api.search.brave.com, documentation of web
// search).
type Brave struct {
	api
	key string
}

// NewBrave is the API at base with a subscription token. It does no I/O.
func NewBrave(base, key string, options ...Option) (Brave, error) {
	a, err := newAPI("brave", base, "BRAVE_API_KEY", options)
	return Brave{a, key}, err
}

var braveFreshness = map[string]string{"day": "pd", "week": "pw", "month": "pm", "year": "py"}

// braveMax is the most results of one page.
const braveMax = 20

// Search asks the API.
func (b Brave) Search(ctx context.Context, q Query) ([]Result, error) {
	parameters := url.Values{"q": {q.Text}, "count": {strconv.Itoa(min(q.Limit, braveMax))}, "text_decorations": {"false"}}
	if f := braveFreshness[q.Freshness]; f != "" {
		parameters.Set("freshness", f)
	}
	if q.Language != "" {
		parameters.Set("search_lang", braveLanguage(q.Language))
	}
	var answer struct {
		Web struct {
			Results []struct {
				Title       string
				URL         string
				Description string
				PageAge     string `json:"page_age"`
			}
		}
	}
	header := http.Header{"Accept": {"application/json"}, "X-Subscription-Token": {b.key}}
	if err := b.request(ctx, safehttp.Request{URL: b.endpoint("/res/v1/web/search", parameters), Header: header}, &answer); err != nil {
		return nil, err
	}
	results := []Result{}
	for _, r := range answer.Web.Results {
		results = append(results, Result{Title: r.Title, URL: r.URL, Snippet: r.Description, Published: parseTime(r.PageAge), Engine: b.name})
	}
	return Merge(q.Limit, results), nil
}

// braveLanguage is Brave's code: two letters, with Chinese by script.
func braveLanguage(tag string) string {
	switch tag {
	case "zh-TW", "zh-HK", "zh-Hant":
		return "zh-hant"
	case "zh", "zh-CN", "zh-SG", "zh-Hans":
		return "zh-hans"
	case "ja", "ja-JP":
		return "jp"
	}
	return primary(tag)
}

// request reads Brave's two limits out of a 429: a used-up month is not the
// same as too many requests in this second. The headers hold one value for
// each window, shortest first.
func (b Brave) request(ctx context.Context, r safehttp.Request, answer any) error {
	var limits http.Header
	err := b.askWith(ctx, r, answer, &limits)
	var e *Error
	if !errors.As(err, &e) || e.Reason != fault.RateLimited {
		return err
	}
	remaining, resets := windows(limits, "X-RateLimit-Remaining"), windows(limits, "X-RateLimit-Reset")
	for i, reset := range resets {
		if i < len(remaining) && remaining[i] > 0 || i >= len(remaining) && i > 0 {
			continue
		}
		e.RetryAfter = max(min(time.Duration(reset)*time.Second, maxWait), time.Second)
		if i > 0 {
			e.Reason, e.Message = Exhausted, "the searches of its plan are used up"
		}
	}
	return err
}
