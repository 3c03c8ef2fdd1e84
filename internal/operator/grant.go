package operator

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed grant_list.sql
	grantListSQL string
	//go:embed grant_revoke.sql
	grantRevokeSQL string
)

type grantListArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only of this agent" maxlen:"64"`
}

type grantLine struct {
	ApprovalID string    `json:"approval_id"`
	Kind       string    `json:"kind"` // grant, or call: an approval that was not used yet
	AgentID    string    `json:"agent_id"`
	Tool       string    `json:"tool"`
	Covers     string    `json:"covers"` // what must be equal: arguments, or nothing
	TaskID     string    `json:"task_id,omitzero"`
	DecidedBy  string    `json:"decided_by"`
	Until      time.Time `json:"until"`
}

type grantListResult struct {
	Grants []grantLine `json:"grants"`
}

func (s *session) grantList(ctx context.Context, _ caller.Caller, a grantListArgs) (grantListResult, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return grantListResult{}, err
	}
	grants, err := s.alive(ctx, a.AgentID, "")
	return grantListResult{Grants: grants}, err
}

// alive are the grants and approvals that still let something pass.
func (s *session) alive(ctx context.Context, agentID, prefix string) ([]grantLine, error) {
	grants, err := postgres.All[grantLine](ctx, s.db, grantListSQL, pgx.StrictNamedArgs{"agent_id": agentID, "prefix": prefix})
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	return grants, nil
}

type grantRevokeArgs struct {
	ApprovalID string `json:"approval_id" doc:"Its id, or the first characters if unique" maxlen:"64"`
	Reason     string `json:"reason,omitempty" doc:"Why, for the record" maxlen:"500"`
}

type grantRevoked struct {
	grantLine
	State   string `json:"state"`
	Changed bool   `json:"changed"`
}

// grantRevoke takes effect with the next call: the gate looks each time.
func (s *session) grantRevoke(ctx context.Context, who caller.Caller, a grantRevokeArgs) (grantRevoked, error) {
	prefix := strings.ToLower(strings.TrimSpace(a.ApprovalID))
	if prefix == "" {
		return grantRevoked{}, fault.Invalid("approval_id", "approval_id must not be empty; pawgate grant list shows those there are")
	}
	found, err := s.alive(ctx, "", prefix)
	if err != nil {
		return grantRevoked{}, err
	}
	var ids []string
	for _, g := range found {
		if ids = append(ids, g.ApprovalID); g.ApprovalID == prefix {
			found, ids = []grantLine{g}, ids[len(ids)-1:]
			break
		}
	}
	switch len(found) {
	case 0:
		return grantRevoked{}, fault.New(fault.NotFound, "no grant or unused approval %s is alive; pawgate grant list shows those that are", short(prefix))
	case 1:
	default:
		return grantRevoked{}, fault.New("ambiguous", "%s may be %s; write more of the id", short(prefix), strings.Join(ids, ", "))
	}
	s.about = found[0].AgentID
	reason := strings.TrimSuffix("revoked by "+who.Credential+": "+strings.TrimSpace(a.Reason), ": ")
	changed, err := postgres.Exec(ctx, s.db, grantRevokeSQL, pgx.StrictNamedArgs{"id": ids[0], "reason": reason})
	if err != nil {
		return grantRevoked{}, fmt.Errorf("revoke grant: %w", err)
	}
	if changed == 0 { // used or revoked at this very moment
		return grantRevoked{}, fault.New(fault.Conflict, "%s is not alive any more", ids[0])
	}
	return grantRevoked{grantLine: found[0], State: "revoked", Changed: true}, nil
}
