package web_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"pawgate/internal/category/web"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/safehttp"
	"pawgate/internal/tool"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// internet is every public host: names resolve to a public number, and every
// connection ends at one loopback server that answers by Host and path.
type internet struct {
	server *httptest.Server
	mu     sync.Mutex
	pages  map[string]http.HandlerFunc
	asked  []*http.Request
}

func newInternet(t *testing.T) *internet {
	t.Helper()
	i := &internet{pages: map[string]http.HandlerFunc{}}
	i.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.asked = append(i.asked, r.Clone(context.WithoutCancel(r.Context())))
		page := i.pages[r.Host+r.URL.Path]
		i.mu.Unlock()
		if page == nil {
			http.NotFound(w, r)
			return
		}
		page(w, r)
	}))
	t.Cleanup(i.server.Close)
	return i
}

// LookupNetIP resolves names below .example to a public address.
func (i *internet) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if host == "rebound.example" {
		return []netip.Addr{netip.MustParseAddr("10.0.0.7")}, nil
	}
	if !strings.HasSuffix(host, ".example") {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

func (i *internet) options() []safehttp.Option {
	return []safehttp.Option{safehttp.WithResolver(i), safehttp.WithDial(func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", i.server.Listener.Addr().String())
	})}
}

// serve puts a page at an address without scheme: "a.example/x".
func (i *internet) serve(address string, h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pages[address] = h
}

// page serves a body with a content type and further headers in pairs.
func (i *internet) page(address, contentType, body string, headers ...string) {
	i.serve(address, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for h := 0; h+1 < len(headers); h += 2 {
			w.Header().Set(headers[h], headers[h+1])
		}
		_, _ = w.Write([]byte(body))
	})
}

// requests lists what was asked: "a.example/x".
func (i *internet) requests() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := []string{}
	for _, r := range i.asked {
		list = append(list, r.Host+r.URL.Path)
	}
	return list
}

func (i *internet) last() *http.Request {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[len(i.asked)-1]
}

// bench is the category over a database with the agents a and b, the internet
// and a clock that stands still until it is moved.
type bench struct {
	*internet
	db  postgres.DB
	cat tool.Category
	now time.Time
}

func setup(t *testing.T, settings ...web.Settings) *bench {
	t.Helper()
	return setupOn(t, postgrestest.New(t), settings...)
}

func setupOn(t *testing.T, db postgres.DB, settings ...web.Settings) *bench {
	t.Helper()
	if _, err := db.Exec(t.Context(), `insert into agents (id) values ('a'), ('b')`); err != nil {
		t.Fatal(err)
	}
	b := &bench{internet: newInternet(t), db: db, now: noon}
	var s web.Settings
	if len(settings) > 0 {
		s = settings[0]
	}
	b.cat = web.New(db, s, func() time.Time { return b.now }, b.options()...)
	return b
}

func (b *bench) count(t *testing.T, sql string, args ...any) int {
	t.Helper()
	var n int
	if err := b.db.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// inside is the text within the fence, which must open and close once.
func inside(t *testing.T, content string) string {
	t.Helper()
	text, begins := strings.CutPrefix(content, "<pawgate-untrusted>\n")
	text, ends := strings.CutSuffix(text, "\n</pawgate-untrusted>")
	if !begins || !ends || strings.Contains(text, "pawgate-untrusted") {
		t.Fatalf("CTS-08: not fenced once: %q", content)
	}
	return text
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
