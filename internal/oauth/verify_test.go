package oauth_test

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"pawgate/internal/oauth"
)

// refusal checks the error of a token that is not accepted.
func refusal(t *testing.T, err error, status int, reason string) {
	t.Helper()
	var e *oauth.Error
	if !errors.As(err, &e) || e.Status != status || e.Reason != reason {
		t.Errorf("error %#v, want %d %s", err, status, reason)
		return
	}
	if code := map[int]string{401: "invalid_token", 403: "insufficient_scope"}[status]; e.Code != code {
		t.Errorf("code %q, want %q", e.Code, code)
	}
	if e.Error() == "" || strings.Contains(e.Error(), "eyJ") {
		t.Errorf("sentence %q", e.Error())
	}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *oauth.Config) {
		c.Scope = "mcp"
		c.Algorithms = []string{"RS256", "PS256", "ES256", "ES384", "EdDSA"}
	}, jwk("k1", "", "rsa"), jwk("k2", "ES256", "p256"), jwk("k3", "EdDSA", "ed"), jwk("k4", "ES384", "p384"), jwk("k5", "Ed25519", "ed"))
	want := oauth.Claims{Subject: "user-1", Issuer: f.URL, ClientID: "claude", Scopes: []string{"mcp", "memory:read"}, ID: "t1", Expiry: f.now().Add(5 * time.Minute)}
	edit := func(change func(*oauth.Claims)) oauth.Claims {
		c := want
		change(&c)
		return c
	}
	rs := func(claims jwt.MapClaims, header ...any) string {
		return token(t, jwt.SigningMethodRS256, pairs()["rsa"], claims, append([]any{"kid", "k1"}, header...)...)
	}
	tests := []struct {
		name, token string
		want        oauth.Claims
	}{
		{"RS256", f.good(t), want},
		{"PS256 with the same key", token(t, jwt.SigningMethodPS256, pairs()["rsa"], f.claims(), "kid", "k1"), want},
		{"ES256", token(t, jwt.SigningMethodES256, pairs()["p256"], f.claims(), "kid", "k2"), want},
		{"ES384", token(t, jwt.SigningMethodES384, pairs()["p384"], f.claims(), "kid", "k4"), want},
		{"EdDSA", token(t, jwt.SigningMethodEdDSA, pairs()["ed"], f.claims(), "kid", "k3"), want},
		{"a key by its newer name", token(t, jwt.SigningMethodEdDSA, pairs()["ed"], f.claims(), "kid", "k5"), want},
		{"no kid and one key of the kind", token(t, jwt.SigningMethodES256, pairs()["p256"], f.claims()), want},
		{"typ JWT", rs(f.claims(), "typ", "JWT"), want},
		{"typ application/at+jwt", rs(f.claims(), "typ", "application/at+jwt"), want},
		{"no typ", rs(f.claims(), "typ", nil), want},
		{"several resources", rs(f.with("aud", []string{"https://other.example", audience})), want},
		{"scope as a list", rs(f.with("scope", []string{"mcp", "memory:read"})), want},
		{"scp, as Entra has it", rs(f.with("scope", nil, "scp", "mcp memory:read")), want},
		{"scp, as Okta has it", rs(f.with("scope", nil, "scp", []string{"memory:read", "mcp", "mcp"})), want},
		{"azp for client_id", rs(f.with("client_id", nil, "azp", "web")), edit(func(c *oauth.Claims) { c.ClientID = "web" })},
		{"no jti, iat, nbf", rs(f.with("jti", nil, "iat", nil, "nbf", nil)), edit(func(c *oauth.Claims) { c.ID = "" })},
		{"expired within the skew", rs(f.with("exp", f.now().Add(-29*time.Second).Unix())), edit(func(c *oauth.Claims) { c.Expiry = f.now().Add(-29 * time.Second) })},
		{"not yet valid within the skew", rs(f.with("nbf", f.now().Add(29*time.Second).Unix(), "iat", f.now().Add(29*time.Second).Unix())), want},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := f.verifier.Verify(t.Context(), tt.token)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if n := f.fetches(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestVerify_refused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *oauth.Config) { c.Scope = "mcp" },
		jwk("k1", "RS256", "rsa"), jwk("k2", "", "p256"), jwk("k3", "", "p384"), jwk("weak", "RS256", "weak"), jwk("ps", "PS256", "rsa"),
		map[string]any{"kty": "oct", "kid": "oct", "k": "c2VjcmV0"}, map[string]any{"kty": "new", "kid": "x"}, "nonsense")
	rsaKey := pairs()["rsa"].(*rsa.PrivateKey)
	der, err := x509.MarshalPKIXPublicKey(rsaKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	rs := func(claims jwt.MapClaims, header ...any) string {
		return token(t, jwt.SigningMethodRS256, rsaKey, claims, append([]any{"kid", "k1"}, header...)...)
	}
	good := strings.Split(f.good(t), ".")
	payload := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	tests := []struct {
		name, token string
		status      int
		reason      string
	}{
		{"AUTH-10 alg none", token(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, f.claims(), "kid", "k1"), 401, oauth.BadAlgorithm},
		{"AUTH-10 alg None", strings.Join([]string{payload(`{"alg":"None","kid":"k1"}`), good[1], ""}, "."), 401, oauth.BadAlgorithm},
		{"AUTH-10 no alg", strings.Join([]string{payload(`{"kid":"k1"}`), good[1], good[2]}, "."), 401, oauth.BadAlgorithm},
		{"AUTH-10 HS256 with the public key as PEM", token(t, jwt.SigningMethodHS256, asPEM, f.claims(), "kid", "k1"), 401, oauth.BadAlgorithm},
		{"AUTH-10 HS256 with the public key as DER", token(t, jwt.SigningMethodHS256, der, f.claims(), "kid", "k1"), 401, oauth.BadAlgorithm},
		{"AUTH-10 HS256 with a symmetric key of the set", token(t, jwt.SigningMethodHS256, []byte("secret"), f.claims(), "kid", "oct"), 401, oauth.BadAlgorithm},
		{"AUTH-10 an algorithm that is not configured", token(t, jwt.SigningMethodRS384, rsaKey, f.claims(), "kid", "k1"), 401, oauth.BadAlgorithm},
		{"AUTH-10 a key of another kind", token(t, jwt.SigningMethodES256, pairs()["p256"], f.claims(), "kid", "k1"), 401, oauth.UnknownKey},
		{"AUTH-10 a key of another curve", token(t, jwt.SigningMethodES256, pairs()["p256"], f.claims(), "kid", "k3"), 401, oauth.UnknownKey},
		{"AUTH-10 a key for another algorithm", token(t, jwt.SigningMethodRS256, rsaKey, f.claims(), "kid", "ps"), 401, oauth.UnknownKey},
		{"AUTH-10 a key that is too short", token(t, jwt.SigningMethodRS256, pairs()["weak"], f.claims(), "kid", "weak"), 401, oauth.UnknownKey},

		{"AUTH-11 another audience", rs(f.with("aud", "https://other.example/mcp")), 401, oauth.WrongAudience},
		{"AUTH-11 no audience", rs(f.with("aud", nil)), 401, oauth.WrongAudience},
		{"AUTH-11 an empty list of audiences", rs(f.with("aud", []string{})), 401, oauth.WrongAudience},
		{"AUTH-11 a prefix of the audience", rs(f.with("aud", "https://tools.example.com/")), 401, oauth.WrongAudience},
		{"AUTH-11 a longer audience", rs(f.with("aud", audience+"/x")), 401, oauth.WrongAudience},
		{"CVE-2026-44428 a token of another stage", rs(f.with("aud", "https://tools.example.com/test/mcp")), 401, oauth.WrongAudience},
		{"CVE-2026-11717 a token for a client, not for us", rs(f.with("aud", "claude")), 401, oauth.WrongAudience},
		{"CVE-2026-11717 an opaque token", "0123456789abcdef0123456789abcdef", 401, oauth.Malformed},
		{"CVE-2026-11717 an answer of introspection", rs(f.with("active", false, "exp", f.now().Add(-time.Hour).Unix())), 401, oauth.TokenExpired},

		{"another issuer", rs(f.with("iss", "https://evil.example")), 401, oauth.WrongIssuer},
		{"the issuer with a slash", rs(f.with("iss", f.URL+"/")), 401, oauth.WrongIssuer},
		{"no issuer", rs(f.with("iss", nil)), 401, oauth.WrongIssuer},
		{"expired", rs(f.with("exp", f.now().Add(-31*time.Second).Unix())), 401, oauth.TokenExpired},
		{"no expiry", rs(f.with("exp", nil)), 401, oauth.TokenExpired},
		{"expiry as text", rs(f.with("exp", "never")), 401, oauth.Malformed},
		{"not yet valid", rs(f.with("nbf", f.now().Add(31*time.Second).Unix())), 401, oauth.NotYetValid},
		{"issued in the future", rs(f.with("iat", f.now().Add(31*time.Second).Unix())), 401, oauth.NotYetValid},
		{"no subject", rs(f.with("sub", nil)), 401, oauth.BadClaims},
		{"NUL in the subject", rs(f.with("sub", "a\x00b")), 401, oauth.BadClaims},
		{"a long subject", rs(f.with("sub", strings.Repeat("x", 256))), 401, oauth.BadClaims},
		{"newline in the id", rs(f.with("jti", "a\nb")), 401, oauth.BadClaims},
		{"bound to a key", rs(f.with("cnf", map[string]any{"jkt": "x"})), 401, oauth.WrongType},
		{"a proof, not a token", rs(f.claims(), "typ", "dpop+jwt"), 401, oauth.WrongType},
		{"a logout token", rs(f.claims(), "typ", "logout+jwt"), 401, oauth.WrongType},
		{"typ of a foreign type", rs(f.claims(), "typ", 5), 401, oauth.WrongType},
		{"critical extension", rs(f.claims(), "crit", []string{"x"}), 401, oauth.WrongType},

		{"an empty kid and one key of the kind", token(t, jwt.SigningMethodES256, pairs()["p256"], f.claims(), "kid", ""), 200, ""},
		{"another key", token(t, jwt.SigningMethodRS256, pairs()["other"], f.claims(), "kid", "k1"), 401, oauth.BadSignature},
		{"changed claims", good[0] + "." + payload(`{"iss":"`+f.URL+`","aud":"`+audience+`","sub":"admin","exp":`+fmt.Sprint(f.now().Add(time.Minute).Unix())+`,"scope":"mcp"}`) + "." + good[2], 401, oauth.BadSignature},
		{"no signature", good[0] + "." + good[1] + ".", 401, oauth.BadSignature},
		{"two parts", good[0] + "." + good[1], 401, oauth.Malformed},
		{"five parts", strings.Repeat("eyJ.", 4) + "eyJ", 401, oauth.Malformed},
		{"nothing", "", 401, oauth.Malformed},
		{"too long", strings.Repeat("x", oauth.MaxToken+1), 401, oauth.Malformed},
		{"padded", good[0] + "=." + good[1] + "." + good[2], 401, oauth.Malformed},
		{"no base scope", rs(f.with("scope", "memory:read")), 403, oauth.MissingScope},
		{"a scope that begins alike", rs(f.with("scope", "mcp:x")), 403, oauth.MissingScope},
		{"no scope at all", rs(f.with("scope", nil)), 403, oauth.MissingScope},
		{"scope of a foreign type", rs(f.with("scope", 5)), 401, oauth.Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.verifier.Verify(t.Context(), tt.token)
			if tt.status == http.StatusOK {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refusal(t, err, tt.status, tt.reason)
		})
	}
}

