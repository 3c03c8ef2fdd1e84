package operator

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/agentfile"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/roster"
)

//go:embed agent_evolution.sql
var agentEvolutionSQL string

type importArgs struct {
	Source  string `json:"source" doc:"The text of the agent.toml"`
	Soul    string `json:"soul,omitempty" doc:"The text of its SOUL.md; if left out, of the one beside agent.toml"`
	Replace bool   `json:"replace,omitempty" doc:"Replace the agent of that name, its lists too"`
}

type importResult struct {
	agentRow
	Rules   []string         `json:"rules"`
	Created bool             `json:"created"`
	Notes   []agentfile.Note `json:"notes"`
	// SoulVersion is the version that its persona has now; 0: it has none.
	SoulVersion int `json:"soul_version"`
}

// agentImport makes an agent from a file. It fails with missing_superior when
// the agent above it is not there yet.
func (s *session) agentImport(ctx context.Context, _ caller.Caller, a importArgs) (importResult, error) {
	parsed, err := agentfile.Parse(a.Source)
	if err != nil {
		return importResult{}, err
	}
	if err := s.lock(ctx); err != nil {
		return importResult{}, err
	}
	before, err := s.read(ctx, parsed.ID)
	exists := err == nil
	if f, ok := fault.Of(err); !exists && (!ok || f.Reason != fault.NotFound) {
		return importResult{}, err
	}
	if exists && !a.Replace {
		return importResult{}, fault.New(fault.Conflict, "agent %s exists; import with --replace to overwrite it and its lists", parsed.ID)
	}
	if !exists {
		if err := s.checkAgentLimit(ctx); err != nil {
			return importResult{}, err
		}
		before = blank()
		before.State = parsed.State // a new one neither comes back from the archive nor goes there
	}
	after, err := s.imported(before, parsed)
	if err != nil {
		return importResult{}, err
	}
	row, err := s.replace(ctx, before, after)
	if err != nil {
		return importResult{}, err
	}
	notes, err := s.importEvolution(ctx, parsed)
	if err != nil {
		return importResult{}, err
	}
	r := importResult{agentRow: row, Rules: sentences(parsed.Rules), Created: !exists, Notes: append(s.unknownTools(parsed), notes...)}
	r.SoulVersion, err = s.importSoul(ctx, parsed.ID, a.Soul)
	return r, err
}

// importSoul adds the text as a version, and gives the version that holds.
func (s *session) importSoul(ctx context.Context, agentID, text string) (int, error) {
	if text == "" {
		soul, err := roster.ReadSoul(ctx, s.db, agentID, 0)
		if f, ok := fault.Of(err); ok && f.Reason == fault.NotFound {
			return 0, nil
		}
		return soul.Version, err
	}
	if err := roster.CheckSoul("soul", text); err != nil {
		return 0, err
	}
	done, err := roster.WriteSoul(ctx, s.db, roster.SoulChange{AgentID: agentID, Content: text, Note: "imported", By: s.By, Now: s.Now()})
	return done.After.Version, err
}

// importEvolution takes over the settings that evolution_toggle could set.
func (s *session) importEvolution(ctx context.Context, parsed agentfile.Agent) ([]agentfile.Note, error) {
	values := map[string]json.RawMessage{}
	var notes []agentfile.Note
	for _, setting := range roster.Settings {
		word, said := parsed.Evolution[setting.Name]
		if !said {
			continue
		}
		value, err := setting.Read(word)
		if err != nil {
			notes = append(notes, agentfile.Note{Key: "evolution." + setting.Name, Text: "is not " + setting.Allowed() + "; kept in the stored text only"})
			continue
		}
		values[setting.Name] = value
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encode evolution: %w", err)
	}
	_, err = postgres.Exec(ctx, s.db, agentEvolutionSQL, pgx.StrictNamedArgs{"agent_id": parsed.ID, "evolution": string(encoded)})
	if err != nil {
		return nil, fmt.Errorf("write evolution: %w", err)
	}
	return notes, nil
}

// imported is the agent as the file has it. Who approves, how long and how
// often is not in such a file, so that stays. A rule that could not work is
// refused, with the file: dropping it could let more pass than the file says.
func (s *session) imported(before stored, parsed agentfile.Agent) (stored, error) {
	if err := s.checkRules(parsed.Rules); err != nil {
		return stored{}, fault.Invalid("source", "agent.toml: capabilities.policy: %s; change the rule, or remove it and deny its tool; nothing was imported", err.Error())
	}
	a := before
	a.AgentID, a.DisplayName, a.Role, a.State = parsed.ID, parsed.DisplayName, parsed.Role, parsed.State
	a.Model, a.ReportsTo, a.Icon, a.Trigger = parsed.Model, parsed.ReportsTo, parsed.Icon, parsed.Trigger
	a.FallbackModel, a.APIMode, a.BudgetCents, a.MaxConcurrent = parsed.FallbackModel, parsed.APIMode, parsed.BudgetCents, parsed.MaxConcurrent
	a.SoftBudget = parsed.SoftBudget
	a.HeartbeatEnabled, a.HeartbeatCron = parsed.HeartbeatEnabled, parsed.HeartbeatCron
	a.AllowedTools, a.DeniedTools = parsed.Allowed, parsed.Denied
	a.ApprovalRequiredTools, a.ScopedTools = parsed.ApprovalRequired, parsed.Scoped
	a.Source = parsed.Source
	return a, a.setRules(parsed.Rules)
}

// unknownTools adds a note on the names that no tool has. They stay in the
// lists: the tool may come with a later version, and a deny must hold then.
func (s *session) unknownTools(a agentfile.Agent) []agentfile.Note {
	notes := append([]agentfile.Note{}, a.Notes...)
	for _, l := range []struct {
		key     string
		entries []string
	}{
		{"allowed_tools", a.Allowed}, {"denied_tools", a.Denied},
		{"approval_required_tools", a.ApprovalRequired}, {"scoped_tools", a.Scoped},
	} {
		unknown := slices.DeleteFunc(slices.Clone(l.entries), s.matchesTool)
		if len(unknown) > 0 {
			notes = append(notes, agentfile.Note{Key: "capabilities." + l.key,
				Text: fmt.Sprintf("no tool of this version, kept all the same: %s", strings.Join(unknown, ", "))})
		}
	}
	return notes
}
