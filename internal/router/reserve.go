package router

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

//go:embed reserve.sql
var reserveSQL string

// reservation is what the gate holds while a call runs, to be given back with
// its outcome.
type reservation struct {
	recorded bool   // the decision's audit row is written
	ticket   string // the idempotency key that was claimed
	approval string // the approval that was used
	hold     string // the money that is held back, by its id
}

// request is the argument of gate_reserve.
type request struct {
	AgentID      string          `json:"agent_id"`
	CredentialID string          `json:"credential_id"`
	RequestID    string          `json:"request_id"`
	Tool         string          `json:"tool"`
	Definition   string          `json:"definition"`
	Hash         string          `json:"arguments_hash"`
	Arguments    json.RawMessage `json:"arguments"`
	Shown        json.RawMessage `json:"shown"`
	Ticket       *string         `json:"idempotency_key"`
	Deadline     time.Time       `json:"deadline"`
	Limited      bool            `json:"limited"`
	Because      *string         `json:"because"`
	ApprovalID   string          `json:"approval_id"`
	Life         string          `json:"life"`
	Accepted     string          `json:"accepted"` // the approval that the person at the client gave just now
	Again        bool            `json:"again"`    // an attempt of this very call may have been carried out
	Budget       *hold           `json:"budget"`   // what the call costs, where a budget covers it
}

// verdict is what gate_reserve answers.
type verdict struct {
	Verdict    string    `json:"verdict"`
	Outcome    string    `json:"outcome"` // JSON
	ID         string    `json:"id"`
	Reason     string    `json:"reason"`
	Until      time.Time `json:"until"`
	ApprovalID string    `json:"approval_id"` // the approval that was used, if it is used up
	Refusal    *refusal  `json:"refusal"`     // the budget that has no room, when limited by one

	decision policy.Decision // why a call that waited is refused after all
}

// wish is what a call asks of gate_reserve.
type wish struct {
	ticket   string // idempotency key, or ''
	because  string // why a person must approve, or ''
	limited  bool   // the class has no token left; a repetition passes all the same
	accepted string // the approval that the person at the client gave just now
	hold     *hold  // what the call costs, where a budget covers it
}

// reserve takes the last steps before a call runs: a known idempotency key
// returns its first outcome, the limit of the tool's class, an approval. One
// transaction does it, and writes the decision's audit row before anything is
// changed. A plain read needs none of it, unless it costs money of a budget.
func (r *Router) reserve(ctx context.Context, c *call, because string) (reservation, *answer) {
	limit := policy.Limited(c.snapshot, c.entry.Tool)
	held := c.hold()
	if c.entry.Hints.ReadOnly && because == "" && held == nil {
		if !limit.Allowed {
			a := r.refuse(ctx, c, limit)
			return reservation{}, &a
		}
		return reservation{}, nil
	}
	w := wish{because: because, limited: !limit.Allowed, hold: held}
	c.because = because
	if !c.entry.Hints.ReadOnly {
		w.ticket = c.message.ticket
	}
	v, err := r.claim(ctx, c, w)
	if err == nil && v.Verdict == "pending" && c.snapshot.Agent.Approver == policy.ByClient {
		var asked *answer
		if v, asked, err = r.consult(ctx, c, w, v); asked != nil {
			return reservation{}, asked
		}
	}
	switch {
	case err != nil:
		r.giveBack(ctx, c, w, err)
		a := r.unrecorded(c, err, true)
		return reservation{}, &a
	case v.Verdict != "go":
		a := r.held(ctx, c, v, limit)
		return reservation{}, &a
	}
	return reservation{recorded: true, ticket: w.ticket, approval: v.ApprovalID, hold: held.id()}, nil
}

// consult lets the person at the client decide a pending approval, and gives
// the verdict that follows, or the answer that asks.
func (r *Router) consult(ctx context.Context, c *call, w wish, v verdict) (verdict, *answer, error) {
	d, asked, err := r.askClient(ctx, c, v)
	switch {
	case err != nil || asked != nil:
		return v, asked, err
	case d.approve:
		if again, err := r.reconsider(ctx, c); err != nil || !again.Allowed {
			return verdict{Verdict: "refused", decision: again}, nil, err
		}
		w.accepted = v.ID
		v, err = r.claim(ctx, c, w)
		return v, nil, err
	case d.deny:
		v.Verdict, v.Reason = "denied", d.reason
	}
	return v, nil, nil
}

