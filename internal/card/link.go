package card

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"pawgate/internal/postgres"
)

// Path is where the router answers links; a token follows.
const Path = "/approvals/"

// audience keeps tokens of links apart from everything else that is signed.
const audience = "approval-card"

// Links makes and checks the links of cards. A link is good for one request,
// until it expires or is decided; whoever has it may decide, so it is sent to
// the destination that an operator has set and nowhere else.
type Links struct {
	// Base is the public URL of the router; nil: cards carry no link.
	Base *url.URL
	Now  func() time.Time
}

// Link is what a token says.
type Link struct{ Approval, Agent string }

// ParseBase reads a public URL: https, or http on loopback, without a query.
func ParseBase(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("PAWGATE_PUBLIC_URL is not a URL like https://gate.example.com")
	}
	loopback := u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1"
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback) {
		return nil, errors.New("PAWGATE_PUBLIC_URL must be https, or http on loopback")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// Origin is what a browser says of pages under the base.
func (l Links) Origin() string {
	if l.Base == nil {
		return ""
	}
	return l.Base.Scheme + "://" + l.Base.Host
}

// To is the link of a card; empty without a base.
func (l Links) To(ctx context.Context, db postgres.DB, c Card) (string, error) {
	if l.Base == nil {
		return "", nil
	}
	key, err := signingKey(ctx, db)
	if err != nil {
		return "", err
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		ID: c.ID, Subject: c.AgentID, Audience: jwt.ClaimStrings{audience}, ExpiresAt: jwt.NewNumericDate(c.ExpiresAt),
	}).SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign link: %w", err)
	}
	return l.Base.String() + Path + token, nil
}

// maxToken bounds what is checked, in bytes.
const maxToken = 1024

// ErrLink is a link that is not ours, or whose time is over.
var ErrLink = errors.New("the link is not valid")

// Check reads a token. It is ErrLink for any token that is not good, and another
// error when that cannot be found out.
func (l Links) Check(ctx context.Context, db postgres.DB, token string) (Link, error) {
	if l.Base == nil || len(token) > maxToken || strings.Count(token, ".") != 2 {
		return Link{}, ErrLink
	}
	key, err := signingKey(ctx, db)
	if err != nil {
		return Link{}, err
	}
	var claims jwt.RegisteredClaims
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired(), jwt.WithAudience(audience), jwt.WithTimeFunc(l.Now))
	if _, err := parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return key, nil }); err != nil || claims.ID == "" {
		return Link{}, ErrLink
	}
	return Link{Approval: claims.ID, Agent: claims.Subject}, nil
}

// signingKey is shared by all routers through the database, and is not the one
// that signs what clients are given.
func signingKey(ctx context.Context, db postgres.DB) ([]byte, error) {
	row, err := postgres.First[struct{ Key []byte }](ctx, db, "select key from gate_secret")
	if err != nil {
		return nil, fmt.Errorf("read key of links: %w", err)
	}
	mac := hmac.New(sha256.New, row.Key)
	mac.Write([]byte(audience))
	return mac.Sum(nil), nil
}
