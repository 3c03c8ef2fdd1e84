package router

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"pawgate/internal/batch"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
	"pawgate/internal/usage"
)

//go:embed settle.sql
var settleSQL string

const (
	// auditTimeout is how long an answer waits for its record, after the call.
	auditTimeout = 5 * time.Second
	// auditPatience is how long a record is tried, auditPause the time between
	// two tries while the database is away.
	auditPatience = 30 * time.Second
	auditPause    = 100 * time.Millisecond
	// auditBatch is how many records one statement writes at most.
	auditBatch = 100
	// auditArguments is how many bytes of arguments a row keeps.
	auditArguments = 8 << 10
	// maxKept is the largest outcome, in bytes, that a repeated write can be
	// given again.
	maxKept = 256 << 10
)

// auditRow is one row of the trail; the names are the columns'. Its place in
// the chain is found by audit_append.
type auditRow struct {
	ID           uuid.UUID       `json:"id"`
	Kind         string          `json:"kind"` // decision or outcome
	RequestID    string          `json:"request_id"`
	Door         string          `json:"door"`
	AgentID      string          `json:"agent_id"`
	CredentialID string          `json:"credential_id"`
	Method       string          `json:"method"`
	Tool         string          `json:"tool"`
	Category     string          `json:"category"`
	Decision     string          `json:"decision"`
	Reason       string          `json:"reason"`
	Outcome      string          `json:"outcome"`
	Arguments    json.RawMessage `json:"arguments,omitempty"`
	DurationUS   int64           `json:"duration_us"`
}

func (r *Router) row(c *call, kind string) auditRow {
	row := auditRow{
		Kind: kind, RequestID: c.requestID, Door: c.door, AgentID: c.snapshot.Agent.ID, CredentialID: c.snapshot.Caller.Credential,
		Method: r.named(c.message.method), Tool: r.named(c.name), DurationUS: r.Now().Sub(c.started).Microseconds(),
	}
	if c.entry != nil {
		row.Category = c.entry.Category
		row.Arguments = r.redactedArguments(c.entry, c.arguments)
	}
	return row
}

// named is a name that the client chose, as a row keeps it: hidden before it is
// cut, because half a secret is not recognised.
func (r *Router) named(s string) string { return short(r.redact.String(s)) }

// decisionRow says that the gate let a call pass.
func (r *Router) decisionRow(c *call) auditRow {
	row := r.row(c, "decision")
	row.Decision = "allowed"
	return row
}

func (row *auditRow) setOutcome(out tool.Outcome) {
	switch {
	case out.Invalid != nil:
		row.Outcome, row.Reason = "invalid", out.Invalid.Parameter
	case out.Fault != nil:
		row.Outcome, row.Reason = "fault", string(out.Fault.Reason)
	default:
		row.Outcome = "ok"
	}
	row.Reason = short(row.Reason)
}

// finished ends what a reservation holds; the names are gate_settle's.
type finished struct {
	AgentID      string `json:"agent_id"`
	CredentialID string `json:"credential_id"`
	RequestID    string `json:"request_id"` // what another request holds is not touched
	Key          string `json:"key"`
	ApprovalID   string `json:"approval_id"`
	Outcome      string `json:"outcome"` // as text, to be given again byte for byte
	// Release says that nothing was done, so the key is free again and the
	// approval good for another attempt.
	Release bool `json:"release"`
	// Hold is the money to let go, Usage what the call cost.
	Hold  string     `json:"hold,omitempty"`
	Usage *usage.Row `json:"usage,omitempty"`
}

func (held reservation) finish(c *call, out tool.Outcome) (finished, error) {
	if len(out.OK) > maxKept {
		out = tool.Outcome{OK: fmt.Appendf(nil, `{"note":"done before; its result of %d bytes is not kept"}`, len(out.OK))}
	}
	if f := out.Fault; f != nil && f.Reason == fault.OutcomeUnknown {
		final := *f
		final.RetryAfter = 0 // to ask again under this key tells nothing new
		out.Fault = &final
	}
	encoded, err := tool.Marshal(out)
	if err != nil {
		return finished{}, fmt.Errorf("encode outcome: %w", err)
	}
	return finished{AgentID: c.snapshot.Agent.ID, CredentialID: c.snapshot.Caller.Credential, RequestID: c.requestID,
		Key: held.ticket, ApprovalID: held.approval, Outcome: string(encoded), Release: nothingDone(out),
		Hold: held.hold, Usage: c.cost(out)}, nil
}

// nothingDone reports whether a fault says that the call never ran.
func nothingDone(out tool.Outcome) bool {
	if out.Fault == nil {
		return false
	}
	switch out.Fault.Reason {
	case fault.Unavailable, fault.SidecarUnreachable, fault.NotConfigured, fault.RateLimited:
		return true
	}
	return false
}

// record is everything that one call leaves behind.
type record struct {
	rows     []auditRow
	finished []finished
}

