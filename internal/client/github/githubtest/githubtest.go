// Package githubtest is a GitHub for tests: repositories in memory, served in
// the shapes of its REST API, with its limits.
package githubtest

import (
	"cmp"
	"crypto/sha1" // git's names
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// File is what a tree has under a path.
type File struct {
	Content string
	Mode    string // 100644 when empty
}

// GitHub is one server.
type GitHub struct {
	*httptest.Server
	mu    sync.Mutex
	repos map[string]*repo
	// Refuse, when set, may answer a request first; it reports whether it did.
	Refuse func(w http.ResponseWriter, r *http.Request) bool
	// Truncate makes recursive trees say that they are a part alone.
	Truncate bool
	// Corrupt changes the bytes of every blob.
	Corrupt bool
	// Private makes every repository private: those with a token see it.
	Private  bool
	requests []*http.Request
}

type repo struct {
	head    string
	commits map[string]map[string]File
	refs    map[string]string
	history []string // of the default branch, the first commit first
}

// New is a server that ends with the test.
func New(t testing.TB) *GitHub {
	t.Helper()
	g := &GitHub{repos: map[string]*repo{}}
	g.Server = httptest.NewServer(http.HandlerFunc(g.serve))
	t.Cleanup(g.Close)
	return g
}

// Push makes a commit of a repository with exactly these files, and gives its
// name. The default branch, main, is at it then.
func (g *GitHub) Push(name string, files map[string]File) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.repos[name]
	if r == nil {
		r = &repo{commits: map[string]map[string]File{}, refs: map[string]string{}}
		g.repos[name] = r
	}
	commit := hash("commit", fmt.Sprint(len(r.commits), files))
	r.commits[commit], r.head, r.refs["main"] = files, commit, commit
	r.history = append(r.history, commit)
	return commit
}

// Aside makes a commit that is not on the default branch: at the tip of a
// branch, or, without one, a fork's, which GitHub gives by its number all the
// same.
func (g *GitHub) Aside(name, branch string, files map[string]File) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.repos[name]
	commit := hash("commit", "aside "+branch+fmt.Sprint(len(r.commits), files))
	r.commits[commit] = files
	if branch != "" {
		r.refs[branch] = commit
	}
	return commit
}

// Requests are the paths that were asked for.
func (g *GitHub) Requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	paths := []string{}
	for _, r := range g.requests {
		paths = append(paths, r.URL.Path)
	}
	return paths
}

// Last is the request before all others.
func (g *GitHub) Last() *http.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests[len(g.requests)-1]
}

func hash(kind, content string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", kind, len(content), content))
	return hex.EncodeToString(sum[:])
}

func (g *GitHub) serve(w http.ResponseWriter, req *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.requests = append(g.requests, req)
	if g.Refuse != nil && g.Refuse(w, req) {
		return
	}
	parts := strings.SplitN(strings.TrimPrefix(req.URL.Path, "/repos/"), "/", 3)
	r := g.repos[strings.Join(parts[:min(2, len(parts))], "/")]
	if r != nil && len(parts) == 2 {
		answer(w, http.StatusOK, map[string]any{"full_name": strings.Join(parts, "/"), "private": g.Private})
		return
	}
	if r == nil || len(parts) < 3 {
		answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
		return
	}
	kind, name, _ := strings.Cut(parts[2], "/")
	if kind == "git" {
		kind, name, _ = strings.Cut(name, "/")
	}
	switch kind {
	case "compare":
		base, head, _ := strings.Cut(name, "...")
		g.compare(w, r, base, head)
	case "commits":
		if commit, ok := strings.CutSuffix(name, "/branches-where-head"); ok {
			g.tips(w, r, commit)
			return
		}
		g.commit(w, r, name)
	case "trees":
		g.tree(w, r, name, req.URL.Query().Has("recursive"))
	case "blobs":
		g.blob(w, r, name)
	default:
		answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
	}
}

func (g *GitHub) commit(w http.ResponseWriter, r *repo, ref string) {
	commit := cmp.Or(r.refs[ref], ref)
	if ref == "HEAD" {
		commit = r.head
	}
	for full := range r.commits { // abbreviated
		if len(ref) >= 7 && strings.HasPrefix(full, ref) {
			commit = full
		}
	}
	if r.commits[commit] == nil {
		answer(w, http.StatusUnprocessableEntity, map[string]string{"message": "No commit found for SHA: " + ref})
		return
	}
	_, _ = w.Write([]byte(commit))
}

func (g *GitHub) compare(w http.ResponseWriter, r *repo, base, head string) {
	at, is := slices.Index(r.history, base), slices.Index(r.history, head)
	status := "diverged"
	switch {
	case base == head:
		status = "identical"
	case at >= 0 && is >= 0 && is < at:
		status = "behind"
	case at >= 0 && is > at:
		status = "ahead"
	}
	answer(w, http.StatusOK, map[string]any{"status": status, "commits": []any{}})
}

func (g *GitHub) tips(w http.ResponseWriter, r *repo, commit string) {
	tips := []map[string]any{}
	for name, at := range r.refs {
		if at == commit {
			tips = append(tips, map[string]any{"name": name, "commit": map[string]string{"sha": at}, "protected": false})
		}
	}
	answer(w, http.StatusOK, tips)
}

func (g *GitHub) tree(w http.ResponseWriter, r *repo, name string, recursive bool) {
	files := r.commits[name]
	prefix := ""
	for commit, all := range r.commits {
		for path := range all {
			for i := range len(path) {
				if path[i] == '/' && hash("tree", commit+path[:i]) == name {
					files, prefix = all, path[:i+1]
				}
			}
		}
	}
	if files == nil {
		answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
		return
	}
	commit := ""
	for c, all := range r.commits {
		if fmt.Sprint(all) == fmt.Sprint(files) {
			commit = c
		}
	}
	seen := map[string]bool{}
	entries := []map[string]any{}
	folder := func(path string) {
		if full := prefix + path; !seen[path] {
			seen[path] = true
			entries = append(entries, map[string]any{"path": path, "mode": "040000", "type": "tree", "sha": hash("tree", commit+full)})
		}
	}
	for path, f := range files {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok {
			continue
		}
		if first, _, deeper := strings.Cut(rest, "/"); deeper && !recursive {
			folder(first)
			continue
		}
		for i := range len(rest) {
			if rest[i] == '/' {
				folder(rest[:i])
			}
		}
		e := map[string]any{"path": rest, "mode": cmp.Or(f.Mode, "100644"), "type": "blob", "sha": hash("blob", f.Content), "size": len(f.Content)}
		if f.Mode == "160000" {
			e["type"] = "commit"
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b map[string]any) int { return strings.Compare(a["path"].(string), b["path"].(string)) })
	answer(w, http.StatusOK, map[string]any{"sha": name, "tree": entries, "truncated": g.Truncate && recursive && prefix == ""})
}

func (g *GitHub) blob(w http.ResponseWriter, r *repo, name string) {
	for _, files := range r.commits {
		for _, f := range files {
			if hash("blob", f.Content) != name {
				continue
			}
			content := f.Content
			if g.Corrupt {
				content += "!"
			}
			text := base64.StdEncoding.EncodeToString([]byte(content))
			wrapped := ""
			for len(text) > 60 { // GitHub breaks the lines
				wrapped, text = wrapped+text[:60]+"\n", text[60:]
			}
			answer(w, http.StatusOK, map[string]any{"sha": name, "size": len(content), "encoding": "base64", "content": wrapped + text + "\n"})
			return
		}
	}
	answer(w, http.StatusNotFound, map[string]string{"message": "Not Found"})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
