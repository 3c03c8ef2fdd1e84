package operator

import (
	"cmp"
	"context"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/roster"
	"pawgate/internal/tool"
)

// soulCommands are about the personas of agents and their versions.
func (s *session) soulCommands() []tool.Tool {
	return []tool.Tool{
		tool.Read("soul_show", "Show the persona of an agent: the version that holds, or another.", s.soulShow),
		tool.Read("soul_log", "List the versions of a persona, newest first.", s.soulLog),
		tool.Read("soul_diff", "Compare two versions of a persona line by line.", s.soulDiff),
		tool.Write("soul_set", "Replace the persona of an agent. The versions before are kept.", s.soulSet, tool.Idempotent),
		tool.Write("soul_rollback", "Bring back the text of a version, as a new one.", s.soulRollback, tool.Idempotent),
	}
}

type soulShowArgs struct {
	AgentID string `json:"agent_id" doc:"Which agent" maxlen:"64"`
	Version int    `json:"version,omitempty" doc:"Which version; the newest if left out" min:"1"`
}

type soulShown struct {
	AgentID string `json:"agent_id"`
	roster.Soul
}

func (s *session) soulShow(ctx context.Context, _ caller.Caller, a soulShowArgs) (soulShown, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return soulShown{}, err
	}
	soul, err := roster.ReadSoul(ctx, s.db, a.AgentID, a.Version)
	return soulShown{a.AgentID, soul}, err
}

type soulLogResult struct {
	AgentID  string            `json:"agent_id"`
	Versions []roster.SoulLine `json:"versions"`
}

func (s *session) soulLog(ctx context.Context, _ caller.Caller, a agentArgs) (soulLogResult, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return soulLogResult{}, err
	}
	lines, err := roster.SoulHistory(ctx, s.db, a.AgentID)
	return soulLogResult{a.AgentID, lines}, err
}

type soulDiffArgs struct {
	AgentID string `json:"agent_id" doc:"Which agent" maxlen:"64"`
	From    int    `json:"from,omitempty" doc:"The older version; the one before to if left out" min:"1"`
	To      int    `json:"to,omitempty" doc:"The newer version; the newest if left out" min:"1"`
}

type soulDiffResult struct {
	AgentID string `json:"agent_id"`
	From    int    `json:"from"`
	To      int    `json:"to"`
	Diff    string `json:"diff"` // in the unified format; empty: they are alike
}

func (s *session) soulDiff(ctx context.Context, _ caller.Caller, a soulDiffArgs) (soulDiffResult, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return soulDiffResult{}, err
	}
	to, err := roster.ReadSoul(ctx, s.db, a.AgentID, a.To)
	if err != nil {
		return soulDiffResult{}, err
	}
	before := cmp.Or(a.From, to.Version-1)
	if before == 0 {
		return soulDiffResult{}, fault.New(fault.NotFound, "agent %s has one version of its soul, so there is nothing to compare", a.AgentID)
	}
	from, err := roster.ReadSoul(ctx, s.db, a.AgentID, before)
	if err != nil {
		return soulDiffResult{}, err
	}
	return soulDiffResult{a.AgentID, from.Version, to.Version, roster.Diff(from, to)}, nil
}

type soulSetArgs struct {
	AgentID   string `json:"agent_id" doc:"Which agent" maxlen:"64"`
	Content   string `json:"content" doc:"The text of the SOUL.md"`
	IfVersion *int   `json:"if_version,omitempty" doc:"Only if this version still holds; 0: if there is none" min:"0"`
	Reason    string `json:"reason,omitempty" doc:"Why, for those who read it later" maxlen:"500"`
}

type soulWritten struct {
	AgentID   string    `json:"agent_id"`
	Version   int       `json:"version"`
	Changed   bool      `json:"changed"` // false: the text held already
	Diff      string    `json:"diff"`
	WrittenAt time.Time `json:"written_at"`
}

func (s *session) soulSet(ctx context.Context, _ caller.Caller, a soulSetArgs) (soulWritten, error) {
	if err := roster.CheckSoul("content", a.Content); err != nil {
		return soulWritten{}, err
	}
	return s.writeSoul(ctx, roster.SoulChange{AgentID: a.AgentID, Content: a.Content, IfVersion: a.IfVersion, Note: a.Reason})
}

type soulRollbackArgs struct {
	AgentID string `json:"agent_id" doc:"Which agent" maxlen:"64"`
	Version int    `json:"version" doc:"The version to bring back" min:"1"`
	Reason  string `json:"reason,omitempty" doc:"Why, for those who read it later" maxlen:"500"`
}

func (s *session) soulRollback(ctx context.Context, _ caller.Caller, a soulRollbackArgs) (soulWritten, error) {
	return s.writeSoul(ctx, roster.SoulChange{AgentID: a.AgentID, Rollback: a.Version, Note: a.Reason})
}

func (s *session) writeSoul(ctx context.Context, c roster.SoulChange) (soulWritten, error) {
	if _, err := s.read(ctx, c.AgentID); err != nil {
		return soulWritten{}, err
	}
	c.By, c.Now = s.By, s.Now()
	done, err := roster.WriteSoul(ctx, s.db, c)
	if err != nil {
		return soulWritten{}, err
	}
	return soulWritten{c.AgentID, done.After.Version, done.Changed(), done.Diff(), done.After.WrittenAt}, nil
}
