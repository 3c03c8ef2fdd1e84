package caller

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// AssertionLife is how long an assertion is good for after it was signed. It
// covers the way to the category and a clock that is a little off, no more.
const AssertionLife = 30 * time.Second

// clockSkew is how far the clocks of router and category may differ.
const clockSkew = 5 * time.Second

// ErrAssertion is the only thing a refused assertion tells: which check
// failed is in the wrapped text, for the log.
var ErrAssertion = errors.New("assertion refused")

// claims is the signed statement: a JWT (RFC 7519) with EdDSA (RFC 8037).
type claims struct {
	Credential string   `json:"cred"`
	Scopes     []string `json:"scp,omitempty"`
	Tool       string   `json:"tool"`
	Arguments  string   `json:"args"` // SHA-256 of the normalised arguments, hex
	RequestID  string   `json:"rid"`
	jwt.RegisteredClaims
}

// Signer makes assertions. Only the router holds one.
type Signer struct {
	key ed25519.PrivateKey
	now func() time.Time
}

// NewSigner is a signer over an Ed25519 private key.
func NewSigner(key ed25519.PrivateKey, now func() time.Time) Signer {
	return Signer{key: key, now: now}
}

// Sign states who calls which tool with which arguments, for one category.
func (s Signer) Sign(who Caller, category, tool string, arguments []byte) (string, error) {
	now := s.now()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{
		Credential: who.Credential, Scopes: who.Scopes, Tool: tool,
		Arguments: hashArguments(arguments), RequestID: who.RequestID,
		RegisteredClaims: jwt.RegisteredClaims{
			Subject:   who.Agent,
			Audience:  jwt.ClaimStrings{category},
			IssuedAt:  jwt.NewNumericDate(now),
			ExpiresAt: jwt.NewNumericDate(now.Add(AssertionLife)),
		},
	})
	signed, err := token.SignedString(s.key)
	if err != nil {
		return "", fmt.Errorf("sign assertion: %w", err)
	}
	return signed, nil
}

// Verifier checks assertions. The key it holds cannot sign.
type Verifier struct {
	key      ed25519.PublicKey
	category string
	parser   *jwt.Parser
}

// NewVerifier checks assertions made for one category.
func NewVerifier(key ed25519.PublicKey, category string, now func() time.Time) Verifier {
	return Verifier{key: key, category: category, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
		jwt.WithAudience(category), jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithLeeway(clockSkew), jwt.WithTimeFunc(now))}
}

// Verify returns the caller that the assertion states. It refuses, with
// ErrAssertion, one that is missing, forged, expired, or made for another
// category, another tool or other arguments.
func (v Verifier) Verify(assertion, tool string, arguments []byte) (Caller, error) {
	var c claims
	if assertion == "" {
		return Caller{}, fmt.Errorf("%w: none given", ErrAssertion)
	}
	if _, err := v.parser.ParseWithClaims(assertion, &c, func(*jwt.Token) (any, error) { return v.key, nil }); err != nil {
		return Caller{}, fmt.Errorf("%w: %w", ErrAssertion, err)
	}
	switch {
	case c.Tool != tool:
		return Caller{}, fmt.Errorf("%w: made for another tool", ErrAssertion)
	case c.Arguments != hashArguments(arguments):
		return Caller{}, fmt.Errorf("%w: made for other arguments", ErrAssertion)
	case c.Subject == "":
		return Caller{}, fmt.Errorf("%w: names no agent", ErrAssertion)
	}
	return Caller{Agent: c.Subject, Credential: c.Credential, Scopes: c.Scopes, RequestID: c.RequestID}, nil
}

func hashArguments(arguments []byte) string {
	sum := sha256.Sum256(arguments)
	return hex.EncodeToString(sum[:])
}

// ParsePrivateKey reads an Ed25519 private key: the base64 of its 32-byte
// seed (RFC 8032).
func ParsePrivateKey(text string) (ed25519.PrivateKey, error) {
	seed, err := decodeKey(text, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("read assertion key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// ParsePublicKey reads an Ed25519 public key: the base64 of its 32 bytes.
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	key, err := decodeKey(text, ed25519.PublicKeySize)
	if err != nil {
		return nil, fmt.Errorf("read assertion public key: %w", err)
	}
	return key, nil
}

// FormatKey is the text form that the two functions above read.
func FormatKey(key []byte) string { return base64.StdEncoding.EncodeToString(key) }

func decodeKey(text string, size int) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != size {
		return nil, fmt.Errorf("want the base64 of %d bytes", size)
	}
	return key, nil
}
