package search_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/client/search"
	"pawgate/internal/fault"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// fake is an engine's server: one answer, and what it was asked.
type fake struct {
	status int
	header map[string]string
	body   string
	asked  *http.Request
	sent   string
}

func (f *fake) start(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked = r.Clone(context.WithoutCancel(r.Context()))
		b, _ := io.ReadAll(r.Body)
		f.sent = string(b)
		for name, value := range f.header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(max(f.status, 200))
		_, _ = io.WriteString(w, f.body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const key = "k-secret"

func clock() search.Option { return search.WithClock(func() time.Time { return noon }) }

// engines opens each engine over a server.
var engines = map[string]func(base string) (search.Engine, error){
	"searxng": func(b string) (search.Engine, error) { return search.NewSearXNG(b, clock()) },
	"brave":   func(b string) (search.Engine, error) { return search.NewBrave(b, key, clock()) },
	"tavily":  func(b string) (search.Engine, error) { return search.NewTavily(b, key, clock()) },
	"google":  func(b string) (search.Engine, error) { return search.NewGoogle(b, key, "cx1", clock()) },
	"bing":    func(b string) (search.Engine, error) { return search.NewBing(b, key, clock()) },
}

func open(t *testing.T, name string, f *fake) search.Engine {
	t.Helper()
	e, err := engines[name](f.start(t))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestSearch(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		body, method, path string
		query              map[string]string
		header             map[string]string
		sent               string
		engine             string
	}{
		"searxng": {
			body:   `{"query":"q","number_of_results":0,"results":[{"url":"https://a.example/x","title":"A","content":"about a","engine":"qwant","publishedDate":"2026-11-30T08:00:00"},{"url":"https://A.example/x/#part","title":"again","content":"","engine":"bing","publishedDate":null}],"unresponsive_engines":[["google","CAPTCHA"]]}`,
			method: "GET", path: "/search", query: map[string]string{"q": "tide gauge", "format": "json", "time_range": "week", "language": "zh-TW"}, engine: "searxng:qwant"},
		"brave": {
			body:   `{"type":"search","web":{"results":[{"title":"A","url":"https://a.example/x","description":"about a","page_age":"2026-11-30T08:00:00"},{"title":"again","url":"http://www.a.example/x?utm_source=y","description":""}]}}`,
			method: "GET", path: "/res/v1/web/search", query: map[string]string{"q": "tide gauge", "count": "5", "freshness": "pw", "search_lang": "zh-hant"},
			header: map[string]string{"X-Subscription-Token": key}, engine: "brave"},
		"tavily": {
			body:   `{"query":"q","results":[{"title":"A","url":"https://a.example/x","content":"about a","score":0.9,"published_date":"Mon, 30 Nov 2026 08:00:00 GMT"}],"response_time":1.2}`,
			method: "POST", path: "/search", header: map[string]string{"Authorization": "Bearer " + key},
			sent: `{"query":"tide gauge","max_results":5,"time_range":"week","search_depth":"basic"}`, engine: "tavily"},
		"google": {
			body:   `{"items":[{"title":"A","link":"https://a.example/x","snippet":"about a","pagemap":{"metatags":[{"article:published_time":"2026-11-30T08:00:00Z"}]}}]}`,
			method: "GET", path: "/customsearch/v1", query: map[string]string{"q": "tide gauge", "key": key, "cx": "cx1", "num": "5", "dateRestrict": "w1", "lr": "lang_zh-TW"}, engine: "google"},
		"bing": {
			body:   `{"_type":"SearchResponse","webPages":{"value":[{"name":"A","url":"https://a.example/x","snippet":"about a","datePublished":"2026-11-30T08:00:00.0000000"}]}}`,
			method: "GET", path: "/v7.0/search", query: map[string]string{"q": "tide gauge", "count": "5", "freshness": "Week", "setLang": "zh-TW"},
			header: map[string]string{"Ocp-Apim-Subscription-Key": key}, engine: "bing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{body: c.body}
			got, err := open(t, name, f).Search(t.Context(), search.Query{Text: "tide gauge", Limit: 5, Freshness: "week", Language: "zh-TW"})
			if err != nil {
				t.Fatal(err)
			}
			want := []search.Result{{Title: "A", URL: "https://a.example/x", Snippet: "about a", Published: day, Engine: c.engine}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if f.asked.Method != c.method || f.asked.URL.Path != c.path || f.sent != c.sent {
				t.Errorf("asked %s %s with %q", f.asked.Method, f.asked.URL.Path, f.sent)
			}
			for parameter, value := range c.query {
				if f.asked.URL.Query().Get(parameter) != value {
					t.Errorf("parameter %s is %q, want %q", parameter, f.asked.URL.Query().Get(parameter), value)
				}
			}
			for header, value := range c.header {
				if f.asked.Header.Get(header) != value {
					t.Errorf("header %s is %q, want %q", header, f.asked.Header.Get(header), value)
				}
			}
		})
	}
}

// TestFailures: whatever is not an answer is an error with a reason, and with
// a time where waiting helps; never an empty list (complaints 109, 110). No
// error holds the key or an address.
func TestFailures(t *testing.T) {
	t.Parallel()
	all := []string{"searxng", "brave", "tavily", "google", "bing"}
	for _, c := range []struct {
		name    string
		engines []string
		fake    fake
		reason  fault.Reason
		retry   time.Duration
		says    string
	}{
		{"complaint 109: 429 with seconds", all, fake{status: 429, header: map[string]string{"Retry-After": "12"}}, fault.RateLimited, 12 * time.Second, "no more searches"},
		{"429 with a date", all, fake{status: 429, header: map[string]string{"Retry-After": "Tue, 01 Dec 2026 12:01:30 GMT"}}, fault.RateLimited, 90 * time.Second, ""},
		{"complaint 110: 429 without a time", all, fake{status: 429, body: "Too Many Requests"}, fault.RateLimited, 30 * time.Second, ""},
		{"complaint 110: the instance serves no JSON", []string{"searxng"}, fake{status: 403, body: "<html>Forbidden"}, search.Refused, 0, "search.formats"},
		{"a wrong key", []string{"brave", "tavily", "google", "bing"}, fake{status: 401, body: `{"detail":"bad"}`}, search.Refused, 0, "the operator checks"},
		{"503", all, fake{status: 503, header: map[string]string{"Retry-After": "40"}}, fault.Unavailable, 40 * time.Second, "503"},
		{"500", all, fake{status: 500}, fault.Unavailable, 30 * time.Second, ""},
		{"422", all, fake{status: 422, body: `{"error":{"detail":"q"}}`}, search.Refused, 0, "422"},
		{"a page of HTML with status 200", all, fake{body: "<html>consent</html>"}, search.BadAnswer, 0, "not the JSON"},
		{"JSON of another kind", all, fake{body: `[1]`}, search.BadAnswer, 0, ""},
		{"all engines of the instance failed", []string{"searxng"}, fake{body: `{"results":[],"unresponsive_engines":[["google","CAPTCHA"],["brave","too many requests"]]}`}, fault.Unavailable, 30 * time.Second, "google (CAPTCHA), brave (too many requests)"},
		{"Brave's second", []string{"brave"}, fake{status: 429, header: map[string]string{"X-RateLimit-Remaining": "0, 1500", "X-RateLimit-Reset": "1, 1419704"}}, fault.RateLimited, time.Second, ""},
		{"Brave's month", []string{"brave"}, fake{status: 429, header: map[string]string{"X-RateLimit-Remaining": "1, 0", "X-RateLimit-Reset": "1, 1419704"}}, search.Exhausted, 1419704 * time.Second, "used up"},
		{"Tavily's plan", []string{"tavily"}, fake{status: 432, body: `{"detail":{"error":"limit"}}`}, search.Exhausted, time.Hour, "used up"},
		{"Google's day", []string{"google"}, fake{status: 403, body: `{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`}, search.Exhausted, time.Hour, ""},
		{"Bing's quota", []string{"bing"}, fake{status: 403, body: `{"error":{"message":"Out of call volume quota."}}`}, search.Exhausted, time.Hour, ""},
		{"a redirect elsewhere", all, fake{status: 302, header: map[string]string{"Location": "http://other.example/"}}, "blocked_redirect", 30 * time.Second, ""},
	} {
		for _, name := range c.engines {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				f := c.fake
				got, err := open(t, name, &f).Search(t.Context(), search.Query{Text: "secret plans", Limit: 5})
				var e *search.Error
				if !errors.As(err, &e) || got != nil {
					t.Fatalf("got %v, %v, want an *Error", got, err)
				}
				if e.Reason != c.reason || e.RetryAfter != c.retry || !strings.Contains(e.Message, c.says) {
					t.Errorf("got %s after %s: %s; want %s after %s with %q", e.Reason, e.RetryAfter, e.Message, c.reason, c.retry, c.says)
				}
				for _, private := range []string{key, "secret plans", "127.0.0.1", "other.example", "cx1"} {
					if strings.Contains(err.Error(), private) {
						t.Errorf("the error holds %q: %v", private, err)
					}
				}
			})
		}
	}
}

