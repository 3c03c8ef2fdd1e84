package github_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pawgate/internal/client/github"
	"pawgate/internal/client/github/githubtest"
	"pawgate/internal/fault"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

const token = "test-token-1"

func client(t *testing.T, g *githubtest.GitHub, key string) *github.Client {
	t.Helper()
	c, err := github.New(github.Config{URL: g.URL, Token: key}, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClient(t *testing.T) {
	t.Parallel()
	g := githubtest.New(t)
	long := strings.Repeat("多位元組 ", 100)
	commit := g.Push("acme/skills", map[string]githubtest.File{"README.md": {Content: "hi"}, "pdf/SKILL.md": {Content: long}, "pdf/run.sh": {Content: "x", Mode: "100755"}})
	c := client(t, g, token)
	got, err := c.Commit(t.Context(), "acme/skills", "")
	if err != nil || got != commit {
		t.Fatalf("commit %q, %v, want %q", got, err, commit)
	}
	if h := g.Last().Header; h.Get("Authorization") != "Bearer "+token || h.Get("X-GitHub-Api-Version") == "" {
		t.Errorf("headers %v", h)
	}
	entries, truncated, err := c.Tree(t.Context(), "acme/skills", commit, true)
	if err != nil || truncated || len(entries) != 4 {
		t.Fatalf("tree %+v, %v, %v", entries, truncated, err)
	}
	for _, e := range entries {
		if e.Path != "pdf/SKILL.md" {
			continue
		}
		if b, err := c.Blob(t.Context(), "acme/skills", e.SHA, 1<<20); err != nil || string(b) != long {
			t.Errorf("blob %q, %v", b, err)
		}
		if _, err := c.Blob(t.Context(), "acme/skills", e.SHA, 10); reason(err) != fault.TooLarge {
			t.Errorf("a large blob: %v", err)
		}
		g.Corrupt = true
		if _, err := c.Blob(t.Context(), "acme/skills", e.SHA, 1<<20); reason(err) != github.BadContent {
			t.Errorf("a changed blob: %v", err)
		}
	}
	sub, err := c.Subtree(t.Context(), "acme/skills", commit, "pdf")
	if err != nil {
		t.Fatal(err)
	}
	if entries, _, err := c.Tree(t.Context(), "acme/skills", sub, true); err != nil || len(entries) != 2 || !entries[1].Plain() {
		t.Errorf("subtree %+v, %v", entries, err)
	}
	if _, err := c.Subtree(t.Context(), "acme/skills", commit, "nope/x"); reason(err) != fault.NotFound {
		t.Errorf("no folder: %v", err)
	}
}

func reason(err error) fault.Reason {
	if f, ok := fault.Of(err); ok {
		return f.Reason
	}
	return ""
}

// The shapes of refusals are those of GitHub's pages on its rate limits and on
// troubleshooting.
func TestClient_refusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status  int
		headers map[string]string
		body    string
		want    fault.Reason
		wait    time.Duration
	}{
		"primary limit":            {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(noon.Add(90 * time.Second).Unix())}, `{"message":"API rate limit exceeded for 192.0.2.7."}`, fault.RateLimited, 90 * time.Second},
		"primary limit as 429":     {429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(noon.Add(time.Hour).Unix())}, `{}`, fault.RateLimited, time.Hour},
		"reset in the past":        {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": fmt.Sprint(noon.Add(-time.Hour).Unix())}, `{}`, fault.RateLimited, time.Second},
		"secondary limit":          {403, map[string]string{"Retry-After": "120", "X-RateLimit-Remaining": "55"}, `{"message":"You have exceeded a secondary rate limit."}`, fault.RateLimited, 2 * time.Minute},
		"secondary limit, no time": {403, map[string]string{"X-RateLimit-Remaining": "55"}, `{"message":"You have exceeded a secondary rate limit."}`, fault.RateLimited, time.Minute},
		"refused":                  {403, map[string]string{"X-RateLimit-Remaining": "55"}, `{"message":"Resource not accessible by personal access token"}`, fault.Denied, 0},
		"bad token":                {401, nil, `{"message":"Bad credentials"}`, fault.NotConfigured, 0},
		"none":                     {404, nil, `{"message":"Not Found"}`, fault.NotFound, 0},
		"empty":                    {409, nil, `{"message":"Git Repository is empty."}`, fault.NotFound, 0},
		"taken down":               {451, nil, `{}`, fault.Denied, 0},
		"down":                     {502, nil, `<html>`, fault.Unavailable, 30 * time.Second},
		"elsewhere":                {302, map[string]string{"Location": "https://evil.example/"}, "", github.BadAnswer, 0},
		"not a commit":             {200, nil, "<html>", github.BadAnswer, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := githubtest.New(t)
			g.Refuse = func(w http.ResponseWriter, _ *http.Request) bool {
				for k, v := range tc.headers {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
				return true
			}
			_, err := client(t, g, token).Commit(t.Context(), "acme/skills", "main")
			f, _ := fault.Of(err)
			if f == nil || f.Reason != tc.want || f.RetryAfter != tc.wait {
				t.Fatalf("got %v (%+v), want %s after %s", err, f, tc.want, tc.wait)
			}
			if strings.Contains(err.Error(), token) || strings.Contains(err.Error(), g.URL) {
				t.Errorf("the error tells too much: %v", err)
			}
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	g := githubtest.New(t)
	for _, repo := range []string{"", "acme", "acme/skills/x", "../x", "acme/..", "acme/a b", "-a/b", "a/b?x=1", "a/b#c"} {
		if github.CheckRepo("owner", repo) == nil {
			t.Errorf("repo %q is taken", repo)
		}
		if _, err := client(t, g, "").Commit(t.Context(), repo, ""); err == nil {
			t.Errorf("repo %q is asked for", repo)
		}
	}
	for ref, want := range map[string]bool{"main": true, "v1.2": true, "feature/x": true, "": false, "a..b": false, "-x": false, "a b": false, "x?y": false, "a//b": false} {
		if (github.CheckRef("ref", ref) == nil) != want {
			t.Errorf("ref %q is taken: %v", ref, !want)
		}
	}
	if len(g.Requests()) > 0 {
		t.Errorf("asked for %v", g.Requests())
	}
	if _, err := github.New(github.Config{URL: "ftp://x"}, time.Now); err == nil {
		t.Error("an address that is none is taken")
	}
}

// Whoever forks a repository has commits that GitHub gives in its name.
func TestResolve_takes_no_commit_of_a_fork(t *testing.T) {
	t.Parallel()
	g := githubtest.New(t)
	files := func(text string) map[string]githubtest.File {
		return map[string]githubtest.File{"pdf/SKILL.md": {Content: text}}
	}
	first := g.Push("acme/skills", files("1"))
	second := g.Push("acme/skills", files("2"))
	tip := g.Aside("acme/skills", "next", files("3"))
	fork := g.Aside("acme/skills", "", files("evil"))
	c := client(t, g, "")
	for ref, want := range map[string]string{"": second, "main": second, "next": tip, first: first, second: second, tip: tip, first[:10]: first} {
		if got, err := c.Resolve(t.Context(), "acme/skills", ref); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", ref, got, err, want)
		}
	}
	for _, ref := range []string{fork, fork[:8], "nowhere"} {
		if got, err := c.Resolve(t.Context(), "acme/skills", ref); reason(err) != fault.NotFound {
			t.Errorf("%q: %q, %v", ref, got, err)
		}
	}
	g.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/compare/") {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		return false
	}
	if got, err := c.Resolve(t.Context(), "acme/skills", first); reason(err) != fault.Unavailable {
		t.Errorf("when it cannot be told: %q, %v", got, err)
	}
	for _, ref := range []string{"pull/1/head", "refs/pull/1/head", "refs/notes/x", "a..b", "a/", "-x"} {
		if github.CheckRef("ref", ref) == nil {
			t.Errorf("%q is taken", ref)
		}
	}
	for _, ref := range []string{"main", "v1.2", "feature/x", "refs/heads/main", "tags/v1"} {
		if err := github.CheckRef("ref", ref); err != nil {
			t.Errorf("%q: %v", ref, err)
		}
	}
}
