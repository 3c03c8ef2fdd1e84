package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pawgate/internal/category/web"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
)

func TestCacheAge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.page("a.example/x", "text/plain", "first")
	step := func(name, args string, wantRequests int, wantCached bool, wantText string) {
		t.Helper()
		got := b.fetch(t, "a", args)
		if text := inside(t, got.Content); len(b.requests()) != wantRequests || got.Cached != wantCached || text != wantText {
			t.Errorf("%s: %d requests, cached %v, %q", name, len(b.requests()), got.Cached, text)
		}
	}
	step("first", `{"url":"http://a.example/x"}`, 1, false, "first")
	b.page("a.example/x", "text/plain", "second")
	b.now = b.now.Add(23 * time.Hour)
	step("within a day", `{"url":"http://a.example/x"}`, 1, true, "first")
	step("a fragment is no other page", `{"url":"HTTP://A.example./x#part"}`, 1, true, "first")
	step("older than the caller takes", `{"url":"http://a.example/x","ttl_seconds":3600}`, 2, false, "second")
	b.page("a.example/x", "text/plain", "third")
	step("ttl as text", `{"url":"http://a.example/x","ttl_seconds":"60"}`, 2, true, "second")
	step("anew", `{"url":"http://a.example/x","ttl_seconds":0}`, 3, false, "third")
	step("another query is another page", `{"url":"http://a.example/x?b=2&a=1"}`, 4, false, "third")
	step("and its order counts", `{"url":"http://a.example/x?a=1&b=2"}`, 5, false, "third")
	if n := b.count(t, `select count(*) from web_pages`); n != 3 {
		t.Errorf("%d pages are kept", n)
	}
}

// TestCacheIsOnesOwn: no agent reads what another fetched, nor changes it.
func TestCacheIsOnesOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.page("a.example/private", "text/plain", "for a")
	b.fetch(t, "a", `{"url":"http://a.example/private?token=t"}`)
	b.page("a.example/private", "text/plain", "for b")
	if got := b.fetch(t, "b", `{"url":"http://a.example/private?token=t"}`); got.Cached || inside(t, got.Content) != "for b" {
		t.Errorf("b was given %+v", got)
	}
	if got := b.fetch(t, "a", `{"url":"http://a.example/private?token=t"}`); !got.Cached || inside(t, got.Content) != "for a" {
		t.Errorf("a was given %+v", got)
	}
	if _, err := b.db.Exec(t.Context(), `delete from agents where id = 'b'`); err != nil {
		t.Errorf("the cache holds on to an agent: %v", err)
	}
	if n := b.count(t, `select count(*) from web_pages where agent_id = 'b'`); n != 0 {
		t.Errorf("%d pages of nobody", n)
	}
	if got := b.fetch(t, "nobody", `{"url":"http://a.example/private"}`); inside(t, got.Content) != "for b" {
		t.Errorf("an agent without a row was given %+v", got)
	}
}

func TestCacheAsksForWhatChanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	version := `"v1"`
	b.serve("a.example/x", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", version)
		w.Header().Set("Last-Modified", "Mon, 30 Nov 2026 08:00:00 GMT")
		w.Header().Set("Content-Type", "text/plain")
		if r.Header.Get("If-None-Match") == version {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte("content " + version))
	})
	b.fetch(t, "a", `{"url":"http://a.example/x"}`)
	b.now = b.now.Add(48 * time.Hour)
	got := b.fetch(t, "a", `{"url":"http://a.example/x"}`)
	if !got.Cached || !got.FetchedAt.Equal(noon) || !got.CheckedAt.Equal(b.now) || inside(t, got.Content) != `content "v1"` {
		t.Errorf("after 304: %+v", got)
	}
	if h := b.last().Header; h.Get("If-None-Match") != `"v1"` || h.Get("If-Modified-Since") != "Mon, 30 Nov 2026 08:00:00 GMT" {
		t.Errorf("asked with %v", h)
	}
	b.now = b.now.Add(time.Hour)
	if got = b.fetch(t, "a", `{"url":"http://a.example/x"}`); len(b.requests()) != 2 || !got.Cached {
		t.Errorf("after the confirmation: %d requests", len(b.requests()))
	}
	version = `"v2"`
	if got = b.fetch(t, "a", `{"url":"http://a.example/x","ttl_seconds":0}`); got.Cached || inside(t, got.Content) != `content "v2"` {
		t.Errorf("after a change: %+v", got)
	}
}

// TestCacheRedirect: the validators of a copy do not cross hosts, and the page
// is read all the same.
func TestCacheRedirect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.serve("old.example/x", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://new.example/y?z=1")
		w.WriteHeader(http.StatusPermanentRedirect)
	})
	b.page("new.example/y", "text/html", "<p>Here it is, a paragraph of some length. <a href='a'>link</a></p>", "ETag", `"e"`)
	for range 2 {
		got := b.fetch(t, "a", `{"url":"http://old.example/x","ttl_seconds":0}`)
		if got.URL != "http://new.example/y?z=1" || !strings.Contains(got.Content, "(http://new.example/a)") {
			t.Errorf("got %+v", got)
		}
	}
	if h := b.last().Header; h.Get("If-None-Match") != "" {
		t.Errorf("the validator went to another host: %v", h)
	}
}

