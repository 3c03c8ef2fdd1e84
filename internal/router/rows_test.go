package router_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"pawgate/internal/postgres"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

// counting counts round trips.
type counting struct {
	postgres.DB
	trips atomic.Int64
}

func (c *counting) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	c.trips.Add(1)
	return c.DB.Exec(ctx, sql, args...)
}

func (c *counting) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	c.trips.Add(1)
	return c.DB.Query(ctx, sql, args...)
}

// TestRoundTrips: two to Postgres for a call or a refusal; a write has a third
// between them, because its decision is on record before it begins.
func TestRoundTrips(t *testing.T) {
	db := &counting{}
	g := newGate(t, func(c *router.Config) { db.DB = c.DB; c.DB = db })
	for _, c := range []struct {
		name, body string
		most       int64
	}{
		{"list", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 1},
		{"read", callBody("probe_echo", `{}`), 2},
		{"refusal", callBody("nope", `{}`), 2},
		{"broken arguments", callBody("probe_write", `{}`), 2},
		{"write", callBody("probe_write", `{"input":"x"}`), 3},
	} {
		before := db.trips.Load()
		g.post(c.body)
		if n := db.trips.Load() - before; n > c.most {
			t.Errorf("%s: %d round trips, want at most %d", c.name, n, c.most)
		}
	}
}

// TestSizeAfterEncoding: LAM-12: what counts is the size on the wire.
func TestSizeAfterEncoding(t *testing.T) {
	g := newGate(t)
	quotes := strings.Repeat(`\"`, tool.MaxResult/2/2+1000) // fits as text, not once it is escaped twice over
	r := g.post(callBody("probe_echo", `{"text":"`+quotes+`"}`), func(r *http.Request) { r.ContentLength = -1 })
	r.wantFault(t, "too_large")
	fits := g.post(callBody("probe_echo", `{"text":"`+strings.Repeat(`\"`, 200_000)+`"}`))
	fits.wantOK(t)
	encoded, err := json.Marshal(fits.Body) // as the event's body carries it
	if err != nil || len(encoded) > 6_291_556 {
		t.Errorf("%d bytes in the event, %v", len(encoded), err)
	}
}

// TestCredentialStaysHere: AUTH-22: a caller's key goes no further than the
// router.
func TestCredentialStaysHere(t *testing.T) {
	signer, _ := newSigner(t)
	var payload string
	g := newGate(t, function(invoke(func(_ context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
		payload = string(in.Payload)
		return &lambda.InvokeOutput{Payload: []byte(`{"ok":{}}`)}, nil
	}), signer))
	g.post(callBody("probe_echo", `{}`)).wantOK(t)
	if payload == "" || strings.Contains(payload, aliceKey) {
		t.Errorf("sent on: %s", payload)
	}
}

// TestNothingIsOpen: CVE-2026-32211, CVE-2026-50027, CVE-2026-42271: without a
// key there is health and nothing else.
func TestNothingIsOpen(t *testing.T) {
	g := newGate(t)
	for _, path := range []string{"/", "/mcp", "/call/probe", "/api/documents", "/test", "/mcp/test", "/debug/pprof/", "/metrics", "/admin", "/v1/metrics", "/..%2f"} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			req := httptest.NewRequest(method, "/", strings.NewReader(callBody("probe_echo", `{}`)))
			req.URL.Path = path
			req.Header.Set("Content-Type", "application/json")
			if r := g.do(req); r.Status < 400 {
				t.Errorf("%s %s: HTTP %d %s", method, path, r.Status, r.Body)
			}
		}
	}
	if g.probe.ran.Load() != 0 {
		t.Error("a tool ran")
	}
}
