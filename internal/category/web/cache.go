package web

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

var (
	//go:embed cached.sql
	cachedSQL string
	//go:embed keep.sql
	keepSQL string
	//go:embed confirm.sql
	confirmSQL string
	//go:embed forget.sql
	forgetSQL string
	//go:embed purge.sql
	purgeSQL string
)

// copied is a page as it was kept.
type copied struct {
	URL          string
	Status       int16
	ContentType  string
	ETag         string `db:"etag"`
	LastModified string
	Body         []byte
	Truncated    bool
	FetchedAt    time.Time
	CheckedAt    time.Time
}

// cacheKey names what is kept of an address: its page, or the robots.txt that
// was read by the rules of robots.txt. The query is part of it as written:
// sorting it could make one of two pages. The fragment never reaches a server.
func cacheKey(use string, u *url.URL) []byte {
	plain := *u
	plain.Fragment, plain.RawFragment = "", ""
	sum := sha256.Sum256([]byte(use + " " + plain.String()))
	return sum[:]
}

// The uses of a cacheKey.
const (
	usePage   = "page"
	useRobots = "robots"
)

// cached is the caller's own copy of an address; nil when there is none.
func (w web) cached(ctx context.Context, who caller.Caller, key []byte) (*copied, error) {
	row, err := postgres.One[copied](ctx, w.db, cachedSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "key": key, "oldest": w.now().Add(-w.settings.CacheAge)})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read cached page: %w", err)
	}
	return &row, nil
}

// keep stores a page for the caller and brings the cache within its bounds. A
// page larger than the caller's share is not stored.
func (w web) keep(ctx context.Context, who caller.Caller, key []byte, c copied) error {
	if int64(len(c.Body)) > w.settings.AgentBytes {
		return nil
	}
	if _, err := postgres.Exec(ctx, w.db, keepSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "key": key, "url": c.URL, "status": c.Status, "content_type": c.ContentType, "etag": c.ETag,
		"last_modified": c.LastModified, "body": c.Body, "truncated": c.Truncated, "now": c.FetchedAt,
	}); err != nil {
		return fmt.Errorf("keep page: %w", err)
	}
	if _, err := postgres.Exec(ctx, w.db, purgeSQL, pgx.StrictNamedArgs{
		"oldest": w.now().Add(-w.settings.CacheAge), "agent_bytes": w.settings.AgentBytes, "all_bytes": w.settings.CacheBytes,
	}); err != nil {
		return fmt.Errorf("purge pages: %w", err)
	}
	return nil
}

// confirm notes that the server said the copy is still right.
func (w web) confirm(ctx context.Context, who caller.Caller, key []byte, at time.Time) error {
	if _, err := postgres.Exec(ctx, w.db, confirmSQL, pgx.StrictNamedArgs{"agent": who.Agent, "key": key, "now": at}); err != nil {
		return fmt.Errorf("confirm page: %w", err)
	}
	return nil
}

// forget removes a copy that is no longer to be stored.
func (w web) forget(ctx context.Context, who caller.Caller, key []byte) error {
	if _, err := postgres.Exec(ctx, w.db, forgetSQL, pgx.StrictNamedArgs{"agent": who.Agent, "key": key}); err != nil {
		return fmt.Errorf("forget page: %w", err)
	}
	return nil
}
