package operator

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed audit_verify.sql
	auditVerifySQL string
	//go:embed audit_count.sql
	auditCountSQL string
	//go:embed audit_prune.sql
	auditPruneSQL string
)

type auditVerifyArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only the chain of this agent" maxlen:"64"`
}

// maxBroken is how many broken places an answer shows.
const maxBroken = 1000

type auditVerifyResult struct {
	Chains int `json:"chains"`
	Rows   int `json:"rows"`
	// Broken has the first places that are wrong; none means that no row was
	// edited, removed or reordered since it was written.
	Broken []brokenPlace `json:"broken"`
}

type brokenPlace struct {
	AgentID string `json:"agent_id"` // empty: refused logins
	Seq     int64  `json:"seq"`
	Problem string `json:"problem"`
}

// auditVerify recomputes every hash, which takes about a second for a hundred
// thousand rows.
func (s *session) auditVerify(ctx context.Context, _ caller.Caller, a auditVerifyArgs) (auditVerifyResult, error) {
	s.about = a.AgentID
	r, err := postgres.One[auditVerifyResult](ctx, s.db, auditCountSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID})
	if err != nil {
		return r, fmt.Errorf("count audit rows: %w", err)
	}
	if r.Rows == 0 && a.AgentID != "" { // to say that all of nothing is well would hide a typo
		return r, fault.New(fault.NotFound, "the audit trail has no row of agent %s; pawgate agent list shows the agents", short(a.AgentID))
	}
	r.Broken, err = postgres.All[brokenPlace](ctx, s.db, auditVerifySQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "most": maxBroken})
	if err != nil {
		return r, fmt.Errorf("verify audit trail: %w", err)
	}
	return r, nil
}

type auditPruneArgs struct {
	Before string `json:"before" doc:"Drop the months that lie wholly before this: 2026-01-01, or 365d for so long ago" maxlen:"40"`
}

type auditPruneResult struct {
	Before  string   `json:"before"`
	Dropped []string `json:"dropped"` // partitions, one a month
	Note    string   `json:"note,omitzero"`
}

// auditPrune drops whole months. A day of the month that goes on keeps the
// whole month.
func (s *session) auditPrune(ctx context.Context, _ caller.Caller, a auditPruneArgs) (auditPruneResult, error) {
	before, err := moment("before", a.Before, s.Now(), -1)
	if err != nil {
		return auditPruneResult{}, err
	}
	if before.After(s.Now()) {
		return auditPruneResult{}, fault.Invalid("before", "before lies in the future; rows that are still to come cannot be dropped")
	}
	r := auditPruneResult{Before: before.UTC().Format(time.DateOnly), Dropped: []string{}}
	dropped, err := postgres.All[struct{ Name string }](ctx, s.db, auditPruneSQL, pgx.StrictNamedArgs{"before": r.Before})
	if err != nil {
		return auditPruneResult{}, fmt.Errorf("prune audit trail: %w", err)
	}
	for _, d := range dropped {
		r.Dropped = append(r.Dropped, d.Name)
	}
	if len(r.Dropped) == 0 {
		r.Note = "no month lies wholly before that day"
	}
	return r, nil
}
