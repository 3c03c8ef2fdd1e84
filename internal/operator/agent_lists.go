package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pawgate/internal/agentfile"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/near"
	"pawgate/internal/policy"
)

type listsArgs struct {
	AgentID  string   `json:"agent_id" doc:"Which agent" maxlen:"64"`
	Patterns []string `json:"patterns" doc:"A tool's name, memory_* for all that start so, or * for all"`
	Remove   bool     `json:"remove,omitempty" doc:"Take the patterns out of the list instead"`
}

// Validate asks for a pattern.
func (a listsArgs) Validate() error {
	if len(a.Patterns) == 0 {
		return fault.Invalid("patterns", "patterns must not be empty: name a tool, memory_*, or *")
	}
	return nil
}

func (s *session) agentAllow(ctx context.Context, _ caller.Caller, a listsArgs) (changed, error) {
	return s.change(ctx, a, func(row *agentRow) *[]string { return &row.AllowedTools })
}

func (s *session) agentDeny(ctx context.Context, _ caller.Caller, a listsArgs) (changed, error) {
	return s.change(ctx, a, func(row *agentRow) *[]string { return &row.DeniedTools })
}

func (s *session) agentAsk(ctx context.Context, _ caller.Caller, a listsArgs) (changed, error) {
	return s.change(ctx, a, func(row *agentRow) *[]string { return &row.ApprovalRequiredTools })
}

func (s *session) agentScoped(ctx context.Context, _ caller.Caller, a listsArgs) (changed, error) {
	return s.change(ctx, a, func(row *agentRow) *[]string { return &row.ScopedTools })
}

// change edits one list; the others are never touched.
func (s *session) change(ctx context.Context, a listsArgs, which func(*agentRow) *[]string) (changed, error) {
	if err := s.lock(ctx); err != nil {
		return changed{}, err
	}
	row, err := s.read(ctx, a.AgentID)
	if err != nil {
		return changed{}, err
	}
	entries := which(&row.agentRow)
	before, notes := slices.Clone(*entries), []string{}
	if a.Remove {
		notes = remove(entries, a.Patterns)
	} else {
		patterns, more, err := s.patterns("patterns", a.Patterns)
		if err != nil {
			return changed{}, err
		}
		notes = more
		for _, p := range patterns {
			if !slices.Contains(*entries, p) {
				*entries = append(*entries, p)
			}
		}
	}
	notes = append(notes, s.overlaps(row.agentRow)...)
	if slices.Equal(before, *entries) {
		return changed{agentRow: row.agentRow, Notes: notes}, nil
	}
	after, err := s.write(ctx, row)
	return changed{agentRow: after, Changed: true, Notes: notes}, err
}

// remove takes exact entries out; a pattern does not remove what it covers.
func remove(entries *[]string, patterns []string) []string {
	notes := []string{}
	for _, p := range patterns {
		i := slices.Index(*entries, p)
		if i < 0 {
			notes = append(notes, fmt.Sprintf("%s is not in the list", short(p)))
			continue
		}
		*entries = slices.Delete(*entries, i, i+1)
	}
	return notes
}

// overlaps notes allowed entries without effect.
func (s *session) overlaps(row agentRow) []string {
	var notes []string
	for _, allowed := range row.AllowedTools {
		for _, denied := range row.DeniedTools {
			if policy.Matches(denied, strings.TrimSuffix(allowed, "*")) {
				notes = append(notes, fmt.Sprintf("%s is allowed without effect: denied_tools has %s, which wins", allowed, denied))
			}
		}
	}
	return notes
}

// patterns checks what is added to a list. An exact name must be a tool's,
// because a misspelt deny protects nothing; a prefix may wait for its tools.
func (s *session) patterns(parameter string, given []string) ([]string, []string, error) {
	checked, notes := []string{}, []string{}
	for _, entry := range given {
		p := policy.BaseName(strings.TrimSpace(entry))
		if !agentfile.IsPattern(p) {
			return nil, nil, fault.Invalid(parameter,
				"%q is no pattern; write a tool's name (memory_search), whole words and a star (memory_*), or * for every tool", short(entry))
		}
		if !s.matchesTool(p) {
			if !strings.HasSuffix(p, "*") {
				return nil, nil, fault.Invalid(parameter, "unknown tool %s%s", p, near.DidYouMean(p, s.toolNames()))
			}
			notes = append(notes, fmt.Sprintf("%s matches no tool of this version", p))
		}
		if !slices.Contains(checked, p) {
			checked = append(checked, p)
		}
	}
	return checked, notes, nil
}

func (s *session) matchesTool(pattern string) bool {
	return slices.ContainsFunc(s.toolNames(), func(name string) bool { return policy.Matches(pattern, name) })
}

func (s *session) toolNames() []string {
	var names []string
	for _, e := range s.Catalog.All() {
		names = append(names, e.Name)
	}
	return names
}
