package cost

import (
	"context"

	"pawgate/internal/caller"
	"pawgate/internal/usage"
)

type usersArgs struct {
	windowArgs
	AgentID string `json:"agent_id,omitempty" doc:"-" maxlen:"64"`
}

type usersResult struct {
	Window window     `json:"window"`
	Note   string     `json:"note,omitzero"`
	Users  []userLine `json:"users"`
	More   int        `json:"more"` // users left out
}

type userLine struct {
	UserID *string `json:"user_id"` // nil: no user, as of a schedule
	sums
}

func (c cost) users(ctx context.Context, who caller.Caller, a usersArgs) (usersResult, error) {
	w, lines, more, err := c.ranked(ctx, who, a.windowArgs, a.AgentID, usage.ByUser)
	if err != nil {
		return usersResult{}, err
	}
	r := usersResult{Window: w, Note: note(total(lines)), Users: []userLine{}, More: more}
	for _, l := range lines {
		u := userLine{sums: sumsOf(l)}
		if l.Key != "" {
			u.UserID = &l.Key
		}
		r.Users = append(r.Users, u)
	}
	return r, nil
}
