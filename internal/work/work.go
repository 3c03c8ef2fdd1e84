// Package work is the one queue, in Postgres: prompts that an agent's model is
// to answer, and single tool calls, to be done later and once.
//
// An item is enqueued inside the caller's transaction, so it exists exactly if
// what it belongs to does. A worker leases it (SKIP LOCKED, so workers do not
// wait for each other), keeps the lease while it works, and records one result
// under the fence that the lease came with; a worker that was taken for dead
// holds an old fence and records nothing. A lost or failed attempt is tried
// again after a back-off, and after the last one the item is a dead letter. The
// table itself refuses a second end of an item.
//
// In a deployment the outbox tells SQS the ids of items that are due, and the
// function agent-worker takes them by id; locally workers look for themselves.
// SQS may tell of an item twice or of one that is done: only the lease counts.
//
// A run may ask for more work. How deep such a chain goes, how much it may be
// in all, and how much an agent asks for in a minute are bounded here, where
// every item passes, and not by what a caller says: a run is known by its
// credential, which only the router signs.
package work

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

// Kind says what is to be done.
type Kind string

// The kinds. The payload of a prompt is a Prompt, that of a call a Call.
const (
	KindPrompt Kind = "prompt"
	KindCall   Kind = "call"
)

// Upwards is the source of what an agent asks of one above it. Its run has no
// tools: else whoever may not do a thing, or not see what a superior keeps, would
// get it by asking, and a text that an agent below was shown would be heard above.
const Upwards = "send_to_superior"

// Prompt is what a model is to answer.
type Prompt struct {
	Prompt string `json:"prompt"`
	System string `json:"system,omitempty"` // what the run is besides the agent
	Tier   string `json:"tier,omitempty"`   // cheap, standard or preferred
}

// Call is one tool call, made through the gate in the agent's name.
type Call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// Notify is where a result is told.
type Notify struct {
	Channel  string `json:"channel"`
	ChatID   string `json:"chat_id"`
	ThreadID string `json:"thread_id,omitempty"`
}

// Item is what is enqueued.
type Item struct {
	ID      uuid.UUID // zero: a new one
	Kind    Kind
	Source  string // the tool that asks, such as send_to_agent
	Agent   string // who does it
	From    string // who asks for it
	Payload any    // Prompt or Call
	Scopes  []string
	// NarrowedBy are agents that must be allowed a tool too before this work
	// may call it. A chain keeps those of its earlier items.
	NarrowedBy []string
	Session    string
	Notify     *Notify
	// Key makes a repetition of the same item by the same asker harmless.
	Key string
	// Parent is the run that asks, from Parent(who).
	Parent *uuid.UUID
	// RunBy is the agent whose run Parent is; empty: From.
	RunBy string
	RunAt time.Time // not before; zero: now
}

// The bounds of the queue.
const (
	MaxPayload   = 100_000 // bytes of an item's payload, as JSON
	MaxDepth     = 5       // hops below the first item of a chain
	MaxPerMinute = 20      // items that one agent asks for
	MaxPerChain  = 100     // items of a chain in all
	MaxQueued    = 1000    // items that wait for one agent
	MaxAttempts  = 3       // before an item is a dead letter
)

// The reasons of refusals that only the queue has.
const (
	TooDeep fault.Reason = "too_deep"
	Runaway fault.Reason = "runaway"
)

// Queued is what became of an item.
type Queued struct {
	ID    uuid.UUID
	Depth int
	// Again says that the same item was there already, under the same key.
	Again bool
}

// credential is how a run is named as a caller.
const credential = "work:"

// Credential is the credential of the run of an item.
func Credential(id uuid.UUID) string { return credential + id.String() }

// Parent is the item whose run a caller is; nil when it is none.
func Parent(who caller.Caller) *uuid.UUID {
	text, ok := strings.CutPrefix(who.Credential, credential)
	if id, err := uuid.Parse(text); ok && err == nil {
		return &id
	}
	return nil
}

