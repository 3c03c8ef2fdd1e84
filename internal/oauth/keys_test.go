package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"pawgate/internal/oauth"
	"pawgate/internal/safehttp"
)

func (f fixture) accepts(t *testing.T, tok string) {
	t.Helper()
	if _, err := f.verifier.Verify(t.Context(), tok); err != nil {
		t.Errorf("refused: %v", err)
	}
}

func (f fixture) refuses(t *testing.T, tok string, status int, reason string) {
	t.Helper()
	_, err := f.verifier.Verify(t.Context(), tok)
	refusal(t, err, status, reason)
}

// TestKeys_AUTH_12: a thousand different key ids that nobody knows make one
// fetch, and so does the next minute's thousand; a good token passes all the
// while.
func TestKeys_AUTH_12(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil, jwk("k1", "RS256", "rsa"))
	f.accepts(t, f.good(t))
	f.advance(time.Second)
	for minute := range 3 {
		var group sync.WaitGroup
		for i := range 1000 {
			tok := token(t, jwt.SigningMethodEdDSA, pairs()["ed"], f.claims(), "kid", fmt.Sprint("unknown", minute, i))
			group.Go(func() { f.refuses(t, tok, 401, oauth.UnknownKey) })
		}
		group.Wait()
		f.accepts(t, f.good(t))
		if want := 2 + minute; f.fetches() != want {
			t.Errorf("minute %d: %d fetches, want %d", minute, f.fetches(), want)
		}
		f.advance(oauth.RefetchInterval)
	}
}

// TestKeys_coldFlood: the same with the very first requests.
func TestKeys_coldFlood(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil, jwk("k1", "RS256", "rsa"))
	var group sync.WaitGroup
	for i := range 200 {
		tok := token(t, jwt.SigningMethodEdDSA, pairs()["ed"], f.claims(), "kid", fmt.Sprint("unknown", i))
		group.Go(func() { f.refuses(t, tok, 401, oauth.UnknownKey) })
		good := f.good(t)
		group.Go(func() { f.accepts(t, good) })
	}
	group.Wait()
	if n := f.fetches(); n > 2 {
		t.Errorf("%d fetches", n)
	}
}

// TestKeys_rotation: a new key is known at once, an old one is forgotten with
// the next fetch.
func TestKeys_rotation(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil, jwk("k1", "RS256", "rsa"))
	old := f.good(t)
	f.accepts(t, old)
	f.set(func(i *issuer) { i.keys = []any{jwk("k2", "RS256", "other")} })
	f.advance(time.Second)
	f.accepts(t, old)
	f.accepts(t, token(t, jwt.SigningMethodRS256, pairs()["other"], f.claims(), "kid", "k2"))
	f.refuses(t, old, 401, oauth.UnknownKey)
	if n := f.fetches(); n != 2 {
		t.Errorf("%d fetches, want 2", n)
	}
}

// TestKeys_withdrawn: a key that the issuer withdraws counts no longer than
// KeyLife, also when no unknown key id turns up.
func TestKeys_withdrawn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil, jwk("k1", "RS256", "rsa"))
	f.accepts(t, f.good(t))
	f.set(func(i *issuer) { i.keys = []any{jwk("k2", "RS256", "other")} })
	f.advance(oauth.KeyLife - time.Second)
	f.accepts(t, f.good(t))
	f.advance(time.Second)
	f.refuses(t, f.good(t), 401, oauth.UnknownKey)
}

