package operator

import (
	"context"
	"encoding/json"
	"fmt"

	"pawgate/internal/agentfile"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/roster"
)

type exportArgs struct {
	AgentID string `json:"agent_id" doc:"Which agent" maxlen:"64"`
	// The answer has both; on the command line it says which is printed.
	Soul bool `json:"soul,omitempty" doc:"Print its SOUL.md instead of its agent.toml"`
}

type exportResult struct {
	AgentID string   `json:"agent_id"`
	Source  string   `json:"source"` // agent.toml
	Soul    string   `json:"soul"`   // SOUL.md; empty: it has none
	Notes   []string `json:"notes"`
}

// agentExport gives the files that an import of would make the same agent: the
// imported text, byte for byte where nothing has changed since.
func (s *session) agentExport(ctx context.Context, _ caller.Caller, a exportArgs) (exportResult, error) {
	row, err := s.read(ctx, a.AgentID)
	if err != nil {
		return exportResult{}, err
	}
	r := exportResult{AgentID: row.AgentID, Notes: []string{}}
	soul, err := roster.ReadSoul(ctx, s.db, a.AgentID, 0)
	if f, ok := fault.Of(err); err != nil && (!ok || f.Reason != fault.NotFound || a.Soul) {
		return exportResult{}, err
	}
	r.Soul = soul.Content
	now, err := row.asFile()
	if err != nil {
		return exportResult{}, err
	}
	var lost []string
	r.Source, lost = agentfile.Export(now)
	for _, key := range lost {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: agent.toml cannot say what holds now; see pawgate agent show", key))
	}
	return r, nil
}

// asFile is the agent in the words of its file.
func (a stored) asFile() (agentfile.Agent, error) {
	rules, err := a.rules()
	if err != nil {
		return agentfile.Agent{}, err
	}
	f := agentfile.Agent{ID: a.AgentID, DisplayName: a.DisplayName, Role: a.Role, State: a.State, Model: a.Model, ReportsTo: a.ReportsTo,
		Icon: a.Icon, Trigger: a.Trigger, Allowed: a.AllowedTools, Denied: a.DeniedTools, ApprovalRequired: a.ApprovalRequiredTools,
		Scoped: a.ScopedTools, Rules: rules, Source: a.Source, FallbackModel: a.FallbackModel, APIMode: a.APIMode,
		HeartbeatCron: a.HeartbeatCron, HeartbeatEnabled: a.HeartbeatEnabled, BudgetCents: a.BudgetCents, MaxConcurrent: a.MaxConcurrent,
		Evolution: map[string]string{}}
	var set map[string]any
	if err := json.Unmarshal([]byte(a.Evolution), &set); err != nil {
		return agentfile.Agent{}, fmt.Errorf("read evolution of agent %s: %w", a.AgentID, err)
	}
	for name, value := range set {
		f.Evolution[name] = fmt.Sprint(value)
	}
	return f, nil
}
