package safehttp_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pawgate/internal/safehttp"
)

func deflated(t *testing.T, body string, open func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var b bytes.Buffer
	w := open(&b)
	_, err := io.WriteString(w, body)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asGzip(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
func asZlib(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
func asFlate(w io.Writer) io.WriteCloser {
	f, _ := flate.NewWriter(w, 6) // a valid level
	return f
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	const body = "Grüße, 備份"
	tests := []struct {
		name, encoding string
		wire           []byte
		want           string // empty: an error
	}{
		{"none", "", []byte(body), body},
		{"identity", "identity", []byte(body), body},
		{"gzip", "gzip", deflated(t, body, asGzip), body},
		{"old name, capitals", "X-GZIP", deflated(t, body, asGzip), body},
		{"deflate", "deflate", deflated(t, body, asZlib), body},
		{"bare deflate", "deflate", deflated(t, body, asFlate), body},
		{"not asked for", "br", []byte(body), ""},
		{"twice", "gzip, gzip", deflated(t, body, asGzip), ""},
		{"not gzip at all", "gzip", []byte(body), ""},
		{"gzip cut short", "gzip", deflated(t, body, asGzip)[:20], ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.name("a.example", addrA)
			w.serve(addrA+":80", func(rw http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Accept-Encoding"); got != "gzip, deflate" {
					t.Errorf("Accept-Encoding = %q", got)
				}
				if tt.encoding != "" {
					rw.Header().Set("Content-Encoding", tt.encoding)
				}
				_, _ = rw.Write(tt.wire)
			})
			c := w.client(safehttp.Policy{})
			r, err := get(t, c, "http://a.example/")
			if tt.want == "" {
				wantReason(t, err, safehttp.BadResponse)
				return
			}
			if err != nil || string(r.Body) != tt.want {
				t.Fatalf("response = %+v, %v", r, err)
			}
			if tt.encoding != "" && tt.encoding != "identity" && r.Header.Get("Content-Encoding")+r.Header.Get("Content-Length") != "" {
				t.Errorf("header still describes the wire: %v", r.Header)
			}
			head, err := c.Do(t.Context(), safehttp.Request{Method: "HEAD", URL: "http://a.example/"})
			if err != nil || len(head.Body) != 0 || head.Status != 200 {
				t.Errorf("HEAD = %+v, %v", head, err)
			}
		})
	}
}

// TestBomb is SSRF-16: 10 MB on the wire that would be 10 GB in memory.
func TestBomb(t *testing.T) {
	// Not parallel: it measures allocation.
	member := deflated(t, strings.Repeat("\x00", 16<<20), asGzip)
	for name, limit := range map[string]int64{"usual cap": 0, "small cap": 64 << 10, "huge cap": 1 << 40} {
		w := newWorld(t)
		w.name("a.example", addrA)
		var sent atomic.Int64
		w.serve(addrA+":80", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Encoding", "gzip")
			for range 640 {
				n, err := rw.Write(member)
				sent.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := get(t, w.client(safehttp.Policy{MaxBytes: limit}), "http://a.example/")
		runtime.ReadMemStats(&after)
		wantReason(t, err, safehttp.TooLarge)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
			t.Errorf("%s: %d bytes allocated", name, grown)
		}
		if n := sent.Load(); n > 1<<20 {
			t.Errorf("%s: %d bytes were taken from the wire", name, n)
		}
	}
}

// TestTruncation: a long body is cut and said to be, or refused when half of it
// is no use.
func TestTruncation(t *testing.T) {
	t.Parallel()
	const limit = 1000
	repeat := func(n int) http.HandlerFunc { return text(strings.Repeat("a", n)) }
	tests := []struct {
		name      string
		handler   http.HandlerFunc
		whole     bool
		truncated bool
		refused   bool
	}{
		{"exactly the cap", repeat(limit), false, false, false},
		{"exactly the cap, whole", repeat(limit), true, false, false},
		{"one more", repeat(limit + 1), false, true, false},
		{"one more, whole", repeat(limit + 1), true, false, true},
		{"one more, unannounced, whole", func(rw http.ResponseWriter, r *http.Request) {
			rw.(http.Flusher).Flush()
			repeat(limit+1)(rw, r)
		}, true, false, true},
		{"announced, whole", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", strconv.Itoa(limit+1))
			rw.WriteHeader(200)
		}, true, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.name("a.example", addrA)
			w.serve(addrA+":80", tt.handler)
			r, err := w.client(safehttp.Policy{MaxBytes: limit}).Do(t.Context(), safehttp.Request{URL: "http://a.example/", Whole: tt.whole})
			if tt.refused {
				wantReason(t, err, safehttp.TooLarge)
				return
			}
			if err != nil || r.Truncated != tt.truncated || len(r.Body) != limit {
				t.Errorf("response = %d bytes, truncated %v, %v", len(r.Body), r.Truncated, err)
			}
		})
	}
}

// TestEndless is SSRF-19: a chunked body without end.
func TestEndless(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("a.example", addrA)
	stopped := make(chan int, 1)
	w.serve(addrA+":80", func(rw http.ResponseWriter, _ *http.Request) {
		chunk, n := bytes.Repeat([]byte("x"), 4096), 0
		for {
			m, err := rw.Write(chunk)
			n += m
			if err != nil {
				stopped <- n
				return
			}
		}
	})
	r, err := get(t, w.client(safehttp.Policy{MaxBytes: 100_000}), "http://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Body) != 100_000 || !r.Truncated {
		t.Errorf("%d bytes, truncated %v", len(r.Body), r.Truncated)
	}
	select {
	case n := <-stopped:
		if n > 1<<20 {
			t.Errorf("%d bytes were taken from the wire", n)
		}
	case <-time.After(5 * time.Second):
		t.Error("the connection stayed open")
	}
}

// TestBrokenBody: a body that ends early is an error, not a short page.
func TestBrokenBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("a.example", addrA)
	w.serve(addrA+":80", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "100")
		_, _ = rw.Write([]byte("half"))
	})
	_, err := get(t, w.client(safehttp.Policy{}), "http://a.example/")
	if e := wantReason(t, err, safehttp.BadResponse); !e.Sent {
		t.Errorf("error = %+v", e)
	}
}

// TestNotHTTP: what is not HTTP does not come back as an answer or in the error.
func TestNotHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("a.example", addrA)
	l := w.listen(addrA + ":80")
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "SSH-2.0-banner\r\n")
		_ = conn.Close()
	}()
	_, err := get(t, w.client(safehttp.Policy{}), "http://a.example/")
	if e := wantReason(t, err, safehttp.BadResponse); strings.Contains(e.Error(), "banner") {
		t.Errorf("error = %q", e)
	}
}
