package router

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/serve"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

// sidecarBench is a category with a read and a write, its entries as the
// router knows them, and the keys of both sides.
type sidecarBench struct {
	category    tool.Category
	read, write *catalog.Entry
	signer      caller.Signer
	verify      serve.Config
	ran         atomic.Int32 // how often the write ran
}

func newSidecarBench(t *testing.T) *sidecarBench {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &sidecarBench{signer: caller.NewSigner(private, time.Now), verify: serve.Config{PublicKey: caller.FormatKey(public)}}
	type args struct {
		Text string `json:"text,omitempty" doc:"Said back"`
	}
	type result struct {
		Text string `json:"text"`
	}
	say := func(_ context.Context, _ caller.Caller, a args) (result, error) { return result(a), nil }
	b.category = tool.Category{Name: "model", Tools: []tool.Tool{
		tool.Read("model_list", "Say it back.", say),
		tool.Write("model_load", "Say it back, and count.", func(ctx context.Context, who caller.Caller, a args) (result, error) {
			b.ran.Add(1)
			return say(ctx, who, a)
		}),
	}}
	c, err := catalog.Of(b.category)
	if err != nil {
		t.Fatal(err)
	}
	b.read, b.write = c.Find("model_list"), c.Find("model_load")
	return b
}

func (b *sidecarBench) backend(url string, db postgres.DB) Sidecar {
	return Sidecar{URL: url, Client: NewSidecarClient(), Signer: b.signer, DB: db, Now: time.Now}
}

// call runs one call and tells how long it took.
func (b *sidecarBench) call(t *testing.T, s Sidecar, entry *catalog.Entry, deadline time.Duration) (tool.Outcome, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	start := time.Now()
	out := s.Call(ctx, tooltest.Who("a"), entry, []byte(`{"text":"hi"}`))
	return out, time.Since(start)
}

func reported(t *testing.T, db postgres.DB) {
	t.Helper()
	if _, err := db.Exec(t.Context(), `insert into sidecars (id, categories, report, reported_at) values
		('old', '{model}', '{"state":"stopped"}', now() - interval '1 day'),
		('new', '{model,inference}', '{"state":"running"}', now() - interval '90 s'),
		('other', '{inference}', '{"state":"other"}', now())`); err != nil {
		t.Fatal(err)
	}
}

func wantReason(t *testing.T, out tool.Outcome, want fault.Reason) *fault.Fault {
	t.Helper()
	if out.Fault == nil || out.Fault.Reason != want {
		t.Fatalf("got %+v, want a fault %s", out, want)
	}
	return out.Fault
}

func TestSidecar_carries_a_call(t *testing.T) {
	t.Parallel()
	b := newSidecarBench(t)
	host, err := serve.NewHost(b.category, b.verify, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(serve.Handler(map[string]*serve.Host{"model": host}))
	t.Cleanup(srv.Close)
	out, _ := b.call(t, b.backend(srv.URL, nil), b.write, 5*time.Second)
	if string(out.OK) != `{"text":"hi"}` || b.ran.Load() != 1 {
		t.Errorf("got %s, %+v, ran %d times", out.OK, out.Fault, b.ran.Load())
	}
}

// closedAddr is an address that refuses connections.
func closedAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// deaf is a listener whose queue is full, so that a connection is neither
// accepted nor refused: what a host that hangs, or a firewall that drops,
// looks like.
func deaf(t *testing.T) string {
	t.Helper()
	addr := listenWithoutQueue(t)
	for range 8 { // fill the queue
		conn, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			break
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	return addr
}

// silent accepts connections and never says anything, not even a TLS hello.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
	}()
	return l.Addr().String()
}

func TestSidecar_down(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		url  func(*testing.T) string
	}{
		{"refuses_connections", func(t *testing.T) string { return "http://" + closedAddr(t) }},
		{"answers_no_connection", func(t *testing.T) string { return "http://" + deaf(t) }},
		{"answers_no_handshake", func(t *testing.T) string { return "https://" + silent(t) }},
		{"has_no_name", func(*testing.T) string { return "https://sidecar.invalid" }},
		{"has_another_certificate", func(t *testing.T) string {
			srv := httptest.NewUnstartedServer(http.NotFoundHandler())
			srv.Config.ErrorLog = discardLog()
			srv.StartTLS()
			t.Cleanup(srv.Close)
			return srv.URL
		}},
	} {
		for _, kind := range []string{"read", "write"} {
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				b, db := newSidecarBench(t), postgrestest.New(t)
				reported(t, db)
				entry := b.read
				if kind == "write" {
					entry = b.write
				}
				out, took := b.call(t, b.backend(c.url(t), db), entry, 20*time.Second)
				f := wantReason(t, out, fault.SidecarUnreachable)
				if took >= 2*time.Second {
					t.Errorf("the answer took %s, want less than 2 s", took)
				}
				if age, _ := f.Fields["last_report_age_seconds"].(int64); age < 90 || age > 100 || !strings.Contains(f.Message, "it last reported 1m") {
					t.Errorf("age of the last report: %v in %q", f.Fields["last_report_age_seconds"], f.Message)
				}
				encoded, err := f.MarshalJSON()
				if err != nil || !strings.Contains(string(encoded), `"last_report":{"state":"running"}`) {
					t.Errorf("last report: %s (%v)", encoded, err)
				}
			})
		}
	}
}

