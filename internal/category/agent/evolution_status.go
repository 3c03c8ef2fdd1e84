package agent

import (
	"cmp"
	"context"
	"encoding/json"

	"pawgate/internal/caller"
	"pawgate/internal/roster"
)

type evolutionArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"You, if left out" maxlen:"64"`
}

type evolutionResult struct {
	AgentID  string         `json:"agent_id"`
	Settings []settingShown `json:"settings"`
	Note     string         `json:"note"`
}

type settingShown struct {
	Field   string          `json:"field"`
	Value   json.RawMessage `json:"value"` // null: nobody has set it
	Allowed string          `json:"allowed"`
}

// evolutionStatus shows the settings of an agent. It fails with fault.NotFound
// for one that the caller may not see.
func (c agent) evolutionStatus(ctx context.Context, who caller.Caller, a evolutionArgs) (evolutionResult, error) {
	t, err := find(ctx, c.db, who, cmp.Or(a.AgentID, who.Agent))
	if err != nil {
		return evolutionResult{}, err
	}
	r := evolutionResult{AgentID: t.AgentID, Note: roster.EvolutionNote}
	for _, s := range roster.Settings {
		value, err := s.Current(t.Evolution)
		if err != nil {
			return evolutionResult{}, err
		}
		r.Settings = append(r.Settings, settingShown{Field: s.Name, Value: value, Allowed: s.Allowed()})
	}
	return r, nil
}