// auditor keeps records. Those of calls that end at the same time share a
// commit; a record is acknowledged only after it.
type auditor struct {
	db    postgres.DB
	queue batch.Queue[record, error]
}

func newAuditor(db postgres.DB) *auditor {
	a := &auditor{db: db}
	a.queue = batch.Queue[record, error]{Run: a.insert, Most: auditBatch, Workers: 1, Timeout: auditPatience}
	return a
}

// write keeps a single row.
func (a *auditor) write(ctx context.Context, row auditRow) error {
	return a.keep(ctx, record{rows: []auditRow{row}})
}

// keep returns nil once the record is safe. Its caller waits for auditTimeout
// and no longer; the record is tried for longer than that, so that one whose
// answer was withheld is still found in the trail and under its key.
func (a *auditor) keep(ctx context.Context, r record) error {
	if err := identify(r.rows); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	own, err := a.queue.Do(ctx, r)
	return cmp.Or(own, err)
}

// identify gives rows the ids by which a repetition is recognised.
func identify(rows []auditRow) error {
	for i := range rows {
		id, err := uuid.NewV7()
		if err != nil {
			return fmt.Errorf("make audit id: %w", err)
		}
		rows[i].ID = id
	}
	return nil
}

// encodeRows renders rows for audit_append.
func encodeRows(rows []auditRow) ([]byte, error) {
	if err := identify(rows); err != nil {
		return nil, err
	}
	encoded, err := tool.Marshal(rows)
	if err != nil {
		return nil, fmt.Errorf("encode audit rows: %w", err)
	}
	return encoded, nil
}

// insert writes one group. A record that the database refuses for its content
// must not take the others with it, so then each is written alone.
func (a *auditor) insert(ctx context.Context, group []record) ([]error, error) {
	out := make([]error, len(group))
	err := a.settle(ctx, group)
	if err == nil || !postgres.BadData(err) {
		return out, err
	}
	for i, r := range group {
		out[i] = a.settle(ctx, []record{r})
	}
	return out, nil
}

// settle writes records in one statement. Ids make a repetition harmless, so
// while the database is away it is tried again.
func (a *auditor) settle(ctx context.Context, group []record) error {
	rows, ended := []auditRow{}, []finished{}
	for _, r := range group {
		rows, ended = append(rows, r.rows...), append(ended, r.finished...)
	}
	encodedRows, err := tool.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode audit rows: %w", err)
	}
	encodedEnded, err := tool.Marshal(ended)
	if err != nil {
		return fmt.Errorf("encode outcomes: %w", err)
	}
	for again := false; ; again = true {
		err := a.attempt(ctx, string(encodedRows), string(encodedEnded), again)
		if err == nil {
			return nil
		}
		if late := errors.Is(err, context.DeadlineExceeded); late || postgres.Away(err) {
			select {
			case <-time.After(auditPause):
				continue
			case <-ctx.Done():
			}
		}
		return fmt.Errorf("write audit rows: %w", err)
	}
}

// attempt is one try, which a database that hangs does not keep.
func (a *auditor) attempt(ctx context.Context, rows, ended string, again bool) error {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	_, err := a.db.Exec(ctx, settleSQL, rows, ended, again)
	return err
}

// redactedArguments is what rows keep of the arguments and what people decide
// on: secret ones and known forms of secrets hidden, and of long texts the
// beginning and the end, so that padding hides nothing.
func (r *Router) redactedArguments(entry *catalog.Entry, arguments []byte) json.RawMessage {
	if len(arguments) == 0 {
		return nil
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(arguments, &m) != nil {
		return nil
	}
	long := len(arguments) > auditArguments
	for name, value := range m {
		switch {
		case slices.Contains(entry.Secrets, name):
			m[name] = json.RawMessage(`"[secret]"`)
		case long: // hidden before it is cut
			m[name] = abridged(r.redact.Bytes(value))
		}
	}
	encoded, err := tool.Marshal(m)
	if err != nil {
		return nil
	}
	return r.redact.Bytes(encoded)
}

// ends is how many bytes of a long value are kept at each end.
const ends = 300

// abridged is a long value as a text: its beginning, how much is left out and
// the hash of the whole, its end. White space is folded first.
func abridged(value json.RawMessage) json.RawMessage {
	folded := strings.Join(strings.Fields(strings.NewReplacer(`\n`, " ", `\t`, " ").Replace(string(value))), " ")
	if len(folded) <= 2*ends+100 {
		if len(folded) == len(value) {
			return value
		}
	} else {
		folded = strings.ToValidUTF8(folded[:ends], "") + " … " + strings.ToValidUTF8(folded[len(folded)-ends:], "")
	}
	sum := sha256.Sum256(value)
	quoted, err := tool.Marshal(fmt.Sprintf("%s [abridged: %d bytes, sha256 %x]", folded, len(value), sum[:8]))
	if err != nil {
		return json.RawMessage(`"[abridged]"`)
	}
	return quoted
}
