package search

import (
	"context"
	"net/url"
	"strconv"

	"pawgate/internal/safehttp"
)

// GoogleURL is where Google's Custom Search JSON API is.
const GoogleURL = "https://www.googleapis.com"

// Google is the Custom Search JSON API (developers.google.com, custom-search,
// cse.list). Google takes no new customers for it and ends it on 2027-01-01
// (seen 2026-12); it is here for those who have it.
type Google struct {
	api
	key, engineID string
}

// NewGoogle is the API at base with a key and the id of a Programmable Search
// Engine. It does no I/O.
func NewGoogle(base, key, engineID string, options ...Option) (Google, error) {
	a, err := newAPI("google", base, "GOOGLE_CSE_KEY and GOOGLE_CSE_ID", options)
	return Google{a, key, engineID}, err
}

var googleFreshness = map[string]string{"day": "d1", "week": "w1", "month": "m1", "year": "y1"}

// googleMax is the most results of one page.
const googleMax = 10

type googleAnswer struct {
	Items []struct {
		Title   string
		Link    string
		Snippet string
		PageMap struct {
			Metatags []map[string]string
		}
	}
}

// Search asks the API.
func (g Google) Search(ctx context.Context, q Query) ([]Result, error) {
	// The key is a parameter here; no error of safehttp holds a URL's query.
	parameters := url.Values{"key": {g.key}, "cx": {g.engineID}, "q": {q.Text}, "num": {strconv.Itoa(min(q.Limit, googleMax))}}
	if f := googleFreshness[q.Freshness]; f != "" {
		parameters.Set("dateRestrict", f)
	}
	if q.Language != "" {
		parameters.Set("lr", "lang_"+googleLanguage(q.Language))
	}
	var answer googleAnswer
	if err := g.ask(ctx, safehttp.Request{URL: g.endpoint("/customsearch/v1", parameters)}, &answer); err != nil {
		return nil, err
	}
	results := []Result{}
	for _, r := range answer.Items {
		result := Result{Title: r.Title, URL: r.Link, Snippet: r.Snippet, Engine: g.name}
		if len(r.PageMap.Metatags) > 0 {
			result.Published = parseTime(r.PageMap.Metatags[0]["article:published_time"])
		}
		results = append(results, result)
	}
	return Merge(q.Limit, results), nil
}

// googleLanguage is Google's code: two letters, with Chinese by region.
func googleLanguage(tag string) string {
	switch tag {
	case "zh-TW", "zh-HK", "zh-Hant":
		return "zh-TW"
	case "zh", "zh-CN", "zh-Hans":
		return "zh-CN"
	}
	return primary(tag)
}
