package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/category/web"
	"pawgate/internal/tool/tooltest"
)

// TestRobots follows RFC 9309: the group that names us or *, the longest match,
// allow before disallow, * and $.
func TestRobots(t *testing.T) {
	t.Parallel()
	rules := map[string]string{
		"open.example":    "",
		"shut.example":    "User-agent: *\nDisallow: /",
		"named.example":   "\ufeffuser-agent: otherbot\nDisallow: /\n\nUser-Agent: PawGate # us\nuser-agent: friend\nDisallow: /private\nAllow: /private/open\n\nUser-agent: *\nDisallow: /",
		"pattern.example": "User-agent: *\nDisallow: /*.pdf$\nDisallow: /a/*/b\nDisallow: /q?x=\nAllow: /x\nDisallow: /x\nDisallow:\nSitemap: http://pattern.example/s.xml",
		"split.example":   "User-agent: pawgate\nDisallow: /one\nUser-agent: *\nDisallow: /\nUser-agent: pawgate\nDisallow: /two",
	}
	for _, c := range []struct {
		url     string
		allowed bool
	}{
		{"open.example/any", true}, {"missing.example/any", true}, {"shut.example/any", false}, {"shut.example/robots.txt", true},
		{"named.example/page", true}, {"named.example/private/x", false}, {"named.example/private/open/x", true},
		{"pattern.example/doc.pdf", false}, {"pattern.example/doc.pdf.html", true}, {"pattern.example/a/1/2/b", false}, {"pattern.example/a/b", true},
		{"pattern.example/q?x=1", false}, {"pattern.example/q?y=1", true}, {"pattern.example/x", true},
		{"split.example/one", false}, {"split.example/two", false}, {"split.example/three", true},
	} {
		t.Run(c.url, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for host, text := range rules {
				b.page(host+"/robots.txt", "text/plain", text)
			}
			path, _, _ := strings.Cut(c.url, "?")
			if path != "shut.example/robots.txt" {
				b.page(path, "text/plain", "here")
			}
			args := `{"url":"http://` + c.url + `","obey_robots":true}`
			if c.allowed {
				b.fetch(t, "a", args)
			} else {
				tooltest.Fault(t, b.cat, tooltest.Who("a"), "web_fetch_cached", args, "robots_disallowed")
				tooltest.Fault(t, b.cat, tooltest.Who("a"), "web_extract", args[:len(args)-1]+`,"selector":"p"}`, "robots_disallowed")
				b.fetch(t, "a", `{"url":"http://`+c.url+`"}`)
			}
		})
	}
}

func TestRobotsByOperator(t *testing.T) {
	t.Parallel()
	b := setup(t, web.Settings{ObeyRobots: true})
	b.page("shut.example/robots.txt", "text/plain", "User-agent: *\nDisallow: /x")
	b.page("shut.example/x", "text/plain", "x")
	b.page("shut.example/y", "text/plain", "y")
	tooltest.Fault(t, b.cat, tooltest.Who("a"), "web_fetch_cached", `{"url":"http://shut.example/x","obey_robots":false}`, "robots_disallowed")
	b.fetch(t, "a", `{"url":"http://shut.example/y"}`)
	b.fetch(t, "a", `{"url":"http://shut.example/y","ttl_seconds":0}`)
	if diff := cmp.Diff([]string{"shut.example/robots.txt", "shut.example/y", "shut.example/y"}, b.requests()); diff != "" {
		t.Errorf("robots.txt is asked for once a day (-want +got):\n%s", diff)
	}
	// What was read as rules is not served as a page.
	b.page("none.example/x", "text/plain", "x")
	b.fetch(t, "a", `{"url":"http://none.example/x"}`)
	tooltest.Fault(t, b.cat, tooltest.Who("a"), "web_fetch_cached", `{"url":"http://none.example/robots.txt"}`, "not_found")
	b.serve("ill.example/robots.txt", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if f := tooltest.Fault(t, b.cat, tooltest.Who("a"), "web_fetch_cached", `{"url":"http://ill.example/x"}`, "unavailable"); f.RetryAfter != time.Minute {
		t.Errorf("fault %+v", f)
	}
}
