package oauth_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"pawgate/internal/oauth"
)

func resource(t *testing.T, audience string) *oauth.Resource {
	t.Helper()
	r, err := oauth.NewResource(oauth.Config{Issuer: "https://login.example.com", Audience: audience, Algorithms: []string{"RS256"},
		Scope: "mcp", Scopes: []string{"memory:read", "memory:write"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestResource_A7: the metadata is at the well-known path of the host and of
// the resource, with and without a stage, and names the resource it is of.
func TestResource_A7(t *testing.T) {
	t.Parallel()
	const root = "/.well-known/oauth-protected-resource"
	tests := []struct {
		audience, url string
		served, not   []string
	}{
		{"https://tools.example.com/mcp", "https://tools.example.com" + root + "/mcp",
			[]string{root, root + "/mcp", root + "/", root + "/mcp/"}, []string{"/mcp", root + "/other", "/prod" + root, root + "x", "/.well-known/oauth-authorization-server", ""}},
		{"https://x.execute-api.eu-central-1.amazonaws.com/prod/mcp", "https://x.execute-api.eu-central-1.amazonaws.com/prod" + root + "/mcp",
			[]string{root, root + "/mcp", root + "/prod/mcp", "/prod" + root, "/prod" + root + "/mcp"}, []string{"/test" + root, root + "/test/mcp"}},
		{"https://tools.example.com", "https://tools.example.com" + root, []string{root, root + "/"}, []string{root + "/mcp", "/"}},
	}
	for _, tt := range tests {
		r := resource(t, tt.audience)
		if got := r.MetadataURL(); got != tt.url {
			t.Errorf("%s: metadata at %s, want %s", tt.audience, got, tt.url)
		}
		for _, path := range tt.served {
			if !r.Serves(path) {
				t.Errorf("%s: %s is not served", tt.audience, path)
			}
		}
		for _, path := range tt.not {
			if r.Serves(path) {
				t.Errorf("%s: %s is served", tt.audience, path)
			}
		}
		got := ask(r, http.MethodGet)
		want := `{"resource":"` + tt.audience + `","authorization_servers":["https://login.example.com"],"scopes_supported":["mcp","memory:read","memory:write"],"bearer_methods_supported":["header"],"resource_name":"pawgate"}`
		if diff := cmp.Diff(want, got.Body.String()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func ask(r *oauth.Resource, method string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	req := httptest.NewRequest(method, "/.well-known/oauth-protected-resource", nil)
	req.Header.Set("Origin", "https://claude.ai")
	r.ServeHTTP(w, req)
	return w
}

func TestResource_ServeHTTP(t *testing.T) {
	t.Parallel()
	r := resource(t, "https://tools.example.com/mcp")
	none, err := oauth.NewResource(oauth.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, method string
		resource     *oauth.Resource
		status       int
		body         bool
	}{
		{"get", http.MethodGet, r, 200, true},
		{"head", http.MethodHead, r, 200, false},
		{"preflight", http.MethodOptions, r, 204, false},
		{"post", http.MethodPost, r, 405, true},
		{"not configured", http.MethodGet, none, 404, true},
		{"not configured, head", http.MethodHead, none, 404, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := ask(tt.resource, tt.method)
			if w.Code != tt.status || (w.Body.Len() > 0) != tt.body {
				t.Errorf("status %d, body %q", w.Code, w.Body)
			}
			if tt.body && (!json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/json") {
				t.Errorf("not JSON: %s", w.Body)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
	if none.Serves("/.well-known/oauth-protected-resource") || none.MetadataURL() != "" {
		t.Error("without an issuer nothing is served")
	}
}

func TestChallenge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *oauth.Config) { c.Scope = "mcp" }, jwk("k1", "RS256", "rsa"))
	refused := func(tok string) *oauth.Error {
		_, err := f.verifier.Verify(t.Context(), tok)
		var e *oauth.Error
		if !errors.As(err, &e) {
			t.Fatalf("error %v", err)
		}
		return e
	}
	r := resource(t, "https://tools.example.com/mcp")
	none, err := oauth.NewResource(oauth.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const end = `scope="mcp", resource_metadata="https://tools.example.com/.well-known/oauth-protected-resource/mcp"`
	tests := []struct {
		name     string
		resource *oauth.Resource
		refused  *oauth.Error
		want     string
	}{
		{"no token", r, nil, `Bearer realm="pawgate", ` + end},
		{"invalid", r, refused("opaque"), `Bearer realm="pawgate", error="invalid_token", error_description="the token is no JWT; opaque tokens are not supported", ` + end},
		{"scope", r, refused(token(t, jwt.SigningMethodRS256, pairs()["rsa"], f.with("scope", "x"), "kid", "k1")), `Bearer realm="pawgate", error="insufficient_scope", error_description="the token lacks the scope mcp", ` + end},
		{"a key of ours", r, &oauth.Error{Status: 401, Code: "invalid_token"}, `Bearer realm="pawgate", error="invalid_token", ` + end},
		{"without an issuer", none, &oauth.Error{Status: 401, Code: "invalid_token"}, `Bearer realm="pawgate", error="invalid_token"`},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.resource.Challenge(tt.refused)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
}