// TestVerify_headersLeadNowhere: no member of a token's header is followed
// (CVE-2026-58196), and none of the keys in it counts.
func TestVerify_headersLeadNowhere(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil, jwk("k1", "RS256", "rsa"))
	evil := newIssuer(t)
	evil.keys = []any{jwk("k1", "RS256", "other")}
	tok := token(t, jwt.SigningMethodRS256, pairs()["other"], f.claims(), "kid", "k1",
		"jku", evil.URL+jwksPath, "x5u", evil.URL+"/cert", "jwk", jwk("k1", "RS256", "other"))
	_, err := f.verifier.Verify(t.Context(), tok)
	refusal(t, err, 401, oauth.BadSignature)
	if n := evil.total(); n != 0 {
		t.Errorf("%d requests to an address from a token", n)
	}
}

// TestVerify_noFetchForJunk: what cannot be a token for this resource asks the
// issuer for nothing.
func TestVerify_noFetchForJunk(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil, jwk("k1", "RS256", "rsa"))
	for _, tok := range []string{
		"opaque", strings.Repeat("a.", 2) + "b",
		token(t, jwt.SigningMethodHS256, []byte("x"), f.claims(), "kid", "k1"),
		token(t, jwt.SigningMethodRS256, pairs()["rsa"], f.with("aud", "x"), "kid", "k1"),
		token(t, jwt.SigningMethodRS256, pairs()["rsa"], f.with("iss", "x"), "kid", "k1"),
		token(t, jwt.SigningMethodRS256, pairs()["rsa"], f.with("exp", 1), "kid", "k1"),
	} {
		if _, err := f.verifier.Verify(t.Context(), tok); err == nil {
			t.Error("accepted")
		}
	}
	if n := f.total(); n != 0 {
		t.Errorf("%d requests to the issuer", n)
	}
}

