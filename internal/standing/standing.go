// Package standing reads, in one statement, who calls and everything that a
// decision about a call depends on. The router's gate, tool_preflight and the
// operator's explain all see the same standing, so they cannot disagree.
//
// It decides nothing; that is for package policy.
package standing

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

//go:embed standing.sql
var standingSQL string

// Limit is a token bucket: so many calls at once, so many in a minute.
type Limit struct {
	Burst     float64 `json:"burst"`
	PerMinute float64 `json:"per_minute"`
}

// The limits of an agent that has none of its own. CredentialLimit is against
// floods: it counts every request of a credential.
var (
	CredentialLimit = Limit{Burst: 300, PerMinute: 3000}
	ClassLimits     = map[tool.Class]Limit{
		tool.ClassRead:      {Burst: 120, PerMinute: 600},
		tool.ClassWrite:     {Burst: 60, PerMinute: 240},
		tool.ClassSend:      {Burst: 20, PerMinute: 60},
		tool.ClassExecute:   {Burst: 20, PerMinute: 60},
		tool.ClassExpensive: {Burst: 10, PerMinute: 30},
	}
)

// Who names the caller: by the hash of a key, as the agent that the subject of
// an access token is mapped to, or as an agent that needs no credential.
type Who struct {
	KeyHash         []byte
	Issuer, Subject string
	Agent           string
	Credential      string   // how audit rows name a credential that is no key
	Scopes          []string // of a credential that is no key
}

// row is what standing.sql selects.
type row struct {
	CredentialID     string
	Scopes           []string
	Ceiling          []string
	AgentID          string
	State            string
	AllowedTools     []string
	DeniedTools      []string
	ApprovalRequired []string
	ScopedTools      []string
	Rules            string
	Approver         string
	ApprovalSeconds  int64
	Stopped          bool
	StopEveryone     bool
	StopReason       string
	StopSince        time.Time
	Granted          bool
	FloodMs          int64
	ClassMs          int64
}

// Read gives the standing of a caller for one tool, or for none when t is nil,
// and takes a token from the buckets that a call draws on. It is pgx.ErrNoRows
// when nobody is meant: no such key, revoked, expired, or an archived agent.
func Read(ctx context.Context, db postgres.DB, who Who, t *tool.Definition) (policy.Snapshot, error) {
	return read(ctx, db, who, t, false)
}

// Peek is Read for whoever only wants to know: it takes nothing.
func Peek(ctx context.Context, db postgres.DB, who Who, t *tool.Definition) (policy.Snapshot, error) {
	return read(ctx, db, who, t, true)
}

func read(ctx context.Context, db postgres.DB, who Who, t *tool.Definition, peek bool) (policy.Snapshot, error) {
	name, class, limit := "", tool.Class(""), Limit{}
	if t != nil {
		name, class, limit = t.Name, t.Class, ClassLimits[t.Class]
	}
	r, err := postgres.First[row](ctx, db, standingSQL, who.KeyHash, who.Agent, who.Credential, who.Scopes,
		name, string(class), limit.Burst, limit.PerMinute, CredentialLimit.Burst, CredentialLimit.PerMinute, who.Issuer, who.Subject, peek)
	if err != nil {
		return policy.Snapshot{}, err
	}
	return r.snapshot()
}

func (r row) snapshot() (policy.Snapshot, error) {
	rules, err := policy.ParseRules([]byte(r.Rules))
	if err != nil {
		return policy.Snapshot{}, fmt.Errorf("read rules of agent %s: %w", r.AgentID, err)
	}
	s := policy.Snapshot{
		Agent: policy.Agent{ID: r.AgentID, State: r.State, Allowed: r.AllowedTools, Denied: r.DeniedTools,
			ApprovalRequired: r.ApprovalRequired, Scoped: r.ScopedTools, Rules: rules,
			Approver: policy.Approver(r.Approver), ApprovalLife: time.Duration(r.ApprovalSeconds) * time.Second},
		Caller:    caller.Caller{Agent: r.AgentID, Credential: r.CredentialID, Scopes: caller.Within(r.Scopes, r.Ceiling)},
		Granted:   r.Granted,
		FloodWait: time.Duration(r.FloodMs) * time.Millisecond,
		ClassWait: time.Duration(r.ClassMs) * time.Millisecond,
	}
	if r.Stopped {
		s.Stop = &policy.Stop{Everyone: r.StopEveryone, Reason: r.StopReason, Since: r.StopSince}
	}
	return s, nil
}

// Take takes one token from a bucket of its own, and gives the time to wait
// when there was none.
func Take(ctx context.Context, db postgres.DB, bucket string, limit Limit) (time.Duration, error) {
	ms, err := postgres.First[struct{ Ms int64 }](ctx, db, "select coalesce(bucket_take($1, $2, $3), 0)::bigint as ms", bucket, limit.Burst, limit.PerMinute)
	return time.Duration(ms.Ms) * time.Millisecond, err
}
