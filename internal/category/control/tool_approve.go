package control

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

//go:embed tool_approve.sql
var approveSQL string

type approveArgs struct {
	ApprovalID string   `json:"approval_id" doc:"Its id, or a unique beginning"`
	Decision   string   `json:"decision" doc:"show only looks" enum:"approve,deny,show"`
	Reason     string   `json:"reason,omitempty" doc:"The agent is told" maxlen:"500"`
	ForMinutes int      `json:"for_minutes,omitempty" doc:"Approve such calls, not one" min:"1" max:"60"`
	Same       []string `json:"same,omitempty" doc:"Arguments that must stay equal then"`
}

type approveResult struct {
	Approval
	Changed bool   `json:"changed"` // false: it was decided so before
	Note    string `json:"note,omitzero"`
}

// toolApprove decides a request, once. It fails with fault.Denied for a caller
// who may not, with "self_approval" for the agent that asked, with "expired"
// by the database's clock, and with fault.Conflict when it was decided
// otherwise. The same decision again is no error.
func (c control) toolApprove(ctx context.Context, who caller.Caller, a approveArgs) (approveResult, error) {
	if !who.HasScope(caller.ScopeApprove) && !who.Operator() {
		return approveResult{}, fault.New(fault.Denied, "only a credential with the scope approve or operator can decide; ask a person to")
	}
	asked, err := c.findApproval(ctx, a.ApprovalID)
	if err != nil || a.Decision == "show" {
		return approveResult{Approval: asked.Approval}, err
	}
	if who.Agent == asked.AgentID || who.Credential == asked.Credential {
		return approveResult{}, fault.New("self_approval", "agent %s asked for this itself, so another must decide", asked.AgentID)
	}
	covers, err := c.coverage(asked.Approval, a)
	if err != nil {
		return approveResult{}, err
	}
	state := map[string]string{"approve": "approved", "deny": "denied"}[a.Decision]
	decided, err := postgres.All[struct{ ID string }](ctx, c.db, approveSQL, pgx.StrictNamedArgs{
		"id": asked.ApprovalID, "state": state, "reason": strings.TrimSpace(a.Reason), "by": author(who),
		"covers": orNull(covers), "minutes": a.ForMinutes,
	})
	if err != nil {
		return approveResult{}, fmt.Errorf("decide approval: %w", err)
	}
	now, err := c.findApproval(ctx, asked.ApprovalID)
	if err != nil {
		return approveResult{}, err
	}
	if len(decided) == 0 {
		return settled(now.Approval, state, covers)
	}
	return approveResult{Approval: now.Approval, Changed: true, Note: now.next()}, nil
}

// coverage is what a durable approval covers: the arguments that must stay
// equal, as a JSON object, or nil for an approval of one call.
func (c control) coverage(asked Approval, a approveArgs) (json.RawMessage, error) {
	switch {
	case a.Decision != "approve" && (a.ForMinutes > 0 || a.Same != nil):
		return nil, fault.Invalid("for_minutes", "for_minutes and same are for approving; a denial stands until the request expires")
	case asked.Kind == "grant" && a.Same != nil:
		return nil, fault.Invalid("same", "a grant is for the whole tool, whatever its arguments; leave same out")
	case asked.Kind == "grant" || a.ForMinutes == 0 && a.Same == nil:
		return nil, nil
	case a.ForMinutes == 0:
		return nil, fault.Invalid("for_minutes", "same needs for_minutes: how long such calls need no further approval")
	case a.Same == nil:
		return nil, fault.Invalid("same", "for_minutes needs same: the arguments that must stay equal, or [] if any arguments may pass")
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(asked.Arguments, &given); err != nil {
		return nil, fmt.Errorf("read arguments of approval: %w", err)
	}
	tools, err := c.Catalog()
	if err != nil {
		return nil, err
	}
	covers := map[string]json.RawMessage{}
	for _, name := range a.Same {
		value, ok := given[name]
		entry := tools.Find(asked.Tool)
		switch {
		case entry != nil && slices.Contains(entry.Secrets, name):
			return nil, fault.Invalid("same", "%s is secret and not kept, so it cannot be compared", short(name))
		case !ok:
			return nil, fault.Invalid("same", "the call has no argument %s; decision show tells those that it has", short(name))
		}
		covers[name] = value
	}
	return tool.Marshal(covers)
}

// settled answers whoever comes too late: alike when the decision was the
// same, else with what it was.
func settled(now Approval, wanted string, covers json.RawMessage) (approveResult, error) {
	switch {
	case now.State == "expired":
		return approveResult{}, fault.New("expired", "approval %s ran out at %s; the agent must ask again", now.ApprovalID, now.ExpiresAt.UTC().Format(time.RFC3339))
	case (now.State == wanted || now.State == "used" && wanted == "approved") && sameObject(covers, now.Covers):
		return approveResult{Approval: now, Note: "was decided so before"}, nil
	}
	by := ""
	if now.DecidedBy != "" {
		by = " by " + now.DecidedBy
	}
	return approveResult{}, fault.New(fault.Conflict, "approval %s is %s already%s; it cannot be decided again", now.ApprovalID, now.State, by).
		With("state", now.State)
}

// sameObject compares two JSON objects, whatever their notation.
func sameObject(a, b json.RawMessage) bool {
	var x, y map[string]any
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || len(b) > 0 && json.Unmarshal(b, &y) != nil {
		return false
	}
	left, err := json.Marshal(x)
	if err != nil {
		return false
	}
	right, err := json.Marshal(y)
	return err == nil && bytes.Equal(left, right)
}

// next says what happens after a decision.
func (a Approval) next() string {
	switch {
	case a.State == "denied":
		return "the agent is told so when it repeats the call"
	case a.Kind == "grant":
		return fmt.Sprintf("%s may be called until covers_until", a.Tool)
	case a.CoversUntil != nil:
		return "such calls need no approval until covers_until"
	}
	return "the agent must repeat the same call before expires_at; it runs once"
}

// orNull is a jsonb parameter that may be absent.
func orNull(raw json.RawMessage) *string {
	if raw == nil {
		return nil
	}
	text := string(raw)
	return &text
}
