package router

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

//go:embed audit.sql
var auditSQL string

const (
	// auditTimeout bounds the record of one call, after the call itself.
	auditTimeout = 5 * time.Second
	// auditBatch is how many rows one statement writes at most.
	auditBatch = 200
	// auditArguments is how many bytes of arguments a row keeps.
	auditArguments = 8 << 10
)

// auditRow is one row of the trail; the names are the columns'.
type auditRow struct {
	ID           uuid.UUID       `json:"id"`
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

func (r *Router) row(c *call, entry *catalog.Entry) auditRow {
	row := auditRow{
		RequestID: c.requestID, Door: c.door, AgentID: c.snapshot.Agent.ID, CredentialID: c.snapshot.Caller.Credential,
		Method: c.message.method, Tool: auditName(c.message), DurationUS: r.Now().Sub(c.started).Microseconds(),
	}
	if entry != nil {
		row.Tool, row.Category = entry.Name, entry.Category
	}
	return row
}

// auditName is the tool's name as it was asked for, cut to what a name can be.
func auditName(m *message) string { return short(policy.BaseName(m.name)) }

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

// auditor writes rows in groups: while one statement is under way, the rows
// that arrive wait for the next. Under load a commit carries many calls; alone,
// a call waits for nobody. A row is acknowledged only after its commit.
type auditor struct {
	db      postgres.DB
	mu      sync.Mutex
	waiting []pendingRow
	writing bool
}

type pendingRow struct {
	row  auditRow
	done chan error
}

func newAuditor(db postgres.DB) *auditor { return &auditor{db: db} }

// write returns nil once the row is safe.
func (a *auditor) write(ctx context.Context, row auditRow) error {
	var err error
	if row.ID, err = uuid.NewV7(); err != nil {
		return fmt.Errorf("make audit id: %w", err)
	}
	p := pendingRow{row: row, done: make(chan error, 1)}
	a.mu.Lock()
	a.waiting = append(a.waiting, p)
	lead := !a.writing
	a.writing = true
	a.mu.Unlock()
	if lead {
		go a.drain() // not on the caller's goroutine: a leader would serve everybody but itself
	}
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for audit row: %w", ctx.Err())
	}
}

// drain writes groups until nobody waits.
func (a *auditor) drain() {
	for {
		a.mu.Lock()
		n := min(len(a.waiting), auditBatch)
		if n == 0 {
			a.writing = false
			a.mu.Unlock()
			return
		}
		group := a.waiting[:n:n]
		a.waiting = a.waiting[n:]
		a.mu.Unlock()
		err := a.insert(group)
		for _, p := range group {
			p.done <- err
		}
	}
}

// insert writes one group. The ids make a repetition harmless, so a lost
// connection is tried once more.
func (a *auditor) insert(group []pendingRow) error {
	rows := make([]auditRow, len(group))
	for i, p := range group {
		rows[i] = p.row
	}
	encoded, err := tool.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode audit rows: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), auditTimeout)
	defer cancel()
	if _, err = a.db.Exec(ctx, auditSQL, string(encoded)); err != nil && postgres.Away(err) {
		_, err = a.db.Exec(ctx, auditSQL, string(encoded))
	}
	if err != nil {
		return errors.Join(fault.New(fault.Unavailable, "audit"), fmt.Errorf("write audit rows: %w", err))
	}
	return nil
}

// redactedArguments is what a row keeps of the arguments: secret ones hidden,
// long ones left out.
func redactedArguments(entry *catalog.Entry, arguments []byte) json.RawMessage {
	if len(arguments) == 0 {
		return nil
	}
	if len(arguments) > auditArguments {
		return json.RawMessage(fmt.Sprintf(`{"omitted_bytes":%d}`, len(arguments)))
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(arguments, &m) != nil {
		return nil
	}
	for _, secret := range entry.Secrets {
		if _, given := m[secret]; given {
			m[secret] = json.RawMessage(`"[secret]"`)
		}
	}
	encoded, err := tool.Marshal(m)
	if err != nil {
		return nil
	}
	return encoded
}
