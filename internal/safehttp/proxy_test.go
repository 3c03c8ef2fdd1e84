package safehttp_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"pawgate/internal/safehttp"
)

// proxied counts the requests that reached the proxy of the environment.
var proxied atomic.Int32

// TestMain runs every test of the package behind proxy variables (SSRF-12). It
// sets them first because net/http reads them once per process.
func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied.Add(1)
		_, _ = w.Write([]byte("from the proxy"))
	}))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		_ = os.Setenv(name, proxy.URL)
		_ = os.Setenv(strings.ToLower(name), proxy.URL)
	}
	_ = os.Unsetenv("NO_PROXY")
	_ = os.Unsetenv("no_proxy")
	code := m.Run()
	proxy.Close()
	os.Exit(code)
}

func TestProxyIgnored(t *testing.T) {
	// The control: net/http's own client does go to the proxy here. Not
	// parallel, so that no other test's requests are counted.
	response, err := http.Get("http://private.example/")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if proxied.Swap(0) != 1 {
		t.Fatal("the proxy variables do not work here, so the test shows nothing")
	}
	w := newWorld(t)
	w.name("private.example", "10.0.0.1")
	w.name("public.example", addrA)
	w.serve(addrA+":80", text("direct"))
	c := w.client(safehttp.Policy{})
	t.Run("SSRF-12 private name", func(t *testing.T) {
		for _, url := range []string{"http://private.example/", "https://private.example/"} {
			_, err := get(t, c, url)
			wantReason(t, err, safehttp.BlockedAddress)
		}
	})
	t.Run("SSRF-12 public name goes direct", func(t *testing.T) {
		r, err := get(t, c, "http://public.example/")
		if err != nil || string(r.Body) != "direct" {
			t.Errorf("response = %+v, %v", r, err)
		}
	})
	t.Run("SSRF-12 fixed goes direct", func(t *testing.T) {
		r, err := get(t, w.fixed("http://public.example/"), "http://public.example/")
		if err != nil || string(r.Body) != "direct" {
			t.Errorf("response = %+v, %v", r, err)
		}
	})
	if n := proxied.Load(); n != 0 {
		t.Errorf("%d requests went through the proxy", n)
	}
}
