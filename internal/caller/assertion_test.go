package caller_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
)

var start = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

func keys(t testing.TB) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

func at(now time.Time) func() time.Time { return func() time.Time { return now } }

func TestAssertion(t *testing.T) {
	t.Parallel()
	public, private := keys(t)
	who := caller.Caller{Agent: "alice", Credential: "key-1", Scopes: []string{"memory:read"}, RequestID: "r1"}
	arguments := []byte(`{"query":"<x>"}`)
	signed, err := caller.NewSigner(private, at(start)).Sign(who, "memory", "memory_search", arguments)
	if err != nil {
		t.Fatal(err)
	}
	_, stranger := keys(t)
	forged, _ := caller.NewSigner(stranger, at(start)).Sign(who, "memory", "memory_search", arguments)
	unsigned, _ := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{"sub": "alice", "aud": "memory", "exp": start.Unix() + 10}).SignedString(jwt.UnsafeAllowNoneSignatureType)
	symmetric, _ := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "alice", "aud": "memory", "exp": start.Unix() + 10}).SignedString([]byte(public))
	anonymous, _ := caller.NewSigner(private, at(start)).Sign(caller.Caller{}, "memory", "memory_search", arguments)
	for _, c := range []struct {
		name, assertion, category, tool, arguments string
		now                                        time.Time
		ok                                         bool
	}{
		{"good", signed, "memory", "memory_search", string(arguments), start, true},
		{"a clock a little behind", signed, "memory", "memory_search", string(arguments), start.Add(-4 * time.Second), true},
		{"last moment", signed, "memory", "memory_search", string(arguments), start.Add(caller.AssertionLife), true},
		{"expired", signed, "memory", "memory_search", string(arguments), start.Add(caller.AssertionLife + 6*time.Second), false},
		{"from the future", signed, "memory", "memory_search", string(arguments), start.Add(-time.Minute), false},
		{"another category", signed, "odoo", "memory_search", string(arguments), start, false},
		{"another tool", signed, "memory", "memory_store", string(arguments), start, false},
		{"other arguments", signed, "memory", "memory_search", `{"query":"y"}`, start, false},
		{"none", "", "memory", "memory_search", string(arguments), start, false},
		{"not a token", "x.y.z", "memory", "memory_search", string(arguments), start, false},
		{"forged", forged, "memory", "memory_search", string(arguments), start, false},
		{"AUTH-10 algorithm none", unsigned, "memory", "memory_search", string(arguments), start, false},
		{"AUTH-10 the public key as a shared secret", symmetric, "memory", "memory_search", string(arguments), start, false},
		{"no agent", anonymous, "memory", "memory_search", string(arguments), start, false},
		{"signature cut", signed[:len(signed)-4], "memory", "memory_search", string(arguments), start, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := caller.NewVerifier(public, c.category, at(c.now)).Verify(c.assertion, c.tool, []byte(c.arguments))
			if !c.ok {
				if !errors.Is(err, caller.ErrAssertion) {
					t.Fatalf("got %+v, %v", got, err)
				}
				return
			}
			if diff := cmp.Diff(who, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestAssertionTampered: a changed claim does not pass.
func TestAssertionTampered(t *testing.T) {
	t.Parallel()
	public, private := keys(t)
	signed, _ := caller.NewSigner(private, at(start)).Sign(caller.Caller{Agent: "alice"}, "memory", "memory_search", nil)
	parts := strings.Split(signed, ".")
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	claims["sub"], claims["scp"] = "bob", []string{"operator"}
	payload, _ = json.Marshal(claims)
	parts[1] = base64.RawURLEncoding.EncodeToString(payload)
	if who, err := caller.NewVerifier(public, "memory", at(start)).Verify(strings.Join(parts, "."), "memory_search", nil); err == nil {
		t.Errorf("passed as %+v", who)
	}
}

// FuzzAssertion: nothing but what the signer made passes.
func FuzzAssertion(f *testing.F) {
	public, private := keys(f)
	signed, _ := caller.NewSigner(private, at(start)).Sign(caller.Caller{Agent: "alice"}, "memory", "memory_search", nil)
	f.Add(signed)
	f.Add("e30.e30.e30")
	verifier := caller.NewVerifier(public, "memory", at(start))
	f.Fuzz(func(t *testing.T, token string) {
		who, err := verifier.Verify(token, "memory_search", nil)
		if err == nil && (token != signed && !sameSignature(token, signed) || who.Agent != "alice") {
			t.Fatalf("%q passed as %+v", token, who)
		}
	})
}

// sameSignature allows the unused bits at the end of a base64 text to differ.
func sameSignature(a, b string) bool {
	return a[:strings.LastIndexByte(a, '.')] == b[:strings.LastIndexByte(b, '.')]
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scopes           string
		category, action string
		want             bool
	}{
		{"*", "memory", "write", true}, {"memory:read", "memory", "read", true}, {"memory:read", "memory", "write", false},
		{"memory:*", "memory", "execute", true}, {"*:read", "odoo", "read", true}, {"*:read", "odoo", "write", false},
		{"memory:read", "odoo", "read", false}, {"operator", "memory", "read", false}, {"approve", "memory", "read", false}, {"", "memory", "read", false},
	} {
		who := caller.Caller{Scopes: strings.Fields(c.scopes)}
		if got := who.Allows(c.category, c.action); got != c.want {
			t.Errorf("%q allows %s:%s = %v", c.scopes, c.category, c.action, got)
		}
	}
	if (caller.Caller{Scopes: []string{"*"}}).Operator() {
		t.Error("the scope * makes an operator")
	}
}

func TestParseKeys(t *testing.T) {
	t.Parallel()
	public, private := keys(t)
	if got, err := caller.ParsePublicKey(caller.FormatKey(public)); err != nil || !got.Equal(public) {
		t.Errorf("public key: %v", err)
	}
	if got, err := caller.ParsePrivateKey(caller.FormatKey(private.Seed())); err != nil || !got.Equal(private) {
		t.Errorf("private key: %v", err)
	}
	for _, bad := range []string{"", "x", caller.FormatKey(private)} {
		if _, err := caller.ParsePrivateKey(bad); err == nil || strings.Contains(err.Error(), bad) && bad != "" && bad != "x" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