// TestVerify_noKid: without a key id a token fits only while there is one key
// of its kind.
func TestVerify_noKid(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil, jwk("k1", "RS256", "rsa"), jwk("k2", "RS256", "other"))
	_, err := f.verifier.Verify(t.Context(), token(t, jwt.SigningMethodRS256, pairs()["rsa"], f.claims()))
	refusal(t, err, 401, oauth.UnknownKey)
}

func TestIsJWT(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"eyJhbGciOiJSUzI1NiJ9.e30.x": true, "paw_prod_abc": false, "eyJ": false, "a.b.c": false, "": false} {
		if got := oauth.IsJWT(text); got != want {
			t.Errorf("IsJWT(%q) = %v", text, got)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	fine := oauth.Config{Issuer: "https://login.example.com/", Audience: audience, Algorithms: []string{"RS256"}}
	tests := []struct {
		name   string
		change func(*oauth.Config)
		want   string // of the error; empty: none
	}{
		{"fine", func(*oauth.Config) {}, ""},
		{"none", func(c *oauth.Config) { *c = oauth.Config{} }, ""},
		{"loopback issuer", func(c *oauth.Config) { c.Issuer = "http://127.0.0.1:8080/realms/x" }, ""},
		{"local audience", func(c *oauth.Config) { c.Audience = "http://localhost:8765/mcp" }, ""},
		{"http issuer", func(c *oauth.Config) { c.Issuer = "http://login.example.com" }, "PAWGATE_OAUTH_ISSUER: must begin with https://"},
		{"issuer without a host", func(c *oauth.Config) { c.Issuer = "login.example.com" }, "PAWGATE_OAUTH_ISSUER: must be a URL"},
		{"issuer with a query", func(c *oauth.Config) { c.Issuer += "?a=b" }, "PAWGATE_OAUTH_ISSUER: must have no user, query or fragment"},
		{"no audience", func(c *oauth.Config) { c.Audience = "" }, "PAWGATE_OAUTH_AUDIENCE must be set"},
		{"audience that is no URL", func(c *oauth.Config) { c.Audience = "pawgate" }, "PAWGATE_OAUTH_AUDIENCE: must be a URL"},
		{"http keys", func(c *oauth.Config) { c.JWKSURL = "http://login.example.com/keys" }, "PAWGATE_OAUTH_JWKS_URL: must begin with https://"},
		{"AUTH-10 none", func(c *oauth.Config) { c.Algorithms = []string{"RS256", "none"} }, `PAWGATE_OAUTH_ALGORITHMS: "none" is not one of`},
		{"AUTH-10 HMAC", func(c *oauth.Config) { c.Algorithms = []string{"HS256"} }, `PAWGATE_OAUTH_ALGORITHMS: "HS256" is not one of`},
		{"no algorithm", func(c *oauth.Config) { c.Algorithms = nil }, "PAWGATE_OAUTH_ALGORITHMS must name one of"},
		{"two scopes", func(c *oauth.Config) { c.Scope = "a b" }, "PAWGATE_OAUTH_SCOPE:"},
		{"bad host", func(c *oauth.Config) { c.AllowHosts = []string{"a/b"} }, "PAWGATE_OAUTH_ALLOW_HOSTS:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := fine
			tt.change(&cfg)
			if err := cfg.Check(); (tt.want == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			_, err := oauth.New(cfg, time.Now)
			if wantErr := tt.want != "" || !cfg.Enabled(); (err != nil) != wantErr {
				t.Errorf("New: %v", err)
			}
			if _, err := oauth.NewResource(cfg); (err != nil) != (tt.want != "") {
				t.Errorf("NewResource: %v", err)
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	f := newFixture(b, nil)
	f.keys = []any{jwk("k1", "EdDSA", "ed")}
	tok := token(b, jwt.SigningMethodEdDSA, pairs()["ed"].(ed25519.PrivateKey), f.claims(), "kid", "k1")
	for b.Loop() {
		if _, err := f.verifier.Verify(b.Context(), tok); err != nil {
			b.Fatal(err)
		}
	}
}