func TestCacheNoStore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.page("a.example/x", "text/plain", "public")
	b.fetch(t, "a", `{"url":"http://a.example/x"}`)
	b.page("a.example/x", "text/plain", "secret", "Cache-Control", "private, No-Store")
	for range 2 {
		if got := b.fetch(t, "a", `{"url":"http://a.example/x","ttl_seconds":0}`); got.Cached || inside(t, got.Content) != "secret" {
			t.Errorf("got %+v", got)
		}
	}
	if n := b.count(t, `select count(*) from web_pages`); n != 0 {
		t.Errorf("%d copies of a page that is not to be stored", n)
	}
}

func TestCacheTellsOfACopy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.page("a.example/x", "text/plain", "kept")
	b.fetch(t, "a", `{"url":"http://a.example/x"}`)
	b.now = b.now.Add(30 * time.Hour)
	b.serve("a.example/x", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	f := tooltest.Fault(t, b.cat, tooltest.Who("a"), "web_fetch_cached", `{"url":"http://a.example/x"}`, "unavailable")
	if !strings.Contains(f.Message, "a copy of 2026-12-01T12:00:00Z is kept, ask with ttl_seconds 108060") || f.RetryAfter == 0 {
		t.Errorf("fault %+v", f)
	}
	if got := b.fetch(t, "a", `{"url":"http://a.example/x","ttl_seconds":108060}`); !got.Cached || inside(t, got.Content) != "kept" {
		t.Errorf("got %+v", got)
	}
}

func TestCacheBounds(t *testing.T) {
	t.Parallel()
	b := setup(t, web.Settings{AgentBytes: 2500, CacheBytes: 4000, CacheAge: 72 * time.Hour})
	for n := range 5 {
		b.page(fmt.Sprintf("a.example/%d", n), "text/plain", strings.Repeat("x", 1000))
	}
	b.page("a.example/large", "text/plain", strings.Repeat("x", 3000))
	fetch := func(agent string, pages ...string) {
		for _, p := range pages {
			b.fetch(t, agent, `{"url":"http://a.example/`+p+`"}`)
			b.now = b.now.Add(time.Minute)
		}
	}
	kept := func(agent string) int {
		return b.count(t, `select count(*) from web_pages where agent_id = $1`, agent)
	}
	fetch("a", "0", "1", "2")
	if kept("a") != 2 {
		t.Errorf("%d pages of a, within 2 500 bytes", kept("a"))
	}
	fetch("a", "2", "1")
	if n := len(b.requests()); n != 3 {
		t.Errorf("%d requests: the oldest page goes first", n)
	}
	fetch("a", "large")
	if kept("a") != 2 {
		t.Errorf("%d pages of a after one larger than its share", kept("a"))
	}
	fetch("b", "0", "1", "2")
	if kept("a")+kept("b") != 4 {
		t.Errorf("%d pages of a, %d of b, within 4 000 bytes", kept("a"), kept("b"))
	}
	if _, err := b.db.Exec(t.Context(), `insert into agents (id) values ('c')`); err != nil {
		t.Fatal(err)
	}
	fetch("c", "0")
	if kept("a") != 1 || kept("b") != 2 || kept("c") != 1 {
		t.Errorf("pages of a, b, c: %d, %d, %d; the oldest of all goes first", kept("a"), kept("b"), kept("c"))
	}
	b.now = b.now.Add(73 * time.Hour)
	fetch("b", "3")
	if n := b.count(t, `select count(*) from web_pages`); n != 1 {
		t.Errorf("%d pages after three days", n)
	}
}

// TestCacheHoldsNoConnection: while pages are slow, the database is free for
// others (complaint 56). Many fetches of one page at once are all answered.
func TestCacheHoldsNoConnection(t *testing.T) {
	t.Parallel()
	db := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), MaxConns: 1})
	b := setupOn(t, db)
	arrived, release := make(chan bool, 20), make(chan bool)
	b.serve("slow.example/x", func(w http.ResponseWriter, _ *http.Request) {
		arrived <- true
		<-release
		_, _ = w.Write([]byte("slow"))
	})
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			agent := []string{"a", "b"}[n%2]
			if out := tooltest.Call(t, b.cat, tooltest.Who(agent), "web_fetch_cached", `{"url":"http://slow.example/x","format":"text"}`); out.OK == nil {
				t.Errorf("got %+v", out.Fault)
			}
		})
	}
	for range 20 {
		<-arrived
	}
	if n := b.count(t, `select count(*) from agents`); n < 2 { // would wait for ever behind a held connection
		t.Errorf("%d agents", n)
	}
	close(release)
	wg.Wait()
	if n := b.count(t, `select count(*) from web_pages`); n != 2 {
		t.Errorf("%d pages are kept", n)
	}
}
