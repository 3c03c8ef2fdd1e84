package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const testCommit = "0123456789abcdef0123456789abcdef01234567"

// server is a hub with one repository, org/model-GGUF, and a CDN that it
// redirects to, as the real one does.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // method, path and range of downloads
	content  map[string][]byte
	// serve answers a download; nil: correctly.
	serve func(w http.ResponseWriter, r *http.Request, content []byte)
	// meta changes what the API says of a file.
	meta func(file string, size int64, sum string) (int64, string)
}

func newServer(t *testing.T, content map[string][]byte) *server {
	t.Helper()
	s := &server{content: content}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/models/org/model-GGUF", s.api)
	mux.HandleFunc("GET /api/models/org/model-GGUF/revision/{rev}", s.api)
	mux.HandleFunc("GET /org/model-GGUF/resolve/"+testCommit+"/{file...}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/cdn/"+r.PathValue("file"), http.StatusFound)
	})
	mux.HandleFunc("GET /cdn/{file...}", s.download)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *server) api(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("rev") == "gone" {
		http.NotFound(w, r)
		return
	}
	var files []string
	for name, content := range s.content {
		size, sum := int64(len(content)), hexSum(content)
		if s.meta != nil {
			size, sum = s.meta(name, size, sum)
		}
		files = append(files, fmt.Sprintf(`{"rfilename":%q,"size":%d,"lfs":{"sha256":%q,"size":%d,"pointerSize":130}}`, name, size, sum, size))
	}
	fmt.Fprintf(w, `{"id":"org/model-GGUF","sha":%q,"gated":false,"downloads":7,"siblings":[{"rfilename":"README.md","size":3},%s]}`, testCommit, strings.Join(files, ","))
}

func (s *server) download(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.PathValue("file")+" "+r.Header.Get("Range"))
	serve := s.serve
	s.mu.Unlock()
	content := s.content[r.PathValue("file")]
	if serve == nil {
		serve = correct
	}
	serve(w, r, content)
}

func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.requests...)
}

func (s *server) behave(serve func(http.ResponseWriter, *http.Request, []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serve = serve
}

// correct answers with the rest that was asked for.
func correct(w http.ResponseWriter, r *http.Request, content []byte) {
	from := 0
	if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		from, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
		if from >= len(content) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
		w.WriteHeader(http.StatusPartialContent)
	}
	_, _ = w.Write(content[from:])
}

// cutAt sends correctly, but breaks off once this many bytes of the file are
// out.
func cutAt(n int) func(http.ResponseWriter, *http.Request, []byte) {
	return func(w http.ResponseWriter, r *http.Request, content []byte) {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content[:n])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (s *server) hub(t *testing.T) *Hub {
	t.Helper()
	h, err := New(Config{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	h.limits.backoff = func(int) time.Duration { return time.Millisecond }
	return h
}

func folder(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// source is the first file as the hub describes it.
func (s *server) source(t *testing.T, h *Hub, file string) Source {
	t.Helper()
	r, err := h.Repo(t.Context(), "org/model-GGUF", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Files {
		if f.Path == file {
			return Source{Repo: r.ID, Revision: r.Revision, File: f}
		}
	}
	t.Fatalf("the hub does not list %s: %+v", file, r.Files)
	return Source{}
}

// listed are the files of a folder, those in its sub-folders with their path.
func listed(t *testing.T, root *os.Root) []string {
	t.Helper()
	names := []string{}
	var walk func(dir string)
	walk = func(dir string) {
		f, err := root.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		entries, err := f.ReadDir(-1)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			switch {
			case e.Name() == sources:
			case e.IsDir():
				walk(e.Name())
			case dir == ".":
				names = append(names, e.Name())
			default:
				names = append(names, dir+"/"+e.Name())
			}
		}
	}
	walk(".")
	return names
}