func TestSidecar_never_reported(t *testing.T) {
	t.Parallel()
	b := newSidecarBench(t)
	out, _ := b.call(t, b.backend("http://"+closedAddr(t), postgrestest.New(t)), b.read, 5*time.Second)
	if f := wantReason(t, out, fault.SidecarUnreachable); !strings.Contains(f.Message, "never reported") {
		t.Errorf("got %q", f.Message)
	}
}

func TestSidecar_down_and_database_too(t *testing.T) {
	t.Parallel()
	b := newSidecarBench(t)
	db := postgrestest.Pool(t, postgres.Config{URL: "postgres://" + closedAddr(t) + "/none"})
	out, took := b.call(t, b.backend("http://"+closedAddr(t), db), b.read, 5*time.Second)
	if f := wantReason(t, out, fault.SidecarUnreachable); strings.Contains(f.Message, "never reported") || took >= 2*time.Second {
		t.Errorf("after %s: %q", took, f.Message)
	}
}

// An accepted call that is never answered ends at its deadline.
func TestSidecar_slow(t *testing.T) {
	t.Parallel()
	b := newSidecarBench(t)
	s := b.backend("http://"+silent(t), nil)
	for kind, entry := range map[string]*catalog.Entry{"it changes nothing": b.read, "it may still have been done": b.write} {
		out, took := b.call(t, s, entry, 300*time.Millisecond)
		if f := wantReason(t, out, fault.DeadlineExceeded); !strings.Contains(f.Message, kind) {
			t.Errorf("%s: %q", entry.Name, f.Message)
		}
		if took < 300*time.Millisecond || took > time.Second {
			t.Errorf("%s: the answer came after %s, the deadline was 300 ms", entry.Name, took)
		}
	}
}

func TestSidecar_cancelled(t *testing.T) {
	t.Parallel()
	b := newSidecarBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	out := b.backend("http://"+silent(t), nil).Call(ctx, tooltest.Who("a"), b.write, []byte(`{}`))
	wantReason(t, out, fault.Cancelled)
}

// The sidecar dies in mid-call: nobody knows whether a write was done, and it
// is never sent again.
func TestSidecar_dies_in_mid_call(t *testing.T) {
	t.Parallel()
	hijack := func(say string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(conn, say)
			_ = conn.Close()
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>gateway</html>", code) }
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		write   fault.Reason
	}{
		{"before_the_answer", hijack(""), fault.OutcomeUnknown},
		{"within_the_answer", hijack("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"ok\":"), fault.OutcomeUnknown},
		{"answer_is_no_outcome", hijack("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), fault.OutcomeUnknown},
		{"internal_error", status(500), fault.OutcomeUnknown},
		{"gateway_lost_it", status(502), fault.OutcomeUnknown},
		{"gateway_gave_up", status(504), fault.OutcomeUnknown},
		{"gateway_has_no_host", status(503), fault.SidecarUnreachable},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, fault.OutcomeUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newSidecarBench(t)
			var requests atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				c.handler(w, r)
			}))
			t.Cleanup(srv.Close)
			s := b.backend(srv.URL, postgrestest.New(t))
			out, _ := b.call(t, s, b.write, 5*time.Second)
			wantReason(t, out, c.write)
			if n := requests.Load(); n != 1 {
				t.Errorf("the write was sent %d times", n)
			}
			out, _ = b.call(t, s, b.read, 5*time.Second)
			if out.Fault == nil || out.Fault.Reason == fault.OutcomeUnknown || out.Fault.RetryAfter == 0 {
				t.Errorf("a read that was lost can be tried again, got %+v", out.Fault)
			}
		})
	}
}

// A connection kept from an earlier call is dead after a restart. A write on
// it is sent once or not at all.
func TestSidecar_restarted_between_calls(t *testing.T) {
	t.Parallel()
	b := newSidecarBench(t)
	var requests atomic.Int32
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"ok":{}}`)
	})
	first := httptest.NewServer(handler)
	s := b.backend(first.URL, postgrestest.New(t))
	if out, _ := b.call(t, s, b.write, 5*time.Second); out.OK == nil {
		t.Fatalf("first call: %+v", out)
	}
	addr := first.Listener.Addr().String()
	first.CloseClientConnections()
	first.Close()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	second := httptest.NewUnstartedServer(handler)
	_ = second.Listener.Close()
	second.Listener = l
	second.Start()
	t.Cleanup(second.Close)
	before := requests.Load()
	out, _ := b.call(t, s, b.write, 5*time.Second)
	sent := requests.Load() - before
	if sent > 1 || out.OK != nil && sent != 1 {
		t.Errorf("sent %d times, outcome %+v", sent, out)
	}
}

func TestCheckSidecarURL(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"https://sidecar.internal": true, "https://10.0.0.7:8181": true, "http://127.0.0.1:8181": true, "http://localhost:8181": true,
		"http://[::1]:8181": true, "http://10.0.0.7:8181": false, "http://sidecar": false, "http://localhost.example.com": false,
		"ftp://127.0.0.1": false, "": false, "sidecar:8181": false,
	} {
		if err := CheckSidecarURL(url); (err == nil) != ok {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestSidecar_takes_TLS_it_trusts(t *testing.T) {
	t.Parallel()
	b := newSidecarBench(t)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":{}}`) }))
	t.Cleanup(srv.Close)
	s := b.backend(srv.URL, nil)
	s.Client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	if out, _ := b.call(t, s, b.write, 5*time.Second); out.OK == nil {
		t.Errorf("got %+v", out.Fault)
	}
}

// listenWithoutQueue listens with a queue of one and never accepts.
func listenWithoutQueue(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*syscall.SockaddrInet4).Port))
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