// runningPoll is how often a call looks whether its first attempt, which is
// still running, has an outcome by now.
const runningPoll = 150 * time.Millisecond

// claim calls gate_reserve until the verdict is final.
func (r *Router) claim(ctx context.Context, c *call, w wish) (verdict, error) {
	q, rows, err := r.request(ctx, c, w)
	if err != nil {
		return verdict{}, err
	}
	for {
		v, err := r.reserveSurely(ctx, q, rows)
		if err != nil || v.Verdict != "running" || w.ticket == "" {
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, nil
		case <-time.After(runningPoll):
		}
		if d, err := r.reconsider(ctx, c); err != nil || !d.Allowed {
			return verdict{Verdict: "refused", decision: d}, err
		}
	}
}

// reconsider decides again after a wait, in which a stop may have been set, a
// key revoked, a list changed.
func (r *Router) reconsider(ctx context.Context, c *call) (policy.Decision, error) {
	now, err := r.standing.Peek(ctx, c.who, &c.entry.Definition)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return policy.Decision{Step: policy.StepActive, Reason: "bad_key", Fault: fault.New(fault.Denied, "the credential was revoked during the call")}, nil
	case err != nil:
		return policy.Decision{}, err
	}
	now.Edition, now.Within, now.FloodWait = c.snapshot.Edition, c.snapshot.Within, 0
	return policy.Decide(now, c.entry.Tool), nil
}

// reservePause is how long a reservation whose answer was lost waits before it
// is asked for again.
const reservePause = 50 * time.Millisecond

// reserveSurely is reserveOnce, and asks a second time when the answer was lost
// on the way: gate_reserve knows its own request again, so nothing is claimed
// or recorded twice.
func (r *Router) reserveSurely(ctx context.Context, q request, rows []byte) (verdict, error) {
	v, err := r.reserveOnce(ctx, q, rows)
	if err == nil || !passing(err) || ctx.Err() != nil {
		return v, err
	}
	select {
	case <-ctx.Done():
		return v, err
	case <-time.After(reservePause):
	}
	q.Again = true
	return r.reserveOnce(ctx, q, rows)
}

