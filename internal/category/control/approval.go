package control

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed approval_find.sql
var approvalFindSQL string

// Approval is a request that a person decides, with what it came to.
type Approval struct {
	ApprovalID  string          `json:"approval_id"`
	State       string          `json:"state"` // pending, approved, denied, expired, used, cancelled or revoked
	Kind        string          `json:"kind"`  // call, or grant
	AgentID     string          `json:"agent_id"`
	Tool        string          `json:"tool"`
	Arguments   json.RawMessage `json:"arguments"` // without secrets; of a grant: why it is asked for
	Because     string          `json:"because"`   // the list or rule that asks
	TaskID      string          `json:"task_id,omitzero"`
	Reason      string          `json:"reason,omitzero"` // of whoever decided
	CreatedAt   time.Time       `json:"created_at"`
	ExpiresAt   time.Time       `json:"expires_at"`
	DecidedBy   string          `json:"decided_by,omitzero"`
	DecidedAt   *time.Time      `json:"decided_at,omitzero"`
	Covers      json.RawMessage `json:"covers,omitzero"` // arguments that must be equal
	CoversUntil *time.Time      `json:"covers_until,omitzero"`
}

// request is an approval with the credential that asked for it.
type request struct {
	Approval
	Credential string
}

const (
	// minPrefix is how many characters of an id are enough, where they are
	// unique: what one can type on a phone without approving something else.
	minPrefix = 4
	// maxCandidates is how many requests an ambiguous prefix shows.
	maxCandidates = 5
)

// findApproval finds a request by its id or a unique prefix of it. Among
// several the one that is pending is meant. It fails with fault.NotFound, or
// with "ambiguous" and the candidates.
func (c control) findApproval(ctx context.Context, prefix string) (request, error) {
	prefix = strings.ToLower(strings.TrimSpace(prefix))
	if len(prefix) < minPrefix {
		return request{}, fault.Invalid("approval_id", "approval_id must have at least %d characters", minPrefix)
	}
	found, err := postgres.All[request](ctx, c.db, approvalFindSQL, pgx.StrictNamedArgs{"prefix": prefix, "most": maxCandidates})
	switch {
	case err != nil:
		return request{}, fmt.Errorf("find approval: %w", err)
	case len(found) == 0:
		return request{}, fault.New(fault.NotFound, "no approval %s; it may be older than 30 days, or misspelt", short(prefix))
	case len(found) == 1 || found[0].ApprovalID == prefix || found[0].State == "pending" && found[1].State != "pending":
		return found[0], nil
	}
	return request{}, ambiguous(prefix, found)
}

// ambiguous shows what a prefix may mean, so that it can be made longer.
func ambiguous(prefix string, found []request) error {
	var ids []string
	var candidates []map[string]any
	for _, a := range found {
		ids = append(ids, a.ApprovalID)
		candidates = append(candidates, map[string]any{"approval_id": a.ApprovalID, "state": a.State, "agent_id": a.AgentID, "tool": a.Tool})
	}
	return fault.New("ambiguous", "%s may be %s; write more of the id", short(prefix), strings.Join(ids, ", ")).With("candidates", candidates)
}

// short keeps a quoted word readable.
func short(text string) string {
	const most = 64
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
