package operator

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/near"
	"pawgate/internal/postgres"
)

var (
	//go:embed key_create.sql
	keyCreateSQL string
	//go:embed key_list.sql
	keyListSQL string
	//go:embed key_revoke.sql
	keyRevokeSQL string
)

// secretBytes is how many random bytes a key has.
const secretBytes = 32

// newKey makes a key and what may be known of it: "paw_<env>_" and 43
// characters of base64url (RFC 4648 §5).
func newKey(env string) (key, hint string, hash []byte) {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // never fails, see crypto/rand
	prefix := "paw_" + env + "_"
	key = prefix + base64.RawURLEncoding.EncodeToString(secret)
	sum := sha256.Sum256([]byte(key))
	return key, key[:len(prefix)+4], sum[:]
}

// newKeyID makes the short name by which a key is revoked.
func newKeyID() string { return "k_" + strings.ToLower(rand.Text()[:10]) }

type keyCreateArgs struct {
	AgentID string   `json:"agent_id" doc:"The agent the key acts as" maxlen:"64"`
	Name    string   `json:"name,omitempty" doc:"What the key is for" maxlen:"100"`
	Scope   []string `json:"scope,omitempty" doc:"What it is good for: category:read, category:write, category:execute, either side may be *; * for all of these; approve; operator. *:read if left out"`
	Expires string   `json:"expires,omitempty" doc:"When it ends: 90d, 12h, 2026-12-31; never if left out" maxlen:"40"`
}

type keyCreated struct {
	Key       string     `json:"key"` // the only time it is shown
	KeyID     string     `json:"key_id"`
	AgentID   string     `json:"agent_id"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at,omitzero"`
	Note      string     `json:"note"`
}

// defaultScopes are the least that is of use.
var defaultScopes = []string{"*:read"}

func (s *session) keyCreate(ctx context.Context, _ caller.Caller, a keyCreateArgs) (keyCreated, error) {
	scopes := slices.Compact(slices.Sorted(slices.Values(a.Scope)))
	if len(scopes) == 0 {
		scopes = slices.Clone(defaultScopes)
	}
	for _, scope := range scopes {
		if err := s.checkScope(scope); err != nil {
			return keyCreated{}, err
		}
	}
	expires, err := s.expiry(a.Expires)
	if err != nil {
		return keyCreated{}, err
	}
	agent, err := s.read(ctx, a.AgentID)
	if err != nil {
		return keyCreated{}, err
	}
	if agent.State == "archived" {
		return keyCreated{}, fault.New(fault.Conflict, "agent %s is archived; bring it back first: pawgate agent restore %s", a.AgentID, a.AgentID)
	}
	return insertKey(ctx, s.db, s.Env, s.Now(), keyCreated{AgentID: a.AgentID, Scopes: scopes, ExpiresAt: expires}, a.Name)
}

func insertKey(ctx context.Context, db postgres.DB, env string, now time.Time, k keyCreated, name string) (keyCreated, error) {
	key, hint, hash := newKey(env)
	k.Key, k.KeyID, k.Note = key, newKeyID(), "shown this once; only its hash is stored"
	_, err := postgres.Exec(ctx, db, keyCreateSQL, pgx.StrictNamedArgs{
		"id": k.KeyID, "agent_id": k.AgentID, "name": name, "hint": hint, "hash": hash,
		"scopes": k.Scopes, "now": now, "expires_at": k.ExpiresAt,
	})
	if err != nil {
		return keyCreated{}, fmt.Errorf("write key: %w", err)
	}
	return k, nil
}

func (s *session) expiry(text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	now := s.Now()
	t, err := moment("expires", text, now, 1)
	if err != nil {
		return nil, err
	}
	if !t.After(now) {
		return nil, fault.Invalid("expires", "expires lies in the past")
	}
	return &t, nil
}

var categoryScope = regexp.MustCompile(`^([a-z][a-z0-9]*|\*):(read|write|execute|\*)$`)

// checkScope refuses a scope that grants nothing, which the predecessor
// answered by dropping all scopes of the key in silence.
func (s *session) checkScope(scope string) error {
	if slices.Contains([]string{caller.ScopeAll, caller.ScopeApprove, caller.ScopeOperator}, scope) {
		return nil
	}
	if !categoryScope.MatchString(scope) {
		return fault.Invalid("scope",
			"%q is no scope; write *, approve, operator, or category:action with the action read, write, execute or *, such as memory:read", short(scope))
	}
	category, _, _ := strings.Cut(scope, ":")
	if known := s.Catalog.Categories(); category != "*" && !slices.Contains(known, category) {
		return fault.Invalid("scope", "no category %s%s; there are %s", category, near.DidYouMean(category, known), strings.Join(known, ", "))
	}
	return nil
}

type keyListArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only keys of this agent" maxlen:"64"`
	All     bool   `json:"all,omitempty" doc:"Show revoked and expired keys too"`
}

type keyShown struct {
	KeyID      string     `json:"key_id"`
	AgentID    string     `json:"agent_id"`
	Name       string     `json:"name"`
	Hint       string     `json:"hint"` // how the key begins
	State      string     `json:"state"`
	Scopes     []string   `json:"scopes"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at,omitzero"`
	RevokedAt  *time.Time `json:"revoked_at,omitzero"`
	LastUsedAt *time.Time `json:"last_used_at,omitzero"`
}

type keyListResult struct {
	Keys []keyShown `json:"keys"`
}

func (s *session) keyList(ctx context.Context, _ caller.Caller, a keyListArgs) (keyListResult, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return keyListResult{}, err
	}
	keys, err := s.keys(ctx, a)
	return keyListResult{Keys: keys}, err
}

func (s *session) keys(ctx context.Context, a keyListArgs) ([]keyShown, error) {
	keys, err := postgres.All[keyShown](ctx, s.db, keyListSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "all": a.All, "now": s.Now()})
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}

type keyRevokeArgs struct {
	KeyID string `json:"key_id" doc:"The key's id, as pawgate key list shows it" maxlen:"64"`
}

type keyRevoked struct {
	KeyID     string    `json:"key_id"`
	AgentID   string    `json:"agent_id"`
	RevokedAt time.Time `json:"revoked_at"`
	Changed   bool      `json:"changed"` // false: it was revoked before
}

// keyRevoke takes effect with the next call: the gate reads the key each time.
func (s *session) keyRevoke(ctx context.Context, _ caller.Caller, a keyRevokeArgs) (keyRevoked, error) {
	if strings.HasPrefix(a.KeyID, "paw_") {
		return keyRevoked{}, fault.Invalid("key_id", "give the key's id (k_…, see pawgate key list), not the key itself")
	}
	r, err := postgres.One[keyRevoked](ctx, s.db, keyRevokeSQL, pgx.StrictNamedArgs{"key_id": a.KeyID, "now": s.Now()})
	if errors.Is(err, pgx.ErrNoRows) {
		return keyRevoked{}, fault.New(fault.NotFound, "no key %s; pawgate key list shows those there are", short(a.KeyID))
	}
	if err != nil {
		return keyRevoked{}, fmt.Errorf("revoke key: %w", err)
	}
	s.about = r.AgentID
	return r, nil
}
