package hub

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/fault"
)

// answering is a hub that gives one answer to everything.
func answering(t *testing.T, status int, body string) *Hub {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	h, err := New(Config{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestRepo(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("ab", 32)
	h := answering(t, 200, `{"id":"o/r","sha":"`+testCommit+`","gated":"auto","downloads":5,"likes":2,"gguf":{"total":135000000},"siblings":[
		{"rfilename":"m.gguf","size":10,"lfs":{"sha256":"`+sum+`","size":12}},
		{"rfilename":"../m.gguf","size":1},{"rfilename":"/m.gguf"},{"rfilename":"a/b/c/d/m.gguf"},{"rfilename":".m.gguf"},{"rfilename":"-m.gguf"},
		{"rfilename":"a\\m.gguf"},{"rfilename":"m.gguf\u0000"},{"rfilename":"README.md"},
		{"rfilename":"q/n.gguf","size":7,"lfs":{"sha256":"sha256:../../x","size":7}}]}`)
	got, err := h.Repo(t.Context(), "o/r", "")
	if err != nil {
		t.Fatal(err)
	}
	want := Repo{ID: "o/r", Revision: testCommit, Gated: true, Downloads: 5, Likes: 2, Parameters: 135000000,
		Files: []File{{"m.gguf", 12, sum}, {"q/n.gguf", 7, ""}}} // INF-01 no path, INF-02 no digest that is none
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("repository (-want +got):\n%s", diff)
	}
}

func TestRepo_refuses(t *testing.T) {
	t.Parallel()
	fine := answering(t, 200, `{"sha":"`+testCommit+`"}`)
	for name, id := range map[string]string{"traversal": "../..", "no_owner": "m", "three_parts": "a/b/c", "dots": "a/..", "query": "a/b?x=1", "empty": "", "space": "a/b c", "encoded": "a/%2e%2e"} {
		if _, err := fine.Repo(t.Context(), id, ""); !isInvalid(err, "repo") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, rev := range []string{"../x", "a/b", "a b", "-x", strings.Repeat("x", 101)} {
		if _, err := fine.Repo(t.Context(), "a/b", rev); !isInvalid(err, "revision") {
			t.Errorf("revision %s: %v", rev, err)
		}
	}
	for _, c := range []struct {
		status int
		body   string
		want   fault.Reason
	}{
		{404, "", fault.NotFound}, {401, "", Gated}, {403, "", Gated}, {429, "", fault.RateLimited}, {502, "", fault.Unavailable},
		{200, "<html>", fault.Unavailable}, {200, `{"sha":"main"}`, fault.Unavailable},
	} {
		if _, err := answering(t, c.status, c.body).Repo(t.Context(), "a/b", "main"); reason(err) != c.want {
			t.Errorf("HTTP %d %s: %v", c.status, c.body, err)
		}
	}
	gone, err := New(Config{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Repo(t.Context(), "a/b", ""); reason(err) != fault.Unavailable || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("nobody there: %v", err)
	}
}

func isInvalid(err error, parameter string) bool {
	i, ok := fault.InvalidOf(err)
	return ok && i.Parameter == parameter
}

func TestParts(t *testing.T) {
	t.Parallel()
	r := Repo{ID: "o/r", Files: []File{{Path: "one.gguf"}, {Path: "q/m-00001-of-00002.gguf"}, {Path: "q/m-00002-of-00002.gguf"}, {Path: "h-00001-of-00002.gguf"}}}
	for file, want := range map[string]string{
		"one.gguf": "one.gguf", "q/m-00001-of-00002.gguf": "q/m-00001-of-00002.gguf q/m-00002-of-00002.gguf",
		"q/m-00002-of-00002.gguf": "q/m-00001-of-00002.gguf q/m-00002-of-00002.gguf",
		"h-00001-of-00002.gguf":   "conflict", "none.gguf": "not_found",
	} {
		parts, err := r.Parts(file)
		got := string(reason(err))
		if err == nil {
			var names []string
			for _, p := range parts {
				names = append(names, p.Path)
			}
			got = strings.Join(names, " ")
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	var query string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.Query().Get("search") + "|" + r.URL.Query().Get("filter")
		_, _ = w.Write([]byte(`[{"id":"a/b","downloads":3},{"id":"../x"},{"id":"c/d"},{"id":"e/f"}]`))
	}))
	t.Cleanup(s.Close)
	h, err := New(Config{URL: s.URL + "/"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.Search(t.Context(), "小模型 & more", 2)
	if err != nil || len(got) != 2 || got[0].ID != "a/b" || got[1].ID != "c/d" || query != "小模型 & more|gguf" {
		t.Errorf("got %+v, %v, asked %q", got, err, query)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"ftp://x", "huggingface.co", "https://", "://"} {
		if _, err := New(Config{URL: bad}); err == nil || !strings.Contains(err.Error(), "PAWGATE_HUB_URL") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := New(Config{}); err != nil {
		t.Error(errors.Join(errors.New("the default"), err))
	}
}