// Scopes are those of a caller that its work may have: never to approve, never
// to administer.
func Scopes(who caller.Caller) []string {
	scopes := []string{}
	for _, scope := range who.Scopes {
		if scope != caller.ScopeApprove && scope != caller.ScopeOperator {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// Enqueue adds an item within the caller's transaction, or refuses it with a
// fault: too_large, not_found for an agent that is not at work, too_deep and
// runaway for chains out of hand, rate_limited for a full queue, conflict for a
// key that another item has.
func Enqueue(ctx context.Context, tx pgx.Tx, item Item) (Queued, error) {
	payload, err := json.Marshal(item.Payload)
	if err != nil {
		return Queued{}, fmt.Errorf("encode work: %w", err)
	}
	if len(payload) > MaxPayload {
		return Queued{}, fault.New(fault.TooLarge, "this is %d bytes as JSON and at most %d are taken; store it and pass where it is", len(payload), MaxPayload)
	}
	encoded, err := json.Marshal(wireOf(item, payload))
	if err != nil {
		return Queued{}, fmt.Errorf("encode work: %w", err)
	}
	var raw []byte
	err = tx.QueryRow(ctx, `select work_enqueue($1, $2, $3, $4, $5)`, string(encoded), MaxDepth, MaxPerMinute, MaxPerChain, MaxQueued).Scan(&raw)
	if err != nil {
		return Queued{}, fmt.Errorf("enqueue work: %w", postgres.Classify(err))
	}
	var v verdict
	if err := json.Unmarshal(raw, &v); err != nil {
		return Queued{}, fmt.Errorf("read verdict: %w", err)
	}
	return v.queued(item)
}

// wire is an item as work_enqueue reads it.
type wire struct {
	ID         uuid.UUID       `json:"id"`
	Kind       Kind            `json:"kind"`
	Source     string          `json:"source"`
	Agent      string          `json:"agent_id"`
	From       string          `json:"from_agent"`
	Payload    json.RawMessage `json:"payload"`
	Scopes     []string        `json:"scopes"`
	NarrowedBy []string        `json:"narrowed_by"`
	Session    string          `json:"session"`
	Notify     *Notify         `json:"notify"`
	Key        *string         `json:"idempotency_key"`
	Parent     *uuid.UUID      `json:"parent_id"`
	RunBy      string          `json:"run_by,omitempty"`
	RunAt      *time.Time      `json:"run_at"`
	Attempts   int             `json:"max_attempts"`
}

func wireOf(item Item, payload []byte) wire {
	w := wire{ID: item.ID, Kind: item.Kind, Source: item.Source, Agent: item.Agent, From: item.From, Payload: payload,
		Scopes: append([]string{}, item.Scopes...), NarrowedBy: append([]string{}, item.NarrowedBy...), Session: item.Session,
		Notify: item.Notify, Parent: item.Parent, RunBy: item.RunBy, Attempts: MaxAttempts}
	if w.ID == uuid.Nil {
		w.ID = uuid.Must(uuid.NewV7())
	}
	if item.Key != "" {
		w.Key = &item.Key
	}
	if !item.RunAt.IsZero() {
		w.RunAt = &item.RunAt
	}
	return w
}

// verdict is what work_enqueue says.
type verdict struct {
	Verdict string    `json:"verdict"`
	ID      uuid.UUID `json:"id"`
	Depth   int       `json:"depth"`
	Limit   int       `json:"limit"`
}

func (v verdict) queued(item Item) (Queued, error) {
	switch v.Verdict {
	case "queued", "duplicate":
		return Queued{ID: v.ID, Depth: v.Depth, Again: v.Verdict == "duplicate"}, nil
	case "conflict":
		return Queued{}, fault.New(fault.Conflict, "this idempotency key was used for other work; use a new one")
	case "unavailable":
		return Queued{}, fault.New(fault.NotFound, "agent %s is not at work (paused, archived or stopped); nothing was queued", item.Agent)
	case "orphan":
		return Queued{}, fault.New(fault.Cancelled, "the run that asks has ended, so it can ask for nothing any more")
	case "too_deep":
		return Queued{}, fault.New(TooDeep, "this chain of agents that ask agents is %d deep already; answer with what you have", v.Limit)
	case "runaway":
		return Queued{}, fault.Retry(Runaway, time.Minute, "%s asked for %d pieces of work within a minute, which looks like a loop; wait for their answers", item.From, v.Limit)
	case "chain":
		return Queued{}, fault.New(Runaway, "this chain of work has %d pieces already, which looks like a loop; answer with what you have", v.Limit)
	case "full":
		return Queued{}, fault.Retry(fault.RateLimited, time.Minute, "%d pieces of work wait for %s already; try again later", v.Limit, item.Agent)
	}
	return Queued{}, fmt.Errorf("enqueue work: verdict %q", v.Verdict)
}
