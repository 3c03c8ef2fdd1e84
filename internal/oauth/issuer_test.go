package oauth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"pawgate/internal/oauth"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// issuer is an authorization server on loopback, as far as a resource server
// sees it.
type issuer struct {
	*httptest.Server
	mu       sync.Mutex
	keys     []any // members of the key set, marshalled as they are
	metadata func(place string) (status int, document map[string]any)
	requests map[string]int
	down     bool
	slow     chan struct{} // when set, key requests wait for it
}

const jwksPath = "/oauth/keys"

func newIssuer(t testing.TB) *issuer {
	i := &issuer{requests: map[string]int{}}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	i.metadata = func(place string) (int, map[string]any) {
		if place == "/.well-known/oauth-authorization-server" {
			return http.StatusOK, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + jwksPath}
		}
		return http.StatusNotFound, nil
	}
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.requests[r.URL.Path]++
	down, slow := i.down, i.slow
	status, document := http.StatusOK, any(map[string]any{"keys": i.keys})
	if r.URL.Path != jwksPath {
		status, document = i.metadata(r.URL.Path)
	}
	i.mu.Unlock()
	if slow != nil && r.URL.Path == jwksPath {
		<-slow
	}
	if down {
		status, document = http.StatusBadGateway, "down"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}

func (i *issuer) set(change func(*issuer)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(i)
}

// fetches is how often the keys were asked for.
func (i *issuer) fetches() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests[jwksPath]
}

func (i *issuer) total() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := 0
	for _, count := range i.requests {
		n += count
	}
	return n
}

// The keys of all tests, made once: RSA keys take a while.
var pairs = sync.OnceValue(func() map[string]crypto.Signer {
	must := func(k crypto.Signer, err error) crypto.Signer {
		if err != nil {
			panic(err)
		}
		return k
	}
	weak := must(rsa.GenerateKey(rand.Reader, 1024))
	return map[string]crypto.Signer{
		"rsa":   must(rsa.GenerateKey(rand.Reader, 2048)),
		"weak":  weak,
		"p256":  must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)),
		"p384":  must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"ed":    ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)),
		"other": must(rsa.GenerateKey(rand.Reader, 2048)),
	}
})

func jwk(kid, alg, pair string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: pairs()[pair].Public(), KeyID: kid, Algorithm: alg, Use: "sig"}
}

const audience = "https://tools.example.com/prod/mcp"

// fixture is a verifier with its issuer.
type fixture struct {
	*issuer
	*clock
	verifier *oauth.Verifier
}

func newFixture(t testing.TB, change func(*oauth.Config), keys ...any) fixture {
	t.Helper()
	i := newIssuer(t)
	i.keys = keys
	c := &clock{t: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)}
	cfg := oauth.Config{Issuer: i.URL, Audience: audience, Algorithms: []string{"RS256", "ES256", "EdDSA"}, AllowHosts: []string{strings.TrimPrefix(i.URL, "http://")}}
	if change != nil {
		change(&cfg)
	}
	v, err := oauth.New(cfg, c.now)
	if err != nil {
		t.Fatal(err)
	}
	return fixture{i, c, v}
}

// claims are those of a good token.
func (f fixture) claims() jwt.MapClaims {
	now := f.now()
	return jwt.MapClaims{"iss": f.URL, "aud": audience, "sub": "user-1", "client_id": "claude", "jti": "t1", "scope": "mcp memory:read",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
}

// with is claims with some replaced; nil removes one.
func (f fixture) with(changes ...any) jwt.MapClaims {
	c := f.claims()
	for i := 0; i < len(changes); i += 2 {
		if c[changes[i].(string)] = changes[i+1]; changes[i+1] == nil {
			delete(c, changes[i].(string))
		}
	}
	return c
}

// token signs claims; header members replace the usual ones, nil removes one.
func token(t testing.TB, method jwt.SigningMethod, key any, claims jwt.MapClaims, header ...any) string {
	t.Helper()
	tok := jwt.NewWithClaims(method, claims)
	tok.Header["typ"] = "at+jwt"
	for i := 0; i < len(header); i += 2 {
		if tok.Header[header[i].(string)] = header[i+1]; header[i+1] == nil {
			delete(tok.Header, header[i].(string))
		}
	}
	text, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// good is a token that everything is right with.
func (f fixture) good(t *testing.T) string {
	return token(t, jwt.SigningMethodRS256, pairs()["rsa"], f.claims(), "kid", "k1")
}
