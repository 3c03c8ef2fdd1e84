package memory

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed share.sql
var shareSQL string

// sharedArgs let a tool read the memories that an operator shared with the
// caller. The tools that search, read and tell facts have them; the others are
// about the agent itself.
type sharedArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"-" maxlen:"64"`
}

// view is what a call may see: one agent's memories, all of them or those
// with one of some tags. Every statement that reads for an answer takes both.
type view struct {
	agent string
	tags  []int64 // as numbers (index.go); none: all
}

// own is what an agent sees without being granted anything.
func own(agent string) view { return view{agent: agent, tags: []int64{}} }

func (v view) named() pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"agent": v.agent, "shared": v.tags}
}

const notShared fault.Reason = "not_shared"

// view is what the caller may see of the agent it names. It is looked up for
// each call, so a share that is taken back ends at once. An agent that does
// not exist and one that shares nothing are the same to the caller.
func (m memory) view(ctx context.Context, who caller.Caller, a sharedArgs) (view, error) {
	if a.AgentID == "" || a.AgentID == who.Agent {
		return own(who.Agent), nil
	}
	shares, err := postgres.All[struct {
		OwnerID string
		Tags    []string
	}](ctx, m.db, shareSQL, pgx.StrictNamedArgs{"agent": who.Agent, "now": m.now()})
	if err != nil {
		return view{}, fmt.Errorf("read memory shares: %w", err)
	}
	var owners []string
	for _, s := range shares {
		if s.OwnerID == a.AgentID {
			return view{agent: s.OwnerID, tags: tagNumbers(s.OwnerID, s.Tags)}, nil
		}
		owners = append(owners, s.OwnerID)
	}
	if len(owners) > 0 {
		return view{}, fault.New(notShared, "agent %s shares no memories with this agent; these do: %s", a.AgentID, strings.Join(owners, ", "))
	}
	return view{}, fault.New(notShared, "agent %s shares no memories with this agent; an operator can grant it (pawgate memory share)", a.AgentID)
}

func tagNumbers(agent string, tags []string) []int64 {
	all := make([]int64, len(tags))
	for i, tag := range tags {
		all[i] = number(agent, tagTerm(tag))
	}
	return all
}