func TestNothingFound(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"searxng": `{"results":[]}`, "brave": `{"web":{}}`, "tavily": `{"results":[]}`, "google": `{}`, "bing": `{}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := open(t, name, &fake{body: body}).Search(t.Context(), search.Query{Text: "x", Limit: 5})
			if err != nil || got == nil || len(got) != 0 {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	e, err := search.NewBrave("http://127.0.0.1:1", key)
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Search(t.Context(), search.Query{Text: "x", Limit: 5})
	var failed *search.Error
	if !errors.As(err, &failed) || failed.Reason != "connect_failed" || failed.RetryAfter == 0 || strings.Contains(err.Error(), key) {
		t.Errorf("error %+v", err)
	}
	if _, err := search.NewSearXNG("not a url"); err == nil {
		t.Error("a broken base address was taken")
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	urls := func(list []search.Result) (all []string) {
		for _, r := range list {
			all = append(all, r.URL)
		}
		return all
	}
	got := urls(search.Merge(3, []search.Result{{URL: "https://www.a.example/x/"}, {URL: "http://a.example/x?fbclid=1#p"}, {URL: "javascript:alert(1)"}, {URL: ""}, {URL: "https://a.example/X"}},
		[]search.Result{{URL: "https://a.example/x?id=1"}, {URL: "https://b.example/"}}))
	if diff := cmp.Diff([]string{"https://www.a.example/x/", "https://a.example/X", "https://a.example/x?id=1"}, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}
