package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"pawgate/internal/safehttp"
)

// Claims are what a token says, after it was checked.
type Claims struct {
	Subject  string    // who: a user or a service of the issuer
	Issuer   string    // equal to the configuration's
	ClientID string    // the program that got the token; may be empty
	Scopes   []string  // what the issuer granted
	Expiry   time.Time // without the skew
	ID       string    // jti; may be empty
}

// HasScope reports whether the issuer granted a scope.
func (c Claims) HasScope(scope string) bool { return slices.Contains(c.Scopes, scope) }

// Verifier checks access tokens. It is safe for concurrent use.
type Verifier struct {
	scope      string
	algorithms []string
	keys       *keySet
	parser     *jwt.Parser
	validator  *jwt.Validator
}

// New is a verifier. It does no I/O: the keys are fetched with the first token
// that needs one. The options replace parts of the HTTP client, for private
// certificates and tests.
func New(cfg Config, now func() time.Time, options ...safehttp.Option) (*Verifier, error) {
	if !cfg.Enabled() {
		return nil, errors.New("PAWGATE_OAUTH_ISSUER is not set")
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Verifier{
		scope:      cfg.Scope,
		algorithms: slices.Clone(cfg.Algorithms),
		keys:       &keySet{cfg: cfg, client: safehttp.New(cfg.policy(), options...), now: now},
		parser:     jwt.NewParser(jwt.WithStrictDecoding()),
		validator: jwt.NewValidator(jwt.WithIssuer(cfg.Issuer), jwt.WithAudience(cfg.Audience), jwt.WithExpirationRequired(),
			jwt.WithIssuedAt(), jwt.WithLeeway(Skew), jwt.WithTimeFunc(now)),
	}, nil
}

// IsJWT reports whether a bearer token has the form of a JWT, which none of
// pawgate's own keys has.
func IsJWT(token string) bool {
	return strings.HasPrefix(token, "eyJ") && strings.Count(token, ".") == 2
}

// wireClaims are the claims that are read. scope is RFC 8693 §4.2; some issuers
// send a list, or call it scp.
type wireClaims struct {
	jwt.RegisteredClaims
	Scope        scopeList       `json:"scope"`
	SCP          scopeList       `json:"scp"`
	ClientID     string          `json:"client_id"`
	Authorized   string          `json:"azp"`
	Confirmation json.RawMessage `json:"cnf"`
}

// scopeList reads "a b" and ["a","b"].
type scopeList []string

// UnmarshalJSON takes both forms.
func (l *scopeList) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*l = strings.Fields(text)
		return nil
	}
	return json.Unmarshal(b, (*[]string)(l))
}

// Verify checks a token and returns what it says. The error is always an
// *Error: 401 when the token is not good here, 403 when it lacks the base
// scope, 503 when the issuer's keys cannot be had.
//
// The claims are read before the key is looked up, so that only a token for
// this resource, from this issuer, in its time, makes the server ask the issuer
// for keys. They count for nothing else until the signature is checked.
func (v *Verifier) Verify(ctx context.Context, token string) (Claims, error) {
	if len(token) > MaxToken {
		return Claims{}, invalid(Malformed, fmt.Sprintf("the token is longer than %d bytes", MaxToken))
	}
	var c wireClaims
	t, parts, err := v.parser.ParseUnverified(token, &c)
	if err != nil {
		return Claims{}, explain(err)
	}
	alg, _ := t.Header["alg"].(string)
	if !slices.Contains(v.algorithms, alg) {
		return Claims{}, invalid(BadAlgorithm, "the token is signed with an algorithm that is not accepted here")
	}
	if err := checkHeader(t.Header); err != nil {
		return Claims{}, err
	}
	if err := v.checkClaims(&c); err != nil {
		return Claims{}, err
	}
	kid, _ := t.Header["kid"].(string)
	key, err := v.keys.find(ctx, kid, alg)
	if err != nil {
		return Claims{}, err
	}
	if err := t.Method.Verify(strings.Join(parts[:2], "."), t.Signature, key); err != nil {
		return Claims{}, invalid(BadSignature, "the token's signature is not the issuer's").because(err)
	}
	return v.grant(&c)
}

// grant is what a verified token says, if it has the base scope.
func (v *Verifier) grant(c *wireClaims) (Claims, error) {
	claims := Claims{Subject: c.Subject, Issuer: c.Issuer, ClientID: cmp.Or(c.ClientID, c.Authorized), Expiry: c.ExpiresAt.Time, ID: c.ID,
		Scopes: slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.Scope, c.SCP))))}
	if v.scope != "" && !claims.HasScope(v.scope) {
		return Claims{}, &Error{Status: http.StatusForbidden, Code: "insufficient_scope", Reason: MissingScope, Scope: v.scope,
			message: "the token lacks the scope " + v.scope}
	}
	return claims, nil
}

func (v *Verifier) checkClaims(c *wireClaims) error {
	switch {
	case c.Issuer == "":
		return invalid(WrongIssuer, "the token names no issuer")
	case len(c.Audience) == 0:
		return invalid(WrongAudience, "the token names no resource it is for (aud)")
	case c.ExpiresAt == nil:
		return invalid(TokenExpired, "the token has no expiry")
	}
	if err := v.validator.Validate(c); err != nil {
		return explain(err)
	}
	switch {
	case len(c.Confirmation) > 0 && string(c.Confirmation) != "null":
		return invalid(WrongType, "the token is bound to a key of the client, which is not supported; get a bearer token")
	case c.Subject == "" || len(c.Subject) > 255 || strings.ContainsFunc(c.Subject, control):
		return invalid(BadClaims, "the token has no sub, or one that is not 1 to 255 bytes without control characters")
	case strings.ContainsFunc(c.ID+c.ClientID+c.Authorized, control):
		return invalid(BadClaims, "a claim of the token has control characters")
	}
	return nil
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// checkHeader refuses a JWT of another kind (RFC 8725 §3.11, RFC 9068 §4) and
// extensions that must be understood (RFC 7515 §4.1.11).
func checkHeader(header map[string]any) error {
	if _, critical := header["crit"]; critical {
		return invalid(WrongType, "the token needs an extension (crit) that is not supported")
	}
	typ, given := header["typ"]
	name, _ := typ.(string)
	switch strings.TrimPrefix(strings.ToLower(name), "application/") {
	case "jwt", "at+jwt":
		return nil
	}
	if !given {
		return nil
	}
	return invalid(WrongType, "the token is no access token; its typ must be at+jwt or JWT")
}

// explain words what the library found; its own texts may quote the token.
func explain(err error) *Error {
	for _, e := range []struct {
		is              error
		reason, message string
	}{
		{jwt.ErrTokenMalformed, Malformed, "the token is no JWT; opaque tokens are not supported"},
		{jwt.ErrTokenUnverifiable, BadAlgorithm, "the token is signed with an algorithm that is not accepted here"},
		{jwt.ErrTokenInvalidIssuer, WrongIssuer, "the token is from another issuer"},
		{jwt.ErrTokenInvalidAudience, WrongAudience, "the token is for another resource; ask for this one, as the protected-resource metadata names it"},
		{jwt.ErrTokenExpired, TokenExpired, "the token has expired; get a new one"},
		{jwt.ErrTokenNotValidYet, NotYetValid, "the token is not valid yet"},
		{jwt.ErrTokenUsedBeforeIssued, NotYetValid, "the token was issued in the future"},
	} {
		if errors.Is(err, e.is) {
			return invalid(e.reason, e.message).because(err)
		}
	}
	return invalid(BadClaims, "a claim of the token has the wrong form").because(err)
}
