// Package oauth makes the router an OAuth 2.1 resource server: it checks access
// tokens (JWTs, RFC 9068) of one configured issuer, and tells clients where to
// get one (RFC 9728, RFC 6750 §3).
//
// What it takes for granted and what it does not:
//
//   - The issuer is the one of the configuration. Nothing in a token (jku, x5u,
//     jwk, x5c, iss) leads to a key or an address.
//   - Algorithms are a list of signatures with public keys; "none" and HMAC are
//     not to be configured. A key is used only with the algorithm of its kind.
//   - A token is for this resource only: its aud names this stage's own URL. A
//     token of another stage or service is refused.
//   - Keys come through the guard against server-side request forgery, without
//     redirects, and are kept in memory: KeyLife while the issuer can be
//     reached, at most StaleLife. That is how long a key that the issuer
//     withdraws still counts. A token that is revoked counts until it expires;
//     issuers should give them minutes, and the agent they map to can be
//     stopped at once.
//   - A key id that is not known fetches the keys again, for all such tokens
//     together once in RefetchInterval, so nobody can use this server to flood
//     the issuer; and only a token that is otherwise in order does so.
//   - Opaque tokens and token introspection are not supported: 401. Nor are
//     tokens bound to a key of the client (cnf), whose proof nobody checks here.
//
// The package knows no agents and no database: which agent a subject is, and
// which of its scopes count, is for its caller.
package oauth

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"pawgate/internal/safehttp"
)

// Times.
const (
	// KeyLife is how long fetched keys are used without asking again.
	KeyLife = 10 * time.Minute
	// StaleLife is how long they are used while the issuer cannot be reached.
	StaleLife = time.Hour
	// RefetchInterval is the least time between two fetches for unknown key
	// ids, and between two attempts while there are keys to go on with.
	RefetchInterval = time.Minute
	// RetryInterval is the least time between two attempts while there are no
	// keys at all.
	RetryInterval = 5 * time.Second
	// Skew is how far the clocks of issuer and server may differ.
	Skew = 30 * time.Second

	fetchTimeout = 5 * time.Second
)

// MaxToken is the longest token that is looked at, in bytes. An HTTP API of
// API Gateway takes 10,240 bytes for all headers together.
const MaxToken = 8 << 10

// Config is what the operator sets. Without an issuer there is no OAuth.
type Config struct {
	Issuer     string   `envconfig:"PAWGATE_OAUTH_ISSUER" desc:"authorization server whose access tokens are accepted, as in their iss; empty: none"`
	Audience   string   `envconfig:"PAWGATE_OAUTH_AUDIENCE" desc:"this server's own public URL with /mcp, which must be in a token's aud; another for every stage"`
	JWKSURL    string   `envconfig:"PAWGATE_OAUTH_JWKS_URL" desc:"where the issuer's keys are; empty: found by its metadata"`
	Algorithms []string `envconfig:"PAWGATE_OAUTH_ALGORITHMS" default:"RS256,ES256,EdDSA" desc:"signature algorithms that are accepted"`
	Scope      string   `envconfig:"PAWGATE_OAUTH_SCOPE" desc:"scope that every token needs; empty: none"`
	Scopes     []string `envconfig:"PAWGATE_OAUTH_SCOPES_SUPPORTED" desc:"scopes that clients are told to ask for, besides that one"`
	AllowHosts []string `envconfig:"PAWGATE_OAUTH_ALLOW_HOSTS" desc:"hosts on a private network where the issuer may be, as host or host:port"`
}

// Enabled reports whether access tokens are accepted at all.
func (c Config) Enabled() bool { return c.Issuer != "" }

// supported are the algorithms that can be configured (RFC 7518 §3.1,
// RFC 8037): public keys only.
var supported = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// Check says which setting is wrong.
func (c Config) Check() error {
	if !c.Enabled() {
		return nil
	}
	if err := checkURL(c.Issuer, true); err != nil {
		return fmt.Errorf("PAWGATE_OAUTH_ISSUER: %w", err)
	}
	if c.Audience == "" {
		return fmt.Errorf("PAWGATE_OAUTH_AUDIENCE must be set with PAWGATE_OAUTH_ISSUER: this server's public URL, such as https://tools.example.com/mcp")
	}
	if err := checkURL(c.Audience, false); err != nil {
		return fmt.Errorf("PAWGATE_OAUTH_AUDIENCE: %w", err)
	}
	if c.JWKSURL != "" {
		if err := checkURL(c.JWKSURL, true); err != nil {
			return fmt.Errorf("PAWGATE_OAUTH_JWKS_URL: %w", err)
		}
	}
	if len(c.Algorithms) == 0 {
		return fmt.Errorf("PAWGATE_OAUTH_ALGORITHMS must name one of %s", strings.Join(supported, ", "))
	}
	for _, alg := range c.Algorithms {
		if !slices.Contains(supported, alg) {
			return fmt.Errorf("PAWGATE_OAUTH_ALGORITHMS: %q is not one of %s", alg, strings.Join(supported, ", "))
		}
	}
	for _, scope := range append([]string{c.Scope}, c.Scopes...) {
		if !isScope(scope) {
			return fmt.Errorf("PAWGATE_OAUTH_SCOPE: %q is no scope: one word of printable ASCII without quotes and backslashes", scope)
		}
	}
	if err := c.policy().Validate(); err != nil {
		return fmt.Errorf("PAWGATE_OAUTH_ALLOW_HOSTS: %w", err)
	}
	return nil
}

// policy is how the issuer is asked: small answers, at once, from where they
// are asked for.
func (c Config) policy() safehttp.Policy {
	return safehttp.Policy{AllowHosts: c.AllowHosts, MaxBytes: 512 << 10, Timeout: fetchTimeout, MaxRedirects: -1}
}

// checkURL wants an absolute URL without user, query and fragment. One that
// keys depend on must be https, save on this very machine.
func checkURL(text string, secure bool) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("must be a URL such as https://login.example.com")
	case u.User != nil || u.Fragment != "" || u.RawQuery != "":
		return fmt.Errorf("must have no user, query or fragment")
	case secure && u.Scheme != "https" && !loopback(u.Hostname()):
		return fmt.Errorf("must begin with https://")
	}
	return nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// isScope is RFC 6749 §3.3; the empty one stands for none.
func isScope(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
}
