package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"pawgate/internal/safehttp"
)

// publicKey is one key of the issuer.
type publicKey struct {
	id, alg string // alg is empty when the issuer does not say
	key     any    // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// keySet keeps the issuer's keys, see the package doc for how long.
type keySet struct {
	cfg    Config
	client *safehttp.Client
	now    func() time.Time

	mu       sync.Mutex
	keys     []publicKey
	fetched  time.Time // when keys came
	tried    time.Time // when they were last asked for, with whatever success
	searched time.Time // when they were last asked for because of a key id
	failure  error     // of the last attempt
	running  *attempt
	jwksURL  string // found by metadata; forgotten when it fails
}

// attempt is one fetch that any number of requests wait for.
type attempt struct{ done chan struct{} }

// find gives the key that a token names. It fetches keys at most once.
func (s *keySet) find(ctx context.Context, kid, alg string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil && s.outdated(kid, alg) {
		s.start(ctx)
		if err := s.wait(ctx); err != nil {
			return nil, err
		}
	} else if s.running != nil && (!s.usable() || match(s.keys, kid, alg) == nil) {
		if err := s.wait(ctx); err != nil {
			return nil, err
		}
	}
	if !s.usable() {
		return nil, &Error{Status: http.StatusServiceUnavailable, Reason: KeysNotReached, cause: s.failure,
			message: "the authorization server's keys cannot be fetched; try again in a few seconds"}
	}
	if key := match(s.keys, kid, alg); key != nil {
		return key, nil
	}
	return nil, invalid(UnknownKey, "the issuer has no such key for the token's algorithm")
}

// usable reports whether the keys that are there count.
func (s *keySet) usable() bool { return len(s.keys) > 0 && s.now().Sub(s.fetched) < StaleLife }

// outdated reports whether keys are to be fetched before this token is judged,
// and notes it when that is for the token's key id.
func (s *keySet) outdated(kid, alg string) bool {
	now := s.now()
	switch {
	case !s.usable():
		return s.failure == nil || now.Sub(s.tried) >= RetryInterval
	case now.Sub(s.fetched) >= KeyLife:
		return s.failure == nil || now.Sub(s.tried) >= RefetchInterval
	case match(s.keys, kid, alg) != nil || now.Sub(s.searched) < RefetchInterval:
		return false
	}
	s.searched = now
	return true
}

// start begins a fetch that does not end with the request that caused it: the
// others wait for it too.
func (s *keySet) start(ctx context.Context) {
	a := &attempt{done: make(chan struct{})}
	s.running, s.tried = a, s.now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*fetchTimeout)
	go func() {
		defer cancel()
		keys, err := s.fetch(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running, s.failure = nil, err; err == nil {
			s.keys, s.fetched = keys, s.now()
		}
		close(a.done)
	}()
}

// wait gives the lock away while a fetch runs.
func (s *keySet) wait(ctx context.Context) error {
	a := s.running
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return &Error{Status: http.StatusServiceUnavailable, Reason: KeysNotReached, cause: ctx.Err(),
			message: "the request ended while the authorization server's keys were fetched"}
	}
}

// fetch asks for the keys. Only the goroutine of an attempt calls it, one at a
// time.
func (s *keySet) fetch(ctx context.Context) ([]publicKey, error) {
	address := s.cfg.JWKSURL
	if address == "" {
		if s.jwksURL == "" {
			found, err := s.discover(ctx)
			if err != nil {
				return nil, fmt.Errorf("read issuer metadata: %w", err)
			}
			s.jwksURL = found
		}
		address = s.jwksURL
	}
	body, _, err := s.get(ctx, address)
	if err == nil {
		var keys []publicKey
		if keys, err = parseKeys(body); err == nil {
			return keys, nil
		}
	}
	s.jwksURL = ""
	return nil, fmt.Errorf("read issuer keys: %w", err)
}