// TestKeys_issuerDown: known keys serve for StaleLife, with one attempt a
// minute; then, and at a cold start, it is 503, with one attempt in five
// seconds.
func TestKeys_issuerDown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil, jwk("k1", "RS256", "rsa"))
	f.accepts(t, f.good(t))
	f.set(func(i *issuer) { i.down = true })
	f.advance(oauth.KeyLife)
	before := f.fetches()
	for range 50 {
		f.accepts(t, f.good(t))
	}
	if n := f.fetches() - before; n != 1 {
		t.Errorf("%d attempts within a minute, want 1", n)
	}
	f.advance(oauth.StaleLife - oauth.KeyLife)
	tries := f.total()
	for range 50 {
		f.refuses(t, f.good(t), http.StatusServiceUnavailable, oauth.KeysNotReached)
	}
	if n := f.total() - tries; n > 3 {
		t.Errorf("%d requests within five seconds, want those of one attempt", n)
	}
	f.set(func(i *issuer) { i.down = false })
	f.refuses(t, f.good(t), http.StatusServiceUnavailable, oauth.KeysNotReached)
	f.advance(oauth.RetryInterval)
	f.accepts(t, f.good(t))
}

// TestKeys_clientLeaves: a request that ends does not end the fetch that others
// wait for.
func TestKeys_clientLeaves(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil, jwk("k1", "RS256", "rsa"))
	slow := make(chan struct{})
	f.set(func(i *issuer) { i.slow = slow })
	ctx, leave := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := f.verifier.Verify(ctx, f.good(t))
		first <- err
	}()
	for f.fetches() == 0 {
		time.Sleep(time.Millisecond)
	}
	second := make(chan error, 1)
	go func() {
		_, err := f.verifier.Verify(t.Context(), f.good(t))
		second <- err
	}()
	leave()
	refusal(t, <-first, http.StatusServiceUnavailable, oauth.KeysNotReached)
	close(slow)
	if err := <-second; err != nil {
		t.Errorf("the other request: %v", err)
	}
	if n := f.fetches(); n != 1 {
		t.Errorf("%d fetches, want 1", n)
	}
}

// TestKeys_discovery: where the metadata may be, and what is believed of it.
func TestKeys_discovery(t *testing.T) {
	t.Parallel()
	ok := func(f fixture, issuer, keys string) (int, map[string]any) {
		return http.StatusOK, map[string]any{"issuer": issuer, "jwks_uri": keys}
	}
	tests := []struct {
		name     string
		path     string // of the issuer
		place    string // where its metadata is
		answer   func(f fixture, issuer string) (int, map[string]any)
		accepted bool
	}{
		{"RFC 8414", "", "/.well-known/oauth-authorization-server", func(f fixture, i string) (int, map[string]any) { return ok(f, i, f.URL+jwksPath) }, true},
		{"RFC 8414 with a path", "/realms/x", "/.well-known/oauth-authorization-server/realms/x", func(f fixture, i string) (int, map[string]any) { return ok(f, i, f.URL+jwksPath) }, true},
		{"OpenID, path inserted", "/realms/x", "/.well-known/openid-configuration/realms/x", func(f fixture, i string) (int, map[string]any) { return ok(f, i, f.URL+jwksPath) }, true},
		{"OpenID, path before", "/realms/x", "/realms/x/.well-known/openid-configuration", func(f fixture, i string) (int, map[string]any) { return ok(f, i, f.URL+jwksPath) }, true},
		{"OpenID, issuer with a slash", "/", "/.well-known/openid-configuration", func(f fixture, i string) (int, map[string]any) { return ok(f, i, f.URL+jwksPath) }, true},
		{"of another issuer", "", "/.well-known/oauth-authorization-server", func(f fixture, i string) (int, map[string]any) { return ok(f, "https://evil.example", f.URL+jwksPath) }, false},
		{"without a slash that the issuer has", "/", "/.well-known/openid-configuration", func(f fixture, i string) (int, map[string]any) { return ok(f, f.URL, f.URL+jwksPath) }, false},
		{"without keys", "", "/.well-known/oauth-authorization-server", func(f fixture, i string) (int, map[string]any) { return ok(f, i, "") }, false},
		{"CVE-2026-58196 keys at the metadata address", "", "/.well-known/oauth-authorization-server", func(f fixture, i string) (int, map[string]any) {
			return ok(f, i, "https://169.254.169.254/latest/meta-data/")
		}, false},
		{"CVE-2026-58196 keys at a private address", "", "/.well-known/oauth-authorization-server", func(f fixture, i string) (int, map[string]any) { return ok(f, i, "https://10.0.0.5/keys") }, false},
		{"CVE-2026-58196 keys in plain text", "", "/.well-known/oauth-authorization-server", func(f fixture, i string) (int, map[string]any) { return ok(f, i, "http://169.254.169.254/latest/") }, false},
		{"keys in a file", "", "/.well-known/oauth-authorization-server", func(f fixture, i string) (int, map[string]any) { return ok(f, i, "file:///etc/passwd") }, false},
		{"nowhere", "", "", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil, jwk("k1", "RS256", "rsa"))
			name := f.URL + tt.path
			f.metadata = func(place string) (int, map[string]any) {
				if place == tt.place {
					return tt.answer(f, name)
				}
				return http.StatusNotFound, nil
			}
			v, err := oauth.New(oauth.Config{Issuer: name, Audience: audience, Algorithms: []string{"RS256"}, AllowHosts: []string{f.Listener.Addr().String()}}, f.now)
			if err != nil {
				t.Fatal(err)
			}
			_, err = v.Verify(t.Context(), token(t, jwt.SigningMethodRS256, pairs()["rsa"], f.with("iss", name), "kid", "k1"))
			if tt.accepted {
				if err != nil {
					t.Errorf("%v: %v", err, errors.Unwrap(err))
				}
				return
			}
			refusal(t, err, http.StatusServiceUnavailable, oauth.KeysNotReached)
			if errors.Unwrap(err) == nil {
				t.Error("no cause for the log")
			}
		})
	}
}

