package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pawgate/internal/agentfile"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
)

type importArgs struct {
	Source  string `json:"source" doc:"The text of the agent.toml"`
	Replace bool   `json:"replace,omitempty" doc:"Replace the agent of that name, its lists too"`
}

type importResult struct {
	agentRow
	Rules   []string         `json:"rules"`
	Created bool             `json:"created"`
	Notes   []agentfile.Note `json:"notes"`
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
		return importResult{}, fault.New(fault.Conflict, "agent %s exists; import with replace to overwrite it and its lists", parsed.ID)
	}
	if !exists {
		if err := s.checkAgentLimit(ctx); err != nil {
			return importResult{}, err
		}
		before = blank()
		before.State = parsed.State
	}
	after, err := s.imported(before, parsed)
	if err != nil {
		return importResult{}, err
	}
	row, err := s.replace(ctx, before, after)
	if err != nil {
		return importResult{}, err
	}
	return importResult{agentRow: row, Rules: sentences(parsed.Rules), Created: !exists, Notes: s.unknownTools(parsed)}, nil
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
