package hub

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/fault"
)

// content is a file of some megabytes, so that it takes several reads.
func content() []byte {
	b := make([]byte, 3<<20+17)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

func reason(err error) fault.Reason {
	if f, ok := fault.Of(err); ok {
		return f.Reason
	}
	return ""
}

func ignore(int64) {}

func TestFetch(t *testing.T) {
	t.Parallel()
	want := content()
	s := newServer(t, map[string][]byte{"q4/m.gguf": want})
	h, root := s.hub(t), folder(t)
	var last int64
	src := s.source(t, h, "q4/m.gguf")
	if err := h.Fetch(t.Context(), src, root, func(n int64) { last = n }); err != nil {
		t.Fatal(err)
	}
	got, err := root.ReadFile("m.gguf")
	if err != nil || !bytes.Equal(got, want) || last != int64(len(want)) {
		t.Errorf("%d bytes, %v, progress %d", len(got), err, last)
	}
	if diff := cmp.Diff([]string{"m.gguf"}, listed(t, root)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
	if o, ok := OriginOf(root, "m.gguf"); !ok || o.Revision != testCommit || o.File != "q4/m.gguf" {
		t.Errorf("origin: %+v %t", o, ok)
	}
	if err := h.Fetch(t.Context(), src, root, ignore); err != nil || len(s.asked()) != 1 {
		t.Errorf("a file that is there is not fetched again: %v %q", err, s.asked())
	}
}

// A download that breaks off is not there, and the next attempt goes on.
func TestFetch_INF_03_cut(t *testing.T) {
	t.Parallel()
	want := content()
	s := newServer(t, map[string][]byte{"m.gguf": want})
	h, root := s.hub(t), folder(t)
	src := s.source(t, h, "m.gguf")
	s.behave(func(w http.ResponseWriter, r *http.Request, c []byte) {
		if r.Header.Get("Range") == "" {
			cutAt(len(c)*60/100)(w, r, c)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	if err := h.Fetch(t.Context(), src, root, ignore); reason(err) != fault.Unavailable {
		t.Fatalf("got %v", err)
	}
	if files := listed(t, root); len(files) != 1 || !strings.HasPrefix(files[0], partials+"/") {
		t.Errorf("after the break: %q", files)
	}
	s.behave(nil)
	if err := h.Fetch(t.Context(), src, root, ignore); err != nil {
		t.Fatal(err)
	}
	asked := s.asked()
	if resumed := asked[len(asked)-1]; !strings.HasPrefix(resumed, "m.gguf bytes=1") {
		t.Errorf("it did not go on: %q", asked)
	}
	if got, _ := root.ReadFile("m.gguf"); !bytes.Equal(got, want) {
		t.Error("the joined file differs")
	}
}

func TestFetch_goes_on_by_itself(t *testing.T) {
	t.Parallel()
	want := content()
	s := newServer(t, map[string][]byte{"m.gguf": want})
	h, root := s.hub(t), folder(t)
	s.behave(func(w http.ResponseWriter, r *http.Request, c []byte) {
		if len(s.asked()) == 1 {
			cutAt(len(c)/2)(w, r, c)
		}
		correct(w, r, c)
	})
	if err := h.Fetch(t.Context(), s.source(t, h, "m.gguf"), root, ignore); err != nil {
		t.Fatal(err)
	}
	if got, _ := root.ReadFile("m.gguf"); !bytes.Equal(got, want) {
		t.Error("the joined file differs")
	}
}

// left puts a part of an earlier attempt into the folder.
func left(t *testing.T, root *os.Root, src Source, part []byte) {
	t.Helper()
	if err := errors.Join(root.Mkdir(partials, 0o755), root.WriteFile(partials+"/"+src.SHA256, part, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestFetch_resumes(t *testing.T) {
	t.Parallel()
	want := content()
	half := want[:len(want)/2]
	whole := func(w http.ResponseWriter, _ *http.Request, c []byte) { _, _ = w.Write(c) }
	for _, c := range []struct {
		name  string
		left  []byte
		serve func(http.ResponseWriter, *http.Request, []byte)
		want  fault.Reason
	}{
		{"from_the_middle", half, nil, ""},
		{"INF-04_server_sends_the_whole", half, whole, ""},
		{"part_is_already_whole", want, nil, ""},
		{"part_is_longer_than_the_file", append(slices.Clone(want), 1), nil, ""},
		{"range_refused_once", half, func(w http.ResponseWriter, r *http.Request, c []byte) {
			if r.Header.Get("Range") != "" {
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				return
			}
			correct(w, r, c)
		}, ""},
		{"another_range_than_asked", half, func(w http.ResponseWriter, r *http.Request, c []byte) {
			if r.Header.Get("Range") != "" {
				w.Header().Set("Content-Range", "bytes 0-9/10")
				w.WriteHeader(http.StatusPartialContent)
				return
			}
			correct(w, r, c)
		}, ""},
		{"part_of_another_revision", bytes.Repeat([]byte("x"), 1000), nil, ChecksumMismatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, map[string][]byte{"m.gguf": want})
			s.serve = c.serve
			h, root := s.hub(t), folder(t)
			src := s.source(t, h, "m.gguf")
			left(t, root, src, c.left)
			err := h.Fetch(t.Context(), src, root, ignore)
			if reason(err) != c.want || err != nil && c.want == "" {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if got, _ := root.ReadFile("m.gguf"); c.want == "" && !bytes.Equal(got, want) {
				t.Error("the file differs")
			}
			if c.want != "" && len(listed(t, root)) != 0 {
				t.Errorf("left behind: %q", listed(t, root))
			}
		})
	}
}

func TestFetch_refuses(t *testing.T) {
	t.Parallel()
	want := content()
	status := func(code int) func(http.ResponseWriter, *http.Request, []byte) {
		return func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(code) }
	}
	for _, c := range []struct {
		name   string
		source func(Source) Source
		serve  func(http.ResponseWriter, *http.Request, []byte)
		want   fault.Reason
	}{
		{"wrong_bytes", nil, func(w http.ResponseWriter, _ *http.Request, c []byte) { _, _ = w.Write(bytes.ToUpper(c)) }, ChecksumMismatch},
		{"more_than_stated", nil, func(w http.ResponseWriter, _ *http.Request, c []byte) { _, _ = w.Write(append(slices.Clone(c), 1)) }, ChecksumMismatch},
		{"always_less_than_stated", nil, func(w http.ResponseWriter, _ *http.Request, c []byte) { _, _ = w.Write(c[:10]) }, fault.Unavailable},
		{"gated", nil, status(403), Gated},
		{"gone", nil, status(404), fault.NotFound},
		{"limited", nil, status(429), fault.RateLimited},
		{"broken", nil, status(500), fault.Unavailable},
		{"INF-02_digest_is_a_path", func(s Source) Source { s.SHA256 = "../../x"; return s }, nil, fault.Unavailable},
		{"INF-02_digest_is_short", func(s Source) Source { s.SHA256 = s.SHA256[:63]; return s }, nil, fault.Unavailable},
		{"INF-01_name_is_a_path", func(s Source) Source { s.Path = "../m.gguf"; return s }, nil, fault.Unavailable},
		{"revision_is_no_commit", func(s Source) Source { s.Revision = "main"; return s }, nil, fault.Unavailable},
		{"no_size", func(s Source) Source { s.Size = 0; return s }, nil, fault.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, map[string][]byte{"m.gguf": want})
			s.serve = c.serve
			h, root := s.hub(t), folder(t)
			src := s.source(t, h, "m.gguf")
			if c.source != nil {
				src = c.source(src)
			}
			err := h.Fetch(t.Context(), src, root, ignore)
			if reason(err) != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if _, err := root.Stat("m.gguf"); err == nil {
				t.Error("it is there all the same")
			}
			if strings.Contains(err.Error(), s.URL) || strings.Contains(err.Error(), root.Name()) {
				t.Errorf("the error shows an address or a path: %v", err)
			}
		})
	}
}

func TestFetch_INF_05_disk(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string][]byte{"m.gguf": content()})
	h, root := s.hub(t), folder(t)
	h.limits.free = func(string) (int64, error) { return 1 << 20, nil }
	err := h.Fetch(t.Context(), s.source(t, h, "m.gguf"), root, ignore)
	if reason(err) != InsufficientStorage || len(s.asked()) != 0 {
		t.Errorf("got %v after %q", err, s.asked())
	}
}

// The disk fills in the middle: the download ends and frees what it took.
func TestFetch_INF_05_disk_fills(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string][]byte{"m.gguf": content()})
	h := s.hub(t)
	dir, ok := smallDisk(t)
	if !ok {
		t.Skip("this system does not let the test make a small disk (needs root and tmpfs)")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	h.limits.free = func(string) (int64, error) { return 1 << 40, nil }
	if err := h.Fetch(t.Context(), s.source(t, h, "m.gguf"), root, ignore); reason(err) != InsufficientStorage {
		t.Fatalf("got %v", err)
	}
	if files := listed(t, root); len(files) != 0 {
		t.Errorf("left behind: %q", files)
	}
}

func TestFetch_another_file_of_that_name(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string][]byte{"m.gguf": content()})
	h, root := s.hub(t), folder(t)
	if err := root.WriteFile("m.gguf", []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := h.Fetch(t.Context(), s.source(t, h, "m.gguf"), root, ignore); reason(err) != fault.Conflict {
		t.Errorf("INF-15 got %v", err)
	}
	if got, _ := root.ReadFile("m.gguf"); string(got) != "mine" {
		t.Errorf("it was replaced: %q", got)
	}
}

