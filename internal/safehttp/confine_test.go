package safehttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/safehttp"
)

// TestRedirectGainsNothing: a public page cannot lead into a host that the
// operator opened for direct use; the opened host may redirect within itself.
func TestRedirectGainsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("a.example", addrA)
	w.name("search.internal", "10.0.0.5")
	w.serve(addrA+":80", redirect(302, "http://search.internal/admin"))
	w.name("inside.example", "10.0.0.6")
	w.serve("10.0.0.5:80", routes(map[string]http.HandlerFunc{
		"/": redirect(302, "/home"), "/out": redirect(302, "http://inside.example/")}))
	c := w.client(safehttp.Policy{AllowHosts: []string{"search.internal"}})
	r, err := get(t, c, "http://search.internal/")
	if err != nil || r.URL.Path != "/home" {
		t.Fatalf("response = %+v, %v", r, err)
	}
	// The connection above is idle now and must not be lent to the next call.
	_, err = get(t, c, "http://a.example/")
	wantReason(t, err, safehttp.BlockedAddress)
	// Nor does the opened host open others.
	_, err = get(t, c, "http://search.internal/out")
	wantReason(t, err, safehttp.BlockedAddress)
	c.CloseIdle()
	if diff := cmp.Diff([]string{"10.0.0.5:80", addrA + ":80"}, w.dialled()); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
}

// TestSchemeChange: up is followed, also with credentials; down is not.
func TestSchemeChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("example.com", addrA)
	var secure record
	tls := httptest.NewUnstartedServer(secure.handler(routes(map[string]http.HandlerFunc{"/down": redirect(302, "http://example.com/plain")})))
	_ = tls.Listener.Close()
	tls.Listener = w.listen(addrA + ":443")
	tls.EnableHTTP2 = true
	tls.StartTLS()
	t.Cleanup(tls.Close)
	w.serve(addrA+":80", redirect(301, "https://example.com/up"))
	roots := tls.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	c := w.client(safehttp.Policy{}, safehttp.WithRootCAs(roots))

	key := http.Header{"X-Api-Key": {"k"}}
	r, err := c.Do(t.Context(), safehttp.Request{URL: "http://example.com/", Header: key})
	if err != nil || r.URL.String() != "https://example.com/up" {
		t.Fatalf("response = %+v, %v", r, err)
	}
	secure.want(t, "GET example.com/up X-Api-Key=k")
	_, err = get(t, c, "https://example.com/down")
	if e := wantReason(t, err, safehttp.BlockedRedirect); !strings.Contains(e.Error(), "from https to http") {
		t.Errorf("error = %q", e)
	}

	// The same server is not believed without its authority, and nothing is sent.
	_, err = get(t, w.client(safehttp.Policy{}), "https://example.com/")
	if e := wantReason(t, err, safehttp.TLSFailed); e.Sent {
		t.Errorf("error = %+v", e)
	}
}

// TestFixed: the client of a configured server speaks to it alone, wherever it is.
func TestFixed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("odoo.internal", "10.0.0.5")
	var r record
	w.serve("10.0.0.5:8069", r.handler(routes(map[string]http.HandlerFunc{"/jsonrpc": redirect(307, "/web/jsonrpc")})))
	c := w.fixed("http://odoo.internal:8069/")
	got, err := c.Do(t.Context(), safehttp.Request{Method: "POST", URL: "http://odoo.internal:8069/jsonrpc",
		Body: []byte("{}"), Header: http.Header{"X-Api-Key": {"k"}}})
	if err != nil || string(got.Body) != "ok" {
		t.Fatalf("response = %+v, %v", got, err)
	}
	r.want(t, "POST odoo.internal:8069/jsonrpc X-Api-Key=k body={}", "POST odoo.internal:8069/web/jsonrpc X-Api-Key=k body={}")
	for _, url := range []string{"http://odoo.internal/", "http://example.com:8069/", "https://odoo.internal:8069/"} {
		_, err := get(t, c, url)
		wantReason(t, err, safehttp.BlockedRedirect)
	}
	w.name("rebound.internal", "169.254.169.254")
	_, err = get(t, w.fixed("http://rebound.internal/"), "http://rebound.internal/")
	wantReason(t, err, safehttp.BlockedAddress)
	if _, err := safehttp.Fixed("ftp://a/", safehttp.Policy{}); err == nil {
		t.Error("Fixed accepted ftp")
	}
	if diff := cmp.Diff([]string{"10.0.0.5:8069"}, w.dialled()); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
}
