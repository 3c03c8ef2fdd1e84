package operator

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed memory_share.sql
	memoryShareSQL string
	//go:embed memory_unshare.sql
	memoryUnshareSQL string
	//go:embed memory_shares.sql
	memorySharesSQL string
)

type memoryShareArgs struct {
	OwnerID string   `json:"owner_id" doc:"Whose memories" maxlen:"64"`
	AgentID string   `json:"agent_id" doc:"Who may read them" maxlen:"64"`
	Tag     []string `json:"tag,omitempty" doc:"Only memories with one of these tags; all, what is known of users among them, if left out"`
	Until   string   `json:"until,omitempty" doc:"When it ends: 12h, 90d, a date or a time; until it is taken back if left out" maxlen:"64"`
}

// Bounds of a share's tags, as of a memory's.
const (
	maxShareTags      = 32
	maxShareTagLength = 64 // characters
)

// Validate refuses a list of tags that names none: it would share everything.
func (a memoryShareArgs) Validate() error {
	if a.OwnerID == a.AgentID {
		return fault.Invalid("agent_id", "an agent reads its own memories without a share")
	}
	if len(a.Tag) > maxShareTags {
		return fault.Invalid("tag", "at most %d tags", maxShareTags)
	}
	for _, tag := range a.Tag {
		if strings.TrimSpace(tag) == "" || utf8.RuneCountInString(tag) > maxShareTagLength {
			return fault.Invalid("tag", "a tag has 1 to %d characters", maxShareTagLength)
		}
	}
	return nil
}

type memoryShared struct {
	OwnerID string     `json:"owner_id"`
	AgentID string     `json:"agent_id"`
	Tags    []string   `json:"tags"` // none: all memories
	Until   *time.Time `json:"until,omitzero"`
	Changed bool       `json:"changed"`
}

// memoryShare makes a share or replaces it. The record names the owner.
func (s *session) memoryShare(ctx context.Context, _ caller.Caller, a memoryShareArgs) (memoryShared, error) {
	r := memoryShared{OwnerID: a.OwnerID, AgentID: a.AgentID, Tags: []string{}, Changed: true}
	for _, tag := range a.Tag {
		r.Tags = append(r.Tags, strings.TrimSpace(tag))
	}
	if a.Until != "" {
		until, err := moment("until", a.Until, s.Now(), 1)
		if err != nil {
			return r, err
		}
		if !until.After(s.Now()) {
			return r, fault.Invalid("until", "until is past")
		}
		r.Until = &until
	}
	for _, id := range []string{a.AgentID, a.OwnerID} {
		if _, err := s.read(ctx, id); err != nil {
			return r, err
		}
	}
	_, err := postgres.Exec(ctx, s.db, memoryShareSQL, pgx.StrictNamedArgs{
		"owner_id": a.OwnerID, "agent_id": a.AgentID, "tags": slices.Compact(r.Tags), "by": s.By, "now": s.Now(), "until": r.Until})
	if err != nil {
		return r, fmt.Errorf("share memories: %w", err)
	}
	return r, nil
}

type memoryUnshareArgs struct {
	OwnerID string `json:"owner_id" doc:"Whose memories" maxlen:"64"`
	AgentID string `json:"agent_id" doc:"Who may read them no longer" maxlen:"64"`
}

type memoryUnshared struct {
	OwnerID string `json:"owner_id"`
	AgentID string `json:"agent_id"`
	Changed bool   `json:"changed"`
}

// memoryUnshare takes effect with the next call.
func (s *session) memoryUnshare(ctx context.Context, _ caller.Caller, a memoryUnshareArgs) (memoryUnshared, error) {
	s.about = a.OwnerID
	n, err := postgres.Exec(ctx, s.db, memoryUnshareSQL, pgx.StrictNamedArgs{"owner_id": a.OwnerID, "agent_id": a.AgentID})
	if err != nil {
		return memoryUnshared{}, fmt.Errorf("take back a share: %w", err)
	}
	return memoryUnshared{OwnerID: a.OwnerID, AgentID: a.AgentID, Changed: n > 0}, nil
}

type memorySharesArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only with this agent on either side" maxlen:"64"`
}

type memoryShareLine struct {
	OwnerID   string     `json:"owner_id"`
	AgentID   string     `json:"agent_id"`
	Tags      []string   `json:"tags"`
	GrantedBy string     `json:"granted_by"`
	GrantedAt time.Time  `json:"granted_at"`
	Until     *time.Time `json:"until,omitzero"`
	Expired   *bool      `json:"expired,omitzero"`
}

type memorySharesResult struct {
	Shares []memoryShareLine `json:"shares"`
}

func (s *session) memoryShares(ctx context.Context, _ caller.Caller, a memorySharesArgs) (memorySharesResult, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return memorySharesResult{}, err
	}
	shares, err := postgres.All[memoryShareLine](ctx, s.db, memorySharesSQL, pgx.StrictNamedArgs{"either": a.AgentID, "now": s.Now()})
	if err != nil {
		return memorySharesResult{}, fmt.Errorf("list memory shares: %w", err)
	}
	return memorySharesResult{Shares: shares}, nil
}
