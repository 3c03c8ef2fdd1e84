package licence

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"pawgate/internal/tool"
)

// ErrLicence is a text that is no genuine licence; the error that wraps it
// says what is wrong without quoting the text.
var ErrLicence = errors.New("licence refused")

const (
	// tokenType keeps a token that the same key signed for another purpose from
	// being taken for a licence (RFC 8725 §3.11).
	tokenType = "pawgate-licence+jwt"
	issuer    = "pawgate-licence"

	maxToken    = 4 << 10
	maxCustomer = 200 // code points
	// clockSkew is how far the clocks of signer and installation may differ. A
	// licence from further in the future means that this clock is wrong, or was
	// turned back to make an expired licence good.
	clockSkew = 24 * time.Hour
)

// claims is the signed statement.
type claims struct {
	Edition tool.Edition `json:"edition"`
	Agents  int          `json:"agents,omitempty"`
	jwt.RegisteredClaims
}

// Sign makes the text of a licence. ID and Issued are filled in when they are
// empty; times are kept to the second. It refuses a licence that Check would
// refuse.
func Sign(l Licence, key ed25519.PrivateKey, now time.Time) (string, error) {
	l.ID = cmp.Or(l.ID, strings.ToLower(rand.Text()[:16]))
	if l.Issued.IsZero() {
		l.Issued = now
	}
	if l.NotBefore.IsZero() {
		l.NotBefore = l.Issued
	}
	if err := l.check(); err != nil {
		return "", fmt.Errorf("sign licence: %w", err)
	}
	if !l.Expires.After(now) {
		return "", fmt.Errorf("sign licence: the expiry %s lies in the past", l.Expires.UTC().Format(time.DateOnly))
	}
	if len(key) != ed25519.PrivateKeySize {
		return "", errors.New("sign licence: there is no private key")
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{Edition: l.Edition, Agents: l.Agents, RegisteredClaims: jwt.RegisteredClaims{
		Issuer: issuer, Subject: l.Customer, ID: l.ID,
		IssuedAt: jwt.NewNumericDate(l.Issued), NotBefore: jwt.NewNumericDate(l.NotBefore), ExpiresAt: jwt.NewNumericDate(l.Expires),
	}})
	token.Header["typ"] = tokenType
	text, err := token.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign licence: %w", err)
	}
	return text, nil
}

// Check reads the text of a licence. An empty text is the community edition. A
// licence that has expired or begins later is read all the same: State says so,
// and EditionAt counts with it. Everything else that is wrong (another key, a
// changed byte, another algorithm, a missing claim, an unknown edition, an issue
// more than a day in the future) is ErrLicence.
func Check(token string, key ed25519.PublicKey, now time.Time) (Licence, error) {
	token = strings.TrimSpace(token)
	switch {
	case token == "":
		return Licence{}, nil
	case len(key) != ed25519.PublicKeySize:
		return Licence{}, fmt.Errorf("%w: there is a licence but no public key to check it with", ErrLicence)
	case len(token) > maxToken:
		return Licence{}, fmt.Errorf("%w: it is longer than %d bytes", ErrLicence, maxToken)
	}
	// Times are judged by State, which knows the grace period.
	parser := jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding())
	var c claims
	parsed, err := parser.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return key, nil })
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return Licence{}, fmt.Errorf("%w: it is cut off or no licence at all; copy it whole, on one line", ErrLicence)
	case err != nil:
		return Licence{}, fmt.Errorf("%w: it was changed, or signed with another key than this installation's", ErrLicence)
	case parsed.Header["typ"] != tokenType || c.Issuer != issuer:
		return Licence{}, fmt.Errorf("%w: it is a token for another purpose", ErrLicence)
	case c.ExpiresAt == nil || c.IssuedAt == nil:
		return Licence{}, fmt.Errorf("%w: it has no dates", ErrLicence)
	}
	l := Licence{ID: c.ID, Customer: c.Subject, Edition: c.Edition, Agents: c.Agents, Issued: c.IssuedAt.Time, NotBefore: c.IssuedAt.Time, Expires: c.ExpiresAt.Time}
	if c.NotBefore != nil {
		l.NotBefore = c.NotBefore.Time
	}
	if err := l.check(); err != nil {
		return Licence{}, fmt.Errorf("%w: %w", ErrLicence, err)
	}
	if l.Issued.After(now.Add(clockSkew)) {
		return Licence{}, fmt.Errorf("%w: it was issued on %s, which is in the future; set this machine's clock", ErrLicence, l.Issued.UTC().Format(time.DateOnly))
	}
	return l, nil
}

// check is what both signing and checking ask of a licence.
func (l Licence) check() error {
	switch {
	case l.Customer == "" || utf8.RuneCountInString(l.Customer) > maxCustomer || strings.ContainsFunc(l.Customer, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("the customer must be one line of 1 to %d characters", maxCustomer)
	case rank(l.Edition) < 0:
		return fmt.Errorf("the edition must be community, pro or enterprise, not %q", l.Edition)
	case l.Agents < 0:
		return fmt.Errorf("the number of agents must be 0 (any) or more, not %d", l.Agents)
	case l.Expires.IsZero():
		return errors.New("the expiry is missing")
	case !l.Expires.After(l.NotBefore):
		return errors.New("the expiry must be after the beginning")
	}
	return nil
}

// NewKey makes a pair of keys in the text forms that the functions below read.
// The private one stays with whoever sells licences; the public one is part of
// the installation's configuration.
func NewKey() (private, public string, err error) {
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", "", fmt.Errorf("make licence key: %w", err)
	}
	return base64.StdEncoding.EncodeToString(key.Seed()), base64.StdEncoding.EncodeToString(pub), nil
}

// ParsePrivateKey reads the base64 of an Ed25519 seed of 32 bytes (RFC 8032).
func ParsePrivateKey(text string) (ed25519.PrivateKey, error) {
	seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("read licence key: want the base64 of %d bytes, the private key", ed25519.SeedSize)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// ParsePublicKey reads the base64 of an Ed25519 public key of 32 bytes. A
// private key has the same form, so the two cannot be told apart.
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("read licence public key: want the base64 of %d bytes", ed25519.PublicKeySize)
	}
	return key, nil
}

// Config is what an installation is told.
type Config struct {
	Token     string `envconfig:"PAWGATE_LICENCE" desc:"the licence; without one this is the community edition"`
	PublicKey string `envconfig:"PAWGATE_LICENCE_KEY" desc:"public key that the licence is checked with (base64, Ed25519)"`
}

// Check reads the configured licence; the errors name the setting.
func (c Config) Check(now time.Time) (Licence, error) {
	if strings.TrimSpace(c.Token) == "" {
		return Licence{}, nil
	}
	if strings.TrimSpace(c.PublicKey) == "" {
		return Licence{}, errors.New("PAWGATE_LICENCE is set but PAWGATE_LICENCE_KEY, the public key that it is checked with, is not")
	}
	key, err := ParsePublicKey(c.PublicKey)
	if err != nil {
		return Licence{}, fmt.Errorf("PAWGATE_LICENCE_KEY: %w", err)
	}
	l, err := Check(c.Token, key, now)
	if err != nil {
		return Licence{}, fmt.Errorf("PAWGATE_LICENCE: %w", err)
	}
	return l, nil
}