// A link in the folder does not lead a download out of it.
func TestFetch_link_out_of_the_folder(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string][]byte{"m.gguf": content()})
	h, root := s.hub(t), folder(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root.Name(), partials)); err != nil {
		t.Fatal(err)
	}
	if err := h.Fetch(t.Context(), s.source(t, h, "m.gguf"), root, ignore); err == nil {
		t.Error("it wrote through the link")
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 0 {
		t.Errorf("outside: %v", entries)
	}
}

func TestFetch_one_at_a_time(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string][]byte{"m.gguf": content()})
	h, root := s.hub(t), folder(t)
	src := s.source(t, h, "m.gguf")
	begun, goOn := make(chan struct{}), make(chan struct{})
	s.behave(func(w http.ResponseWriter, r *http.Request, c []byte) {
		close(begun)
		<-goOn
		correct(w, r, c)
	})
	first := make(chan error, 1)
	go func() { first <- h.Fetch(context.Background(), src, root, ignore) }()
	<-begun
	if err := h.Fetch(t.Context(), src, root, ignore); reason(err) != fault.InProgress {
		t.Errorf("the second: %v", err)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
}

func TestFetch_stalls(t *testing.T) {
	t.Parallel()
	want := content()
	s := newServer(t, map[string][]byte{"m.gguf": want})
	h, root := s.hub(t), folder(t)
	h.limits.stall = 100 * time.Millisecond
	s.behave(func(w http.ResponseWriter, r *http.Request, c []byte) {
		if len(s.asked()) == 1 {
			_, _ = w.Write(c[:1000])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		correct(w, r, c)
	})
	if err := h.Fetch(t.Context(), s.source(t, h, "m.gguf"), root, ignore); err != nil {
		t.Fatal(err)
	}
	if got, _ := root.ReadFile("m.gguf"); !bytes.Equal(got, want) {
		t.Error("the file differs")
	}
}

func TestFetch_cancelled_keeps_what_it_has(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string][]byte{"m.gguf": content()})
	h, root := s.hub(t), folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.behave(func(w http.ResponseWriter, r *http.Request, c []byte) {
		_, _ = w.Write(c[:1<<20])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	err := h.Fetch(ctx, s.source(t, h, "m.gguf"), root, func(n int64) {
		if n > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if files := listed(t, root); len(files) != 1 {
		t.Errorf("folder: %q", files)
	}
}

// The key stays with the hub, and a redirect does not lead into the network
// that this host is in.
func TestFetch_redirects(t *testing.T) {
	t.Parallel()
	var elsewhere []string
	other := newServer(t, map[string][]byte{"m.gguf": content()})
	other.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere = append(elsewhere, r.Header.Get("Authorization"))
	})
	s := newServer(t, map[string][]byte{"m.gguf": content()})
	var keys []string
	s.behave(func(w http.ResponseWriter, r *http.Request, _ []byte) {
		keys = append(keys, r.Header.Get("Authorization"))
		http.Redirect(w, r, other.URL+"/secret", http.StatusFound)
	})
	h, err := New(Config{URL: s.URL, Token: "hf_secret"})
	if err != nil {
		t.Fatal(err)
	}
	h.limits.backoff = func(int) time.Duration { return 0 }
	err = h.Fetch(t.Context(), s.source(t, h, "m.gguf"), folder(t), ignore)
	if reason(err) != fault.Unavailable || len(elsewhere) != 0 {
		t.Errorf("got %v; the other address was asked %d times", err, len(elsewhere))
	}
	if len(keys) == 0 || keys[0] != "Bearer hf_secret" {
		t.Errorf("keys at the hub itself: %q", keys)
	}
}
