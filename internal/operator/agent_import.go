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
	_, err = s.read(ctx, parsed.ID)
	exists := err == nil
	if f, ok := fault.Of(err); !exists && (!ok || f.Reason != fault.NotFound) {
		return importResult{}, err
	}
	if exists && !a.Replace {
		return importResult{}, fault.New(fault.Conflict, "agent %s exists; import with replace to overwrite it and its lists", parsed.ID)
	}
	row, err := s.write(ctx, stored{Source: parsed.Source, agentRow: agentRow{
		AgentID: parsed.ID, DisplayName: parsed.DisplayName, Role: parsed.Role, State: parsed.State, Model: parsed.Model,
		ReportsTo: parsed.ReportsTo, Icon: parsed.Icon, Trigger: parsed.Trigger,
		AllowedTools: parsed.Allowed, DeniedTools: parsed.Denied,
		ApprovalRequiredTools: parsed.ApprovalRequired, ScopedTools: parsed.Scoped,
	}})
	if err != nil {
		return importResult{}, err
	}
	return importResult{agentRow: row, Created: !exists, Notes: s.unknownTools(parsed)}, nil
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
