package hub

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"pawgate/internal/fault"
)

func downloads(t *testing.T, s *server) *Downloads {
	t.Helper()
	d := NewDownloads(s.hub(t), folder(t))
	t.Cleanup(d.Close)
	return d
}

func TestDownloads_all_parts(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string][]byte{"q/m-00001-of-00002.gguf": content(), "q/m-00002-of-00002.gguf": []byte("second"), "other.gguf": []byte("x")})
	d := downloads(t, s)
	j, err := d.Start(t.Context(), "org/model-GGUF", "", "q/m-00002-of-00002.gguf")
	if err != nil {
		t.Fatal(err)
	}
	p := j.Wait(t.Context())
	if !p.Finished || p.Err != nil || p.Done != p.Total || p.Total != int64(len(content())+6) {
		t.Errorf("progress: %+v", p)
	}
	if files := listed(t, d.Root()); len(files) != 2 {
		t.Errorf("folder: %q", files)
	}
}

// The download outlives the call that began it, and the next call finds it.
func TestDownloads_go_on(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string][]byte{"m.gguf": content()})
	goOn := make(chan struct{})
	s.behave(func(w http.ResponseWriter, r *http.Request, c []byte) {
		_, _ = w.Write(c[:1<<20])
		w.(http.Flusher).Flush()
		<-goOn
		_, _ = w.Write(c[1<<20:])
	})
	d := downloads(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	j, err := d.Start(ctx, "org/model-GGUF", "main", "m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if p := j.Wait(ctx); p.Finished || p.Done != 1<<20 {
		t.Errorf("in the middle: %+v", p)
	}
	again, err := d.Start(t.Context(), "org/model-GGUF", "main", "m.gguf")
	if err != nil || again != j {
		t.Errorf("the second call: %v", err)
	}
	close(goOn)
	if p := again.Wait(t.Context()); !p.Finished || p.Err != nil {
		t.Errorf("in the end: %+v", p)
	}
	d.Forget(j)
	if d.Find("org/model-GGUF", "main", "m.gguf") != nil {
		t.Error("it is not forgotten")
	}
}

func TestDownloads_cancel_and_close(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string][]byte{"m.gguf": content()})
	s.behave(func(w http.ResponseWriter, r *http.Request, c []byte) {
		_, _ = w.Write(c[:1000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	d := downloads(t, s)
	for _, end := range []func(*Job){(*Job).Cancel, func(*Job) { d.Close() }} {
		j, err := d.Start(t.Context(), "org/model-GGUF", "", "m.gguf")
		if err != nil {
			t.Fatal(err)
		}
		end(j)
		if p := j.Progress(); !p.Finished || !errors.Is(p.Err, context.Canceled) {
			t.Errorf("progress: %+v", p)
		}
		d.Forget(j)
	}
	if _, err := d.Start(t.Context(), "org/model-GGUF", "", "m.gguf"); reason(err) != fault.Unavailable {
		t.Errorf("after close: %v", err)
	}
}

func TestDownloads_refuses(t *testing.T) {
	t.Parallel()
	d := downloads(t, newServer(t, map[string][]byte{"m.gguf": content()}))
	for _, c := range []struct{ repo, revision, file, parameter string }{
		{"../..", "", "m.gguf", "repo"}, {"org/model-GGUF", "", "../m.gguf", "filename"}, {"org/model-GGUF", "", "m.bin", "filename"},
		{"org/model-GGUF", "", "/m.gguf", "filename"}, {"org/model-GGUF", "", `..\m.gguf`, "filename"}, {"org/model-GGUF", "a/b", "m.gguf", "revision"},
	} {
		if _, err := d.Start(t.Context(), c.repo, c.revision, c.file); !isInvalid(err, c.parameter) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := d.Start(t.Context(), "org/model-GGUF", "gone", "m.gguf"); reason(err) != fault.NotFound {
		t.Errorf("a revision that is not there: %v", err)
	}
	if _, err := d.Start(t.Context(), "org/model-GGUF", "", "n.gguf"); reason(err) != fault.NotFound {
		t.Errorf("a file that is not there: %v", err)
	}
}