// TestKeys_redirect: neither metadata nor keys are taken from where the issuer
// redirects to (CVE-2026-58196).
func TestKeys_redirect(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	inside := newIssuer(t)
	inside.keys = []any{jwk("k1", "RS256", "rsa")}
	f.Config.Handler = http.RedirectHandler(inside.URL+jwksPath, http.StatusFound)
	f.refuses(t, f.good(t), http.StatusServiceUnavailable, oauth.KeysNotReached)
	if n := inside.total(); n != 0 {
		t.Errorf("%d requests after a redirect", n)
	}
}

// TestKeys_guard: an issuer on a private address is not reached unless the
// operator says so (CVE-2026-58196).
func TestKeys_guard(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(c *oauth.Config) { c.AllowHosts = nil }, jwk("k1", "RS256", "rsa"))
	_, err := f.verifier.Verify(t.Context(), f.good(t))
	refusal(t, err, http.StatusServiceUnavailable, oauth.KeysNotReached)
	var blocked *safehttp.Error
	if !errors.As(err, &blocked) || f.total() != 0 {
		t.Errorf("%d requests, %v", f.total(), errors.Unwrap(err))
	}
}

func TestKeys_set(t *testing.T) {
	t.Parallel()
	many := make([]any, 101)
	for i := range many {
		many[i] = jwk(fmt.Sprint(i), "EdDSA", "ed")
	}
	tests := map[string][]any{
		"empty": {}, "only for encryption": {map[string]any{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "k1", "use": "enc"}},
		"only for signing":  {map[string]any{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "k1", "key_ops": []string{"sign"}}},
		"only private keys": {map[string]any{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A", "kid": "k1"}},
		"only broken keys":  {map[string]any{"kty": "RSA", "n": "!!", "e": "AQAB", "kid": "k1"}},
		"point off the curve": {map[string]any{"kty": "EC", "crv": "P-256", "kid": "k1",
			"x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "AKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"}},
		"too many": many,
	}
	for name, keys := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(c *oauth.Config) { c.JWKSURL = c.Issuer + jwksPath }, keys...)
			f.refuses(t, f.good(t), http.StatusServiceUnavailable, oauth.KeysNotReached)
			if f.total() != 1 {
				t.Errorf("%d requests, want one: the address is configured", f.total())
			}
		})
	}
}
