package router_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"pawgate/internal/licence"
	"pawgate/internal/oauth"
	"pawgate/internal/router"
	"pawgate/internal/tool"
)

const resourceURL = "https://tools.example.com/prod/mcp"

// issuer is an authorization server on loopback with one key.
type issuer struct {
	*httptest.Server
	key ed25519.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: private}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{{
			"kty": "OKP", "crv": "Ed25519", "kid": "1", "alg": "EdDSA", "use": "sig", "x": base64.RawURLEncoding.EncodeToString(public)}}})
	}))
	t.Cleanup(i.Close)
	return i
}

// token is an access token of a subject, with claims changed.
func (i *issuer) token(t *testing.T, subject string, change map[string]any) string {
	t.Helper()
	claims := jwt.MapClaims{"iss": i.URL, "sub": subject, "aud": resourceURL, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(), "scope": "mcp probe:read probe:write"}
	for k, v := range change {
		claims[k] = v
	}
	tok := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	tok.Header["kid"] = "1"
	signed, err := tok.SignedString(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (i *issuer) accept(t *testing.T) func(*router.Config) {
	t.Helper()
	cfg := oauth.Config{Issuer: i.URL, Audience: resourceURL, Algorithms: []string{"EdDSA"}, Scope: "mcp", AllowHosts: []string{strings.TrimPrefix(i.URL, "http://")}}
	return func(c *router.Config) {
		var err error
		if c.Tokens, err = oauth.New(cfg, time.Now); err != nil {
			t.Fatal(err)
		}
		if c.Resource, err = oauth.NewResource(cfg); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAccessTokens: a token of the issuer acts as the agent its subject is
// mapped to, with no more scopes than the map allows.
func TestAccessTokens(t *testing.T) {
	i := newIssuer(t)
	g := newGate(t, i.accept(t))
	g.exec(`insert into oauth_subjects (issuer, subject, agent_id, scopes) values ($1, 'user-1', 'alice', '{*:read}'), ($1, 'user-2', 'alice', '{*}')`, i.URL)
	echo, write := callBody("probe_echo", `{}`), callBody("probe_write", `{"input":"x"}`)
	if got := g.post(echo, as(i.token(t, "user-1", nil))).wantOK(t); got["agent"] != "alice" {
		t.Errorf("acts as %v", got["agent"])
	}
	g.post(write, as(i.token(t, "user-1", nil))).wantError(t, 200, -32602, "unknown tool")
	g.post(write, as(i.token(t, "user-2", nil))).wantOK(t)
	g.post(echo, as(i.token(t, "user-2", map[string]any{"scope": "mcp"}))).wantError(t, 200, -32602, "unknown tool")
	if n := g.count(`select count(*) from audit where credential_id = 'oauth:user-1' and outcome = 'ok'`); n != 1 {
		t.Errorf("%d audit rows name the subject", n)
	}
	for _, c := range []struct {
		name, token string
		status      int
		challenge   string
	}{
		{"AUTH-11 another audience", i.token(t, "user-1", map[string]any{"aud": "https://tools.example.com/staging/mcp"}), 401, "invalid_token"},
		{"CVE-2026-44428 no audience", i.token(t, "user-1", map[string]any{"aud": nil}), 401, "invalid_token"},
		{"expired", i.token(t, "user-1", map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), 401, "invalid_token"},
		{"a subject without an agent", i.token(t, "stranger", nil), 401, "invalid_token"},
		{"without the base scope", i.token(t, "user-1", map[string]any{"scope": "probe:read"}), 403, "insufficient_scope"},
		{"another key", newIssuer(t).token(t, "user-1", map[string]any{"iss": i.URL}), 401, "invalid_token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := g.post(echo, as(c.token))
			if r.Status != c.status || !strings.Contains(r.Header.Get("WWW-Authenticate"), c.challenge) {
				t.Errorf("HTTP %d, %s: %s", r.Status, r.Header.Get("WWW-Authenticate"), r.Body)
			}
			if strings.Contains(r.Body, c.token) || strings.Contains(g.log.String(), c.token) {
				t.Error("the token is repeated")
			}
		})
	}
	t.Run("A8 an agent that is stopped", func(t *testing.T) {
		g.exec(`update agents set state = 'archived' where id = 'alice'`)
		if r := g.post(echo, as(i.token(t, "user-2", nil))); r.Status != 401 {
			t.Errorf("HTTP %d", r.Status)
		}
	})
	t.Run("keys still work", func(t *testing.T) { g.post(echo, as(bobKey)).wantOK(t) })
}

// TestMetadata: A7: clients find the authorization server, at both paths,
// without a key and from a browser.
func TestMetadata(t *testing.T) {
	i := newIssuer(t)
	g := newGate(t, i.accept(t))
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		req := httptest.NewRequest(http.MethodGet, path, nil)
		req.Header.Set("Origin", "https://client.example")
		r := g.do(req)
		if r.Status != 200 || !strings.Contains(r.Body, resourceURL) || !strings.Contains(r.Body, i.URL) || r.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: HTTP %d %s", path, r.Status, r.Body)
		}
	}
	if r := g.post(`{}`, header("Authorization", "")); r.Status != 400 {
		t.Errorf("HTTP %d", r.Status)
	}
	r := g.post(callBody("probe_echo", `{}`), header("Authorization", ""))
	if r.Status != 401 || !strings.Contains(r.Header.Get("WWW-Authenticate"), "resource_metadata=") {
		t.Errorf("HTTP %d %s", r.Status, r.Header.Get("WWW-Authenticate"))
	}
}

// TestEditions: a tool of a larger edition is not listed, and calling it names
// the edition that has it.
func TestEditions(t *testing.T) {
	pro := func(c *router.Config) {
		c.Licence = licence.Licence{Edition: tool.Pro, Expires: time.Now().Add(time.Hour)}
	}
	for _, c := range []struct {
		name  string
		with  []func(*router.Config)
		works bool
	}{{"community", nil, false}, {"pro", []func(*router.Config){pro}, true}} {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, append(c.with, func(cfg *router.Config) { cfg.Catalog.Find("probe_echo").Edition = tool.Pro })...)
			r := g.post(callBody("probe_echo", `{}`))
			listed := strings.Contains(g.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Body, `"probe_echo"`)
			if listed != c.works {
				t.Errorf("listed: %v", listed)
			}
			if c.works {
				r.wantOK(t)
			} else if f := r.wantFault(t, "edition"); !strings.Contains(f["error"].(string), "pro edition") {
				t.Errorf("fault %v", f)
			}
		})
	}
}

// TestOutputRedaction: a known form of secret does not leave the router, in a
// result, a fault or an audit row (H68).
func TestOutputRedaction(t *testing.T) {
	g := newGate(t)
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	r := g.post(callBody("probe_echo", `{"text":"the token is `+secret+` indeed"}`))
	if got := r.wantOK(t)["text"].(string); strings.Contains(got, secret) || !strings.Contains(got, "the token is ") || strings.Contains(r.Body, secret) {
		t.Errorf("answered %q", got)
	}
	if n := g.count(`select count(*) from audit where audit::text like '%' || $1 || '%'`, secret); n != 0 {
		t.Errorf("%d audit rows hold it", n)
	}
}
