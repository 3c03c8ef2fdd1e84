package safehttp_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

// record keeps what a server received.
type record struct {
	mu   sync.Mutex
	seen []string
}

func (r *record) handler(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		line := fmt.Sprintf("%s %s%s", req.Method, req.Host, req.URL.Path)
		for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "Content-Type", "Referer"} {
			if v := req.Header.Get(name); v != "" {
				line += " " + name + "=" + v
			}
		}
		if len(body) > 0 {
			line += " body=" + string(body)
		}
		r.mu.Lock()
		r.seen = append(r.seen, line)
		r.mu.Unlock()
		next(w, req)
	}
}

func (r *record) want(t *testing.T, want ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(want, slices.Clone(r.seen)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// routes answers by path, "ok" for a path that is not listed.
func routes(byPath map[string]http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if h := byPath[r.URL.Path]; h != nil {
			h(w, r)
			return
		}
		text("ok")(w, r)
	}
}

// TestRedirectRefused: the second hop is refused before anything is sent to it.
func TestRedirectRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, location string
		reason         fault.Reason
		says           string
	}{
		{"SSRF-10 metadata", "http://169.254.169.254/latest/", safehttp.BlockedAddress, "redirect blocked: 169.254.169.254"},
		{"CVE-2025-65512 loopback", "http://127.0.0.1/", safehttp.BlockedAddress, "redirect blocked: 127.0.0.1"},
		{"SSRF-10 name of a private host", "http://inside.example/", safehttp.BlockedAddress, "redirect blocked: inside.example"},
		{"SSRF-10 without scheme", "//10.0.0.1/", safehttp.BlockedAddress, "redirect blocked: 10.0.0.1"},
		{"SSRF-05 odd spelling", "http://2130706433/", safehttp.BadURL, "redirect blocked: "},
		{"SSRF-23 circled", "http://①②⑦.⓪.⓪.①/", safehttp.BlockedAddress, "redirect blocked: 127.0.0.1"},
		{"SSRF-11 file", "file:///etc/passwd", safehttp.BlockedScheme, "redirect blocked: only https:// and http://"},
		{"SSRF-11 gopher", "gopher://a.example/", safehttp.BlockedScheme, "redirect blocked: only https:// and http://"},
		{"SSRF-11 ftp", "ftp://a.example/", safehttp.BlockedScheme, "redirect blocked: only https:// and http://"},
		{"SSRF-11 data", "data:text/html,hi", safehttp.BlockedScheme, "redirect blocked: only https:// and http://"},
		{"SSRF-13 userinfo", "http://a:b@b.example/", safehttp.BadURL, "redirect blocked: "},
		{"SSRF-14 backslash", `http:\\127.0.0.1\`, safehttp.BadURL, "redirect blocked: "},
		{"SSRF-14 backslash in a path", `/\127.0.0.1/`, safehttp.BadURL, "redirect blocked: "},
		{"SSRF-26 port", "http://b.example:6379/", safehttp.BlockedPort, "redirect blocked: port 6379"},
		{"unreadable", "http://a.example:x/", safehttp.BadURL, "redirect blocked: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.name("a.example", addrA)
			w.name("b.example", addrB)
			w.name("inside.example", "192.168.1.1")
			w.serve(addrA+":80", redirect(302, tt.location))
			_, err := get(t, w.client(safehttp.Policy{}), "http://a.example/")
			e := wantReason(t, err, tt.reason)
			if !strings.HasPrefix(e.Error(), tt.says) || e.Redirects != 1 || !e.Sent {
				t.Errorf("error = %q after %d redirects, sent %v; want %q after 1", e, e.Redirects, e.Sent, tt.says)
			}
			if diff := cmp.Diff([]string{addrA + ":80"}, w.dialled()); diff != "" {
				t.Errorf("dialled (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRedirectFollowed: ordinary chains arrive, with the method browsers use.
func TestRedirectFollowed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status     int
		method     string
		wantSecond string
	}{
		{301, "GET", "GET a.example/b X-Api-Key=k"},
		{302, "HEAD", "HEAD a.example/b X-Api-Key=k"},
		{303, "HEAD", "HEAD a.example/b X-Api-Key=k"},
		{301, "POST", "GET a.example/b X-Api-Key=k"},
		{302, "POST", "GET a.example/b X-Api-Key=k"},
		{303, "PUT", "GET a.example/b X-Api-Key=k"},
		{301, "PUT", "PUT a.example/b X-Api-Key=k Content-Type=text/plain body=hi"},
		{307, "POST", "POST a.example/b X-Api-Key=k Content-Type=text/plain body=hi"},
		{308, "POST", "POST a.example/b X-Api-Key=k Content-Type=text/plain body=hi"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, tt.method), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.name("a.example", addrA)
			var a record
			w.serve(addrA+":80", a.handler(routes(map[string]http.HandlerFunc{"/a": redirect(tt.status, "/b#f")})))
			r := safehttp.Request{Method: tt.method, URL: "http://a.example/a", Header: http.Header{"X-Api-Key": {"k"}}}
			first := tt.method + " a.example/a X-Api-Key=k"
			if tt.method != "GET" && tt.method != "HEAD" {
				r.Header.Set("Content-Type", "text/plain")
				r.Body = []byte("hi")
				first += " Content-Type=text/plain body=hi"
			}
			got, err := w.client(safehttp.Policy{}).Do(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if got.Redirects != 1 || got.URL.String() != "http://a.example/b#f" {
				t.Errorf("response = %+v", got)
			}
			a.want(t, first, tt.wantSecond)
		})
	}
}

// TestNotARedirect: a 3xx that asks for nothing is an answer.
func TestNotARedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{300, 304, 302} {
		w := newWorld(t)
		w.name("a.example", addrA)
		w.serve(addrA+":80", func(rw http.ResponseWriter, _ *http.Request) {
			if status != 302 {
				rw.Header().Set("Location", "http://127.0.0.1/")
			}
			rw.WriteHeader(status)
		})
		if r, err := get(t, w.client(safehttp.Policy{}), "http://a.example/"); err != nil || r.Status != status {
			t.Errorf("%d: response = %+v, %v", status, r, err)
		}
	}
}

// TestCredentialsStay is SSRF-20: what A was told in confidence never reaches B,
// nor A again by way of B.
func TestCredentialsStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("a.example", addrA)
	w.name("sub.a.example", addrB)
	var a, b record
	w.serve(addrA+":80", a.handler(routes(map[string]http.HandlerFunc{"/1": redirect(302, "http://sub.a.example/2")})))
	w.serve(addrB+":80", b.handler(routes(map[string]http.HandlerFunc{
		"/2": redirect(301, "/3"), "/3": redirect(302, "http://a.example/4")})))
	r, err := w.client(safehttp.Policy{}).Do(t.Context(), safehttp.Request{URL: "http://a.example/1",
		Header: http.Header{"Authorization": {"Bearer t"}, "Cookie": {"c=1"}, "X-Api-Key": {"k"}, "Accept": {"text/html"}}})
	if err != nil || r.URL.Path != "/4" {
		t.Fatalf("response = %+v, %v", r, err)
	}
	a.want(t, "GET a.example/1 Authorization=Bearer t Cookie=c=1 X-Api-Key=k", "GET a.example/4")
	b.want(t, "GET sub.a.example/2", "GET sub.a.example/3")
}

// TestBodiesStay is SSRF-27 for a URL from an argument, and for a client with
// our own credential.
func TestBodiesStay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status  int
		request safehttp.Request
		follows bool // to b.example, with nothing private; a Fixed client never does
	}{
		{302, safehttp.Request{Method: "POST", Body: []byte("secret")}, true},
		{303, safehttp.Request{Method: "PUT", Body: []byte("secret")}, true},
		{302, safehttp.Request{Method: "PUT", Body: []byte("secret")}, false},
		{307, safehttp.Request{Method: "POST", Body: []byte("secret")}, false},
		{308, safehttp.Request{Method: "POST"}, false},
		{307, safehttp.Request{Method: "DELETE"}, false},
		{307, safehttp.Request{}, false}, // the key alone
		{301, safehttp.Request{}, true},
	}
	for _, tt := range tests {
		for _, fixed := range []bool{false, true} {
			t.Run(fmt.Sprintf("SSRF-27 %d %s fixed=%v", tt.status, tt.request.Method, fixed), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.name("a.example", addrA)
				w.name("b.example", addrB)
				var b record
				w.serve(addrA+":80", redirect(tt.status, "http://b.example/"))
				w.serve(addrB+":80", b.handler(text("ok")))
				c := w.client(safehttp.Policy{})
				if fixed {
					c = w.fixed("http://a.example/")
				}
				r := tt.request
				r.URL, r.Header = "http://a.example/send", http.Header{"X-Api-Key": {"k"}}
				_, err := c.Do(t.Context(), r)
				if tt.follows && !fixed {
					if err != nil {
						t.Fatal(err)
					}
					b.want(t, "GET b.example/")
					return
				}
				if e := wantReason(t, err, safehttp.BlockedRedirect); !e.Sent || e.Redirects != 1 {
					t.Errorf("error = %+v", e)
				}
				b.want(t)
			})
		}
	}
}

// TestPlainRequestLeaves: without private headers it is the effect or the body
// alone that keeps a request at home.
func TestPlainRequestLeaves(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status  int
		request safehttp.Request
		follows bool
	}{
		{307, safehttp.Request{}, true},
		{308, safehttp.Request{Method: "HEAD"}, true},
		{302, safehttp.Request{Method: "DELETE"}, false},
		{308, safehttp.Request{Method: "POST"}, false},
		{302, safehttp.Request{Body: []byte("query")}, false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, tt.request.Method), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.name("a.example", addrA)
			w.name("b.example", addrB)
			var b record
			w.serve(addrA+":80", redirect(tt.status, "http://b.example/"))
			w.serve(addrB+":80", b.handler(text("ok")))
			r := tt.request
			r.URL = "http://a.example/"
			_, err := w.client(safehttp.Policy{}).Do(t.Context(), r)
			if !tt.follows {
				wantReason(t, err, safehttp.BlockedRedirect)
			} else if err != nil {
				t.Error(err)
			}
			if followed := len(b.seen) == 1; followed != tt.follows {
				t.Errorf("b.example received %v", b.seen)
			}
		})
	}
}

// TestRedirectEnds is SSRF-25.
func TestRedirectEnds(t *testing.T) {
	t.Parallel()
	chain := func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
		if n == 0 {
			text("end")(w, r)
			return
		}
		redirect(302, fmt.Sprintf("/%d", n-1))(w, r)
	}
	tests := []struct {
		name, url string
		max       int
		reason    fault.Reason // empty: arrives
		requests  int
	}{
		{"SSRF-25 A and B", "http://a.example/loop", 0, safehttp.TooManyRedirects, 2},
		{"SSRF-25 itself", "http://a.example/self", 0, safehttp.TooManyRedirects, 1},
		{"SSRF-25 itself by fragment", "http://a.example/fragment#a", 0, safehttp.TooManyRedirects, 1},
		{"SSRF-25 thirty hops", "http://a.example/30", 0, safehttp.TooManyRedirects, 6},
		{"as many as allowed", "http://a.example/5", 0, "", 6},
		{"one more", "http://a.example/6", 0, safehttp.TooManyRedirects, 6},
		{"operator allows more", "http://a.example/9", 9, "", 10},
		{"operator allows none", "http://a.example/1", -1, safehttp.TooManyRedirects, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.name("a.example", addrA)
			w.name("b.example", addrB)
			var all record
			w.serve(addrA+":80", all.handler(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/loop":
					redirect(302, "http://b.example/")(w, r)
				case "/self":
					redirect(302, "/self")(w, r)
				case "/fragment":
					redirect(302, "/fragment#b")(w, r)
				default:
					chain(w, r)
				}
			}))
			w.serve(addrB+":80", all.handler(redirect(302, "http://a.example/loop")))
			r, err := get(t, w.client(safehttp.Policy{MaxRedirects: tt.max}), tt.url)
			if len(all.seen) != tt.requests {
				t.Errorf("%d requests %v, want %d", len(all.seen), all.seen, tt.requests)
			}
			if tt.reason != "" {
				wantReason(t, err, tt.reason)
			} else if err != nil || string(r.Body) != "end" {
				t.Errorf("response = %+v, %v", r, err)
			}
		})
	}
}