// discover finds the keys' address in the issuer's metadata, at the places
// where RFC 8414 §3 and OpenID Connect Discovery §4 put it. The metadata must
// name the very issuer that was asked (RFC 8414 §3.3).
func (s *keySet) discover(ctx context.Context) (string, error) {
	const server, openID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	origin, path := splitURL(s.cfg.Issuer)
	places := []string{origin + server + path, origin + openID + path, origin + path + openID}
	var failure error
	for _, place := range slices.Compact(places) {
		body, status, err := s.get(ctx, place)
		if status == 0 { // not reached: the others are on the same host
			return "", err
		}
		var metadata struct {
			Issuer  string `json:"issuer"`
			JWKSURI string `json:"jwks_uri"`
		}
		if err == nil {
			err = json.Unmarshal(body, &metadata)
		}
		switch {
		case err != nil:
		case metadata.Issuer != s.cfg.Issuer:
			err = errors.New("it is of another issuer than PAWGATE_OAUTH_ISSUER; they must be equal, also in a slash at the end")
		case checkURL(metadata.JWKSURI, true) != nil || strings.HasPrefix(s.cfg.Issuer, "https:") && !strings.HasPrefix(metadata.JWKSURI, "https:"):
			err = errors.New("its jwks_uri is missing or no https URL")
		default:
			return metadata.JWKSURI, nil
		}
		failure = err
	}
	return "", failure
}

// splitURL is scheme and host, and the path without a slash at its end.
func splitURL(text string) (origin, path string) {
	scheme, rest, _ := strings.Cut(text, "://")
	host, path, found := strings.Cut(rest, "/")
	if path = strings.TrimRight(path, "/"); found && path != "" {
		path = "/" + path
	}
	return scheme + "://" + host, path
}

// get fetches JSON; status is 0 when there was no answer.
func (s *keySet) get(ctx context.Context, address string) (body []byte, status int, err error) {
	response, err := s.client.Do(ctx, safehttp.Request{URL: address, Header: http.Header{"Accept": {"application/json"}}, Whole: true})
	switch {
	case err != nil:
		return nil, 0, err
	case response.Status != http.StatusOK:
		return nil, response.Status, fmt.Errorf("status %d", response.Status)
	}
	return response.Body, response.Status, nil
}

// maxKeys is more than any issuer publishes at a time.
const maxKeys = 100

// parseKeys reads a JWK Set (RFC 7517 §5). Keys that are of no use here are
// skipped, as it asks; a set without any is an error.
func parseKeys(body []byte) ([]publicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("parse key set: %w", err)
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("parse key set: it has more than %d keys", maxKeys)
	}
	var keys []publicKey
	for _, raw := range set.Keys {
		if key, ok := parseKey(raw); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("parse key set: it has no public key for signatures")
	}
	return keys, nil
}

func parseKey(raw json.RawMessage) (publicKey, bool) {
	var use struct {
		Operations []string `json:"key_ops"`
	}
	var parsed jose.JSONWebKey
	if json.Unmarshal(raw, &use) != nil || parsed.UnmarshalJSON(raw) != nil {
		return publicKey{}, false
	}
	if parsed.Use != "" && parsed.Use != "sig" || len(use.Operations) > 0 && !slices.Contains(use.Operations, "verify") {
		return publicKey{}, false
	}
	key := publicKey{id: parsed.KeyID, alg: parsed.Algorithm, key: parsed.Key}
	const weakest = 2048 // bits, RFC 7518 §3.3
	switch k := parsed.Key.(type) {
	case *rsa.PublicKey:
		return key, k.N.BitLen() >= weakest
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return key, true
	}
	return publicKey{}, false // symmetric, private, or of a kind that is not supported
}

// match finds the one key with that id that fits the algorithm. A token may
// leave the id out only while there is no choice.
func match(keys []publicKey, kid, alg string) any {
	var found any
	for _, k := range keys {
		if kid != "" && k.id != kid || !k.fits(alg) {
			continue
		}
		if found != nil && kid == "" {
			return nil
		}
		if found == nil {
			found = k.key
		}
	}
	return found
}

// fits reports whether a key is for an algorithm (RFC 7518 §3, RFC 8037 §3.1):
// by the issuer's word where it gives one, and always by its kind.
func (k publicKey) fits(alg string) bool {
	if k.alg != "" && k.alg != alg && !(k.alg == "Ed25519" && alg == "EdDSA") { // RFC 9864 renames it
		return false
	}
	switch key := k.key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(alg, "RS") || strings.HasPrefix(alg, "PS")
	case *ecdsa.PublicKey:
		return alg == map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[key.Params().Name]
	case ed25519.PublicKey:
		return alg == "EdDSA"
	}
	return false
}
