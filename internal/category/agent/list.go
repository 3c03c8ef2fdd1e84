package agent

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/postgres"
)

//go:embed list.sql
var listSQL string

// defaultPage is how many agents an answer holds unless told otherwise.
const defaultPage = 100

type listArgs struct {
	IncludeArchived bool   `json:"include_archived,omitempty" doc:"Show archived agents too"`
	Limit           int    `json:"limit,omitempty" doc:"100 if left out" min:"1" max:"500"`
	Cursor          string `json:"cursor,omitempty" doc:"-" maxlen:"64"`
}

type listed struct {
	AgentID     string `json:"agent_id"`
	DisplayName string `json:"display_name"`
	Role        string `json:"role"`
	State       string `json:"state"`
	Stopped     bool   `json:"stopped"` // an emergency stop covers it
	ReportsTo   string `json:"reports_to,omitzero"`
	Model       string `json:"model,omitzero"`
	Icon        string `json:"icon,omitzero"`
	Trigger     string `json:"trigger,omitzero"`
}

type listResult struct {
	Agents     []listed `json:"agents"`
	NextCursor string   `json:"next_cursor,omitzero"`
}

// list shows the agents that the caller may see, by id.
func (c agent) list(ctx context.Context, who caller.Caller, a listArgs) (listResult, error) {
	limit := cmp.Or(a.Limit, defaultPage)
	agents, err := postgres.All[listed](ctx, c.db, listSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "operator": who.Operator(), "archived": a.IncludeArchived,
		"after": a.Cursor, "limit": limit + 1, // one more tells whether there is another page
	})
	if err != nil {
		return listResult{}, fmt.Errorf("list agents: %w", err)
	}
	if len(agents) <= limit {
		return listResult{Agents: agents}, nil
	}
	return listResult{Agents: agents[:limit], NextCursor: agents[limit-1].AgentID}, nil
}