// giveBack releases what a reservation may hold whose answer never came, so
// that a repetition of the call neither waits for nobody nor is told that its
// outcome is lost: the call did not run. Until it is written, a repetition is
// told to try again.
func (r *Router) giveBack(ctx context.Context, c *call, w wish, cause error) {
	if !passing(cause) && ctx.Err() == nil {
		return // the database refused it whole
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	row := r.row(c, "outcome")
	row.Decision, row.Outcome, row.Reason = "refused", "fault", "reservation_lost"
	err := r.audit.keep(ctx, record{rows: []auditRow{row}, finished: []finished{{
		AgentID: c.snapshot.Agent.ID, CredentialID: c.snapshot.Caller.Credential, RequestID: c.requestID, Key: w.ticket, Hold: w.hold.id(), Release: true}}})
	if err != nil { // it is still tried, for auditPatience
		r.Log.Warn("reservation not given back yet", "request_id", c.requestID, "error", err)
	}
}

// releaseTimeout is how long a caller waits for its reservation to be given
// back.
const releaseTimeout = 2 * time.Second

func (r *Router) reserveOnce(ctx context.Context, q request, rows []byte) (verdict, error) {
	call, err := tool.Marshal(q)
	if err != nil {
		return verdict{}, fmt.Errorf("encode reservation: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	answered, err := postgres.First[struct{ Verdict []byte }](ctx, r.DB, reserveSQL, string(call), string(rows))
	if err != nil {
		return verdict{}, fmt.Errorf("reserve call: %w", err)
	}
	var v verdict
	if err := json.Unmarshal(answered.Verdict, &v); err != nil {
		return verdict{}, fmt.Errorf("read verdict: %w", err)
	}
	return v, nil
}

func (r *Router) request(ctx context.Context, c *call, w wish) (request, []byte, error) {
	deadline, _ := ctx.Deadline()
	rows, err := encodeRows([]auditRow{r.decisionRow(c)})
	return request{
		AgentID: c.snapshot.Agent.ID, CredentialID: c.snapshot.Caller.Credential, RequestID: c.requestID,
		Tool: c.entry.Name, Definition: c.entry.Fingerprint(), Hash: c.hash(),
		Arguments: c.arguments, Shown: shown(r.redactedArguments(c.entry, c.arguments)),
		Ticket: orNil(w.ticket), Because: orNil(w.because), Limited: w.limited, Accepted: w.accepted, Budget: w.hold,
		Deadline:   deadline.Add(auditTimeout).UTC(),
		ApprovalID: newApprovalID(), Life: fmt.Sprintf("%d seconds", int(c.snapshot.Agent.ApprovalLife.Seconds())),
	}, rows, err
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func shown(arguments json.RawMessage) json.RawMessage {
	if arguments == nil {
		return json.RawMessage(`{}`)
	}
	return arguments
}

// newApprovalID is short enough to be typed on a phone; a unique prefix of it
// is accepted too.
func newApprovalID() string { return "a" + strings.ToLower(rand.Text()[:9]) }

// held words a verdict that is not "go", and records it.
func (r *Router) held(ctx context.Context, c *call, v verdict, limit policy.Decision) answer {
	switch v.Verdict {
	case "replay":
		var first tool.Outcome
		if err := json.Unmarshal([]byte(v.Outcome), &first); err != nil || !whole(first) {
			return r.unrecorded(c, fmt.Errorf("read kept outcome: %w", err), true)
		}
		return r.replay(ctx, c, first)
	case "limited":
		if v.Refusal != nil {
			limit = policy.Broke(v.Refusal.Budget, v.Refusal.Wanted)
		}
		return r.refuse(ctx, c, limit)
	case "refused":
		return r.refuse(ctx, c, v.decision)
	case "pending":
		r.sendCard(ctx, v.ID)
	}
	f := heldFault(c, v)
	return r.refuse(ctx, c, policy.Decision{Step: policy.StepApproval, Reason: string(f.Reason), Fault: f})
}

func heldFault(c *call, v verdict) *fault.Fault {
	switch v.Verdict {
	case "pending":
		return fault.New(fault.ApprovalRequired, "%s needs an approval (%s); repeat the same call once it is given, before %s",
			c.entry.Name, v.ID, v.Until.UTC().Format(time.RFC3339)).With("approval_id", v.ID).With("expires_at", v.Until.UTC())
	case "denied":
		text := fmt.Sprintf("%s was not approved (%s)", c.entry.Name, v.ID)
		if v.Reason != "" {
			text += ": " + v.Reason
		}
		return fault.New(fault.Denied, "%s", text).With("approval_id", v.ID)
	case "crowded":
		return fault.New("too_many_pending", "20 approvals of this agent are pending; wait until some are decided")
	case "running":
		return fault.Retry(fault.InProgress, 2*time.Second, "the same call is still running; ask again for its outcome")
	case "conflict":
		return fault.New(fault.Conflict, "this idempotency key was used for another call; use a new key")
	}
	return fault.New(fault.OutcomeUnknown, "the same call was started before and its outcome was lost; look whether the change was made")
}

// replay answers a repeated write with its first outcome.
func (r *Router) replay(ctx context.Context, c *call, out tool.Outcome) answer {
	row := r.row(c, "outcome")
	row.Decision = "allowed"
	row.setOutcome(out)
	row.Outcome = "replayed"
	if err := r.audit.write(ctx, row); err != nil {
		return r.unrecorded(c, err, true)
	}
	return answerOf(out)
}

// maxTicket bounds an idempotency key, in bytes.
const maxTicket = 200

// parseTicket finds what makes a repetition of this call recognisable: the key
// in its _meta, or the id that Claude Code gives every use of a tool. JSON-RPC
// ids do not serve: they restart with each client. A key that cannot be used is
// refused, because whoever sends one relies on it.
func (m *message) parseTicket() *rpcError {
	if m.method != "tools/call" || m.meta == nil || m.meta.Kind() != '{' {
		return nil
	}
	for _, name := range []string{"pawgate/idempotencyKey", "idempotencyKey", "claudecode/toolUseId"} {
		v := member(m.meta, name)
		if v == nil {
			continue
		}
		key, err := text(name, v)
		if err != nil || key == "" || len(key) > maxTicket {
			return rpcErrorf(codeInvalidParams, "_meta %s must be a string of 1 to %d bytes without NUL", name, maxTicket)
		}
		m.ticket = name[strings.LastIndexByte(name, '/')+1:] + ":" + key
		return nil
	}
	return nil
}

// hash is the SHA-256 of the normalised arguments, in hex.
func (c *call) hash() string {
	sum := sha256.Sum256(c.arguments)
	return hex.EncodeToString(sum[:])
}
