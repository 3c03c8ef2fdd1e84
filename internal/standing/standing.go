// Package standing reads, in one statement, who calls and everything that a
// decision about a call depends on. The router's gate, tool_preflight and the
// operator's explain all see the same standing, so they cannot disagree.
//
// It decides nothing; that is for package policy.
package standing

import (
	"context"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/batch"
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

// Reader reads standings. Callers that come at the same time share a
// statement.
type Reader struct {
	db    postgres.DB
	queue batch.Queue[ask, standing]
	rules rulesCache
}

// NewReader is a reader over a database.
func NewReader(db postgres.DB) *Reader {
	r := &Reader{db: db}
	r.queue = batch.Queue[ask, standing]{Run: r.readAll, Most: 100, Workers: 2, Timeout: 5 * time.Second}
	return r
}

// ask is one element of gate_standing's argument. It can be compared, so that
// callers who ask the same share an answer.
type ask struct {
	Hash       string     `json:"hash"`
	Agent      string     `json:"agent"`
	Issuer     string     `json:"issuer"`
	Subject    string     `json:"subject"`
	Credential string     `json:"credential"`
	Scopes     scopes     `json:"scopes"`
	Tool       string     `json:"tool"`
	Class      tool.Class `json:"class"`
	Burst      float64    `json:"burst"`
	Rate       float64    `json:"rate"`
	FloodBurst float64    `json:"flood_burst"`
	FloodRate  float64    `json:"flood_rate"`
	Calls      int        `json:"calls"` // that want a token; 0 only looks
}

// scopes is a JSON array of strings.
type scopes string

// MarshalJSON gives the array.
func (s scopes) MarshalJSON() ([]byte, error) { return []byte(s), nil }

// standing is the answer for one of those that asked the same: its place among
// them says which token it has.
type standing struct {
	row   *row // nil: nobody
	place int  // from 1
}

// row is what gate_standing gives.
type row struct {
	N                int
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
	StopSince        *time.Time // nil: no stop is in force
	StopEveryone     *bool
	StopReason       *string
	Granted          bool
	FloodLevel       float64 // tokens before the draw
	FloodRate        float64 // per minute
	ClassLevel       float64
	ClassRate        float64
	Money            []byte // JSON, or nil
}

// Read gives the standing of a caller for one tool, or for none when t is nil,
// and takes a token from the buckets that a call draws on. It is pgx.ErrNoRows
// when nobody is meant: no such key, revoked, expired, or an archived agent.
func (r *Reader) Read(ctx context.Context, who Who, t *tool.Definition) (policy.Snapshot, error) {
	return r.read(ctx, who, t, false)
}

// Peek is Read for whoever only wants to know: it takes nothing.
func (r *Reader) Peek(ctx context.Context, who Who, t *tool.Definition) (policy.Snapshot, error) {
	return r.read(ctx, who, t, true)
}

func (r *Reader) read(ctx context.Context, who Who, t *tool.Definition, peek bool) (policy.Snapshot, error) {
	held, err := json.Marshal(slices.Concat([]string{}, who.Scopes))
	if err != nil {
		return policy.Snapshot{}, fmt.Errorf("encode scopes: %w", err)
	}
	a := ask{Hash: hex.EncodeToString(who.KeyHash), Agent: who.Agent, Issuer: who.Issuer, Subject: who.Subject,
		Credential: who.Credential, Scopes: scopes(held),
		FloodBurst: CredentialLimit.Burst, FloodRate: CredentialLimit.PerMinute}
	if !peek {
		a.Calls = 1
	}
	if t != nil {
		limit := ClassLimits[t.Class]
		a.Tool, a.Class, a.Burst, a.Rate = t.Name, t.Class, limit.Burst, limit.PerMinute
	}
	found, err := r.queue.Do(ctx, a)
	switch {
	case err != nil:
		return policy.Snapshot{}, err
	case found.row == nil:
		return policy.Snapshot{}, pgx.ErrNoRows
	}
	return r.snapshot(found)
}

// readAll answers a group of callers, who are many but ask for few things.
func (r *Reader) readAll(ctx context.Context, group []ask) ([]standing, error) {
	var questions []ask
	at := map[ask]int{} // of each question, in questions
	out, which := make([]standing, len(group)), make([]int, len(group))
	for i, a := range group {
		n, ok := at[a]
		if !ok {
			n = len(questions)
			at[a] = n
			questions = append(questions, a)
		} else {
			questions[n].Calls += a.Calls
		}
		which[i], out[i].place = n, max(1, questions[n].Calls)
	}
	asked, err := json.Marshal(questions)
	if err != nil {
		return nil, fmt.Errorf("encode callers: %w", err)
	}
	rows, err := postgres.Every[row](ctx, r.db, standingSQL, string(asked))
	if err != nil {
		return nil, err
	}
	found := make([]*row, len(questions))
	for i := range rows {
		found[rows[i].N] = &rows[i]
	}
	for i, n := range which {
		out[i].row = found[n]
	}
	return out, nil
}

// wait is how long it takes until a bucket has a token for this place: none
// when it had enough.
func wait(level, perMinute float64, place int) time.Duration {
	switch {
	case float64(place) <= level:
		return 0
	case perMinute <= 0:
		return 24 * time.Hour // what nothing flows into is empty for a day, not full
	}
	return max(time.Millisecond, time.Duration((float64(place)-level)/perMinute*float64(time.Minute)).Round(time.Millisecond))
}

func (r *Reader) snapshot(of standing) (policy.Snapshot, error) {
	found := of.row
	rules, err := r.rules.parse(found.Rules)
	if err != nil {
		return policy.Snapshot{}, fmt.Errorf("read rules of agent %s: %w", found.AgentID, err)
	}
	s := policy.Snapshot{
		Agent: policy.Agent{ID: found.AgentID, State: found.State, Allowed: found.AllowedTools, Denied: found.DeniedTools,
			ApprovalRequired: found.ApprovalRequired, Scoped: found.ScopedTools, Rules: rules,
			Approver: policy.Approver(found.Approver), ApprovalLife: time.Duration(found.ApprovalSeconds) * time.Second},
		Caller:    caller.Caller{Agent: found.AgentID, Credential: found.CredentialID, Scopes: caller.Within(found.Scopes, found.Ceiling)},
		Granted:   found.Granted,
		FloodWait: wait(found.FloodLevel, found.FloodRate, of.place),
		ClassWait: wait(found.ClassLevel, found.ClassRate, of.place),
	}
	if found.Money != nil {
		if err := json.Unmarshal(found.Money, &s.Money); err != nil {
			return policy.Snapshot{}, fmt.Errorf("read money of agent %s: %w", found.AgentID, err)
		}
	}
	if found.StopSince != nil {
		s.Stop = &policy.Stop{Everyone: *found.StopEveryone, Reason: *found.StopReason, Since: *found.StopSince}
	}
	return s, nil
}

// rulesCache keeps rules that were parsed, by their text: what is cached
// follows from what was just read, so it can never be stale.
type rulesCache struct {
	mu     sync.Mutex
	parsed map[string][]policy.Rule
}

// maxCached bounds the cache; agents share rules, or have none.
const maxCached = 256

func (c *rulesCache) parse(text string) ([]policy.Rule, error) {
	c.mu.Lock()
	rules, ok := c.parsed[text]
	c.mu.Unlock()
	if ok {
		return rules, nil
	}
	rules, err := policy.ParseRules([]byte(text))
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.parsed) >= maxCached || c.parsed == nil {
		c.parsed = map[string][]policy.Rule{}
	}
	c.parsed[text] = rules
	return rules, nil
}

// Take takes one token from a bucket of its own, and gives the time to wait
// when there was none.
func Take(ctx context.Context, db postgres.DB, bucket string, limit Limit) (time.Duration, error) {
	ms, err := postgres.First[struct{ Ms int64 }](ctx, db, "select coalesce(bucket_take($1, $2, $3), 0)::bigint as ms", bucket, limit.Burst, limit.PerMinute)
	return time.Duration(ms.Ms) * time.Millisecond, err
}
