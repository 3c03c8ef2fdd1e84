package control

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

var (
	//go:embed capability_request.sql
	capabilitySQL string
	//go:embed capability_lock.sql
	capabilityLockSQL string
)

type capabilityArgs struct {
	Tool   string `json:"tool" doc:"-"`
	Reason string `json:"reason" doc:"-" maxlen:"500"`
	TaskID string `json:"task_id,omitempty" doc:"The task it is for" maxlen:"100"`
}

// Validate asks for a reason.
func (a capabilityArgs) Validate() error {
	if strings.TrimSpace(a.Reason) == "" {
		return fault.Invalid("reason", "reason must say what the tool is needed for; a person decides by it")
	}
	return nil
}

type capabilityResult struct {
	Tool       string    `json:"tool"`
	State      string    `json:"state"` // pending, or granted
	ApprovalID string    `json:"approval_id"`
	Until      time.Time `json:"until"`   // when the request, or the grant, ends
	Changed    bool      `json:"changed"` // false: it was asked for before
	Note       string    `json:"note"`
}

// capabilityRequest files a request for a grant and does not wait for it. It
// fails with fault.NotFound for a tool that the caller may not call anyway,
// with fault.Conflict for one that needs no grant, and with
// fault.NotConfigured when nobody may give one.
func (c control) capabilityRequest(ctx context.Context, who caller.Caller, a capabilityArgs) (capabilityResult, error) {
	tools, err := c.Catalog()
	if err != nil {
		return capabilityResult{}, err
	}
	name := policy.BaseName(strings.TrimSpace(a.Tool))
	entry := tools.Find(name)
	if entry == nil {
		return capabilityResult{}, unknownTool(name)
	}
	s, err := c.peek(ctx, who, entry)
	if err != nil {
		return capabilityResult{}, err
	}
	if d := policy.Listed(s, entry.Tool); d.Hidden() {
		return capabilityResult{}, unknownTool(name)
	} else if !d.Allowed {
		return capabilityResult{}, d.Fault
	}
	i := slices.IndexFunc(s.Agent.Scoped, func(pattern string) bool { return policy.Matches(pattern, name) })
	switch {
	case i < 0:
		return capabilityResult{}, fault.New(fault.Conflict, "%s needs no grant; call it", name)
	case s.Agent.Approver == policy.ByNobody:
		return capabilityResult{}, fault.New(fault.NotConfigured,
			"%s needs a grant and nobody may give it; an operator sets the approver: pawgate agent set %s --approver operator", name, who.Agent)
	}
	shown, err := tool.Marshal(map[string]string{"reason": strings.TrimSpace(a.Reason)})
	if err != nil {
		return capabilityResult{}, fmt.Errorf("encode reason: %w", err)
	}
	return c.fileRequest(ctx, pgx.StrictNamedArgs{
		"id": "g" + strings.ToLower(rand.Text()[:9]), "agent": who.Agent, "credential": who.Credential, "tool": name,
		"definition": entry.Fingerprint(), "shown": string(shown), "because": fmt.Sprintf("scoped_tools has %q", s.Agent.Scoped[i]),
		"task": a.TaskID, "request": who.RequestID, "life": s.Agent.ApprovalLife.Seconds(),
	})
}

// maxPending is how many requests of an agent may wait, as in the gate.
const maxPending = 20

// fileRequest writes the request, unless one is pending or a grant is alive.
func (c control) fileRequest(ctx context.Context, args pgx.StrictNamedArgs) (capabilityResult, error) {
	var out struct {
		ID, State string
		Until     time.Time
		Made      bool
		Pending   int
	}
	args["most"] = maxPending
	err := postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		// Two requests at once: the second one sees the first.
		if _, err := postgres.Exec(ctx, tx, capabilityLockSQL, pgx.StrictNamedArgs{"agent": args["agent"], "tool": args["tool"]}); err != nil {
			return err
		}
		var raw []byte
		if err := tx.QueryRow(ctx, capabilitySQL, args).Scan(&raw); err != nil {
			return err
		}
		return json.Unmarshal(raw, &out)
	})
	switch {
	case err != nil:
		return capabilityResult{}, fmt.Errorf("file request: %w", err)
	case out.ID == "":
		return capabilityResult{}, fault.New("too_many_pending", "%d approvals of this agent are pending; wait until some are decided", out.Pending)
	}
	r := capabilityResult{Tool: fmt.Sprint(args["tool"]), State: out.State, ApprovalID: out.ID, Until: out.Until, Changed: out.Made}
	r.Note = "a person decides; go on with other work and call the tool again later"
	if r.State == "granted" {
		r.Note = "the grant is alive; call the tool"
	}
	return r, nil
}

// unknownTool is one answer for every tool that the caller may not call.
func unknownTool(name string) error {
	return fault.New(fault.NotFound, "unknown tool: %s", short(name))
}
