package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/client/search"
	"pawgate/internal/fault"
	"pawgate/internal/page"
)

const defaultResults = 10

type searchArgs struct {
	Query     string `json:"query" doc:"What to look for" maxlen:"400"`
	Limit     int    `json:"limit,omitempty" doc:"10 if left out" min:"1" max:"20"`
	Freshness string `json:"freshness,omitempty" doc:"Pages of the last …" enum:"day,week,month,year"`
	Language  string `json:"language,omitempty" doc:"Such as en or zh-TW" maxlen:"16"`
}

var languageTag = regexp.MustCompile(`^[a-zA-Z]{2,3}(-[a-zA-Z0-9]{2,8})*$`)

func (a searchArgs) Validate() error {
	if strings.TrimSpace(a.Query) == "" {
		return fault.Invalid("query", "query must not be empty")
	}
	if a.Language != "" && !languageTag.MatchString(a.Language) {
		return fault.Invalid("language", "language must be a language tag such as en, de or zh-TW")
	}
	return nil
}

type searchResult struct {
	Results []found `json:"results"`
	Engine  string  `json:"engine"`
	// Failed are engines that were tried first, and why they gave nothing.
	Failed []failed `json:"failed,omitzero"`
	Notice string   `json:"notice"`
}

type found struct {
	Title     string    `json:"title"`
	URL       string    `json:"url"`
	Snippet   string    `json:"snippet"`
	Published time.Time `json:"published,omitzero"`
	Engine    string    `json:"engine"`
}

type failed struct {
	Engine       string       `json:"engine"`
	Reason       fault.Reason `json:"reason"`
	Error        string       `json:"error"`
	RetryAfterMS int64        `json:"retry_after_ms,omitzero"`
}

// search asks the engines in order until one answers.
func (w web) search(ctx context.Context, _ caller.Caller, a searchArgs) (searchResult, error) {
	if len(w.engines) == 0 {
		return searchResult{}, fault.New(fault.NotConfigured,
			"no search engine is configured; the operator sets SEARXNG_URL, BRAVE_API_KEY, TAVILY_API_KEY, GOOGLE_CSE_KEY with GOOGLE_CSE_ID, or BING_URL with BING_API_KEY")
	}
	q := search.Query{Text: strings.TrimSpace(a.Query), Limit: cmp.Or(a.Limit, defaultResults), Freshness: a.Freshness, Language: a.Language}
	var tried []failed
	for _, e := range w.engines {
		if e.asker == nil {
			tried = append(tried, failed{Engine: e.name, Reason: fault.NotConfigured, Error: e.missing})
			continue
		}
		results, err := e.asker.Search(ctx, q)
		if err == nil {
			return searchResult{Results: presentable(results), Engine: e.name, Failed: tried, Notice: notice}, nil
		}
		if ctx.Err() != nil {
			return searchResult{}, fmt.Errorf("search with %s: %w", e.name, ctx.Err())
		}
		tried = append(tried, explainFailure(e.name, err))
	}
	return searchResult{}, allFailed(tried)
}

func explainFailure(name string, err error) failed {
	var e *search.Error
	if !errors.As(err, &e) {
		return failed{Engine: name, Reason: fault.Unavailable, Error: "it failed"}
	}
	return failed{Engine: name, Reason: e.Reason, Error: oneLine(e.Message, maxSnippet), RetryAfterMS: e.RetryAfter.Milliseconds()}
}

// allFailed is the fault when no engine answered. Its reason is that of the
// failure that waiting ends soonest, for that is what the caller can do.
func allFailed(tried []failed) error {
	var parts []string
	reason, wait := tried[0].Reason, int64(0)
	for _, f := range tried {
		parts = append(parts, f.Engine+": "+f.Error)
		if f.RetryAfterMS > 0 && (wait == 0 || f.RetryAfterMS < wait) {
			reason, wait = f.Reason, f.RetryAfterMS
		}
	}
	return fault.Retry(reason, time.Duration(wait)*time.Millisecond, "the search failed; %s", strings.Join(parts, "; ")).With("engines", tried)
}

// Bounds on what an engine says of a page, in characters.
const (
	maxTitle   = 300
	maxSnippet = 1000
)

func presentable(results []search.Result) []found {
	list := []found{}
	for _, r := range results {
		list = append(list, found{
			Title: oneLine(page.Plain(r.Title), maxTitle), URL: oneLine(r.URL, maxURL), Snippet: oneLine(page.Plain(r.Snippet), maxSnippet),
			Published: r.Published, Engine: oneLine(r.Engine, 60),
		})
	}
	return list
}

// oneLine is a stranger's text made fit for an answer: one line, of bounded
// length, without what no reader sees and without the fence's word.
func oneLine(s string, limit int) string {
	s = page.Neutralize(strings.Join(strings.Fields(page.Visible(s)), " "))
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
