package operator

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/category/memory"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

var (
	//go:embed memory_limits.sql
	memoryLimitsSQL string
	//go:embed memory_limits_clear.sql
	memoryLimitsClearSQL string
	//go:embed memory_limits_read.sql
	memoryLimitsReadSQL string
)

// memoryCommands are about what agents remember. What moves many memories
// does so a part at a time, so that a function's limits of size and time do
// not bound how many there may be; the command line asks for part after part.
func (s *session) memoryCommands() []tool.Tool {
	return []tool.Tool{
		tool.Read("memory_export", "Write an agent's memories as JSON Lines.", s.memoryExport),
		tool.Write("memory_import", "Read memories from JSON Lines, or from a DuDuClaw memory database.", s.memoryImport, tool.Idempotent, tool.Secret("lines")),
		tool.Write("memory_backfill", "Give memories the vectors that a search by meaning needs.", s.memoryBackfill, tool.Idempotent),
		tool.Write("memory_limits", "Show how much an agent may keep, or set it.", s.memoryLimits, tool.Idempotent),
		tool.Write("memory_share", "Let an agent read the memories of another. It names the owner as agent_id.", s.memoryShare, tool.Idempotent),
		tool.Destroy("memory_unshare", "Let it read them no longer.", s.memoryUnshare, tool.Idempotent),
		tool.Read("memory_shares", "List who may read whose memories.", s.memoryShares),
	}
}

type memoryExportArgs struct {
	AgentID string `json:"agent_id" doc:"Whose memories" maxlen:"64"`
	After   int    `json:"after,omitempty" doc:"Where the part begins" min:"0" max:"2147483647"`
}

func (s *session) memoryExport(ctx context.Context, _ caller.Caller, a memoryExportArgs) (memory.Page, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return memory.Page{}, err
	}
	return memory.ExportPage(ctx, s.db, a.AgentID, int32(a.After))
}

type memoryImportArgs struct {
	AgentID string `json:"agent_id" doc:"Whose memories they become" maxlen:"64"`
	Lines   string `json:"lines" doc:"JSON Lines, as pawgate memory export writes them"`
	DryRun  bool   `json:"dry_run,omitempty" doc:"Read and check everything, keep nothing; what is twice in the file may be counted twice"`
}

func (s *session) memoryImport(ctx context.Context, _ caller.Caller, a memoryImportArgs) (memory.Imported, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return memory.Imported{}, err
	}
	return memory.Import(ctx, s.db, a.AgentID, strings.NewReader(a.Lines), memory.ImportOptions{DryRun: a.DryRun, Now: s.Now()})
}

type memoryBackfillArgs struct {
	AgentID string `json:"agent_id" doc:"Whose memories" maxlen:"64"`
	After   int    `json:"after,omitempty" doc:"Where the part begins" min:"0" max:"2147483647"`
}

// backfillPart is how long one command asks for vectors. Its transaction is
// open so long.
const backfillPart = 10 * time.Second

func (s *session) memoryBackfill(ctx context.Context, _ caller.Caller, a memoryBackfillArgs) (memory.Backfilled, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return memory.Backfilled{}, err
	}
	if s.Embedder == nil {
		return memory.Backfilled{}, fault.New(fault.NotConfigured, "there is no model for embeddings: set EMBEDDINGS_URL and EMBEDDINGS_MODEL")
	}
	done, err := memory.Backfill(ctx, s.db, a.AgentID, s.Embedder, int32(a.After), backfillPart)
	if err != nil && done.Done > 0 { // keep it; the next command meets the error again
		return done, nil
	}
	return done, err
}

type memoryLimitsArgs struct {
	AgentID     string `json:"agent_id" doc:"The agent" maxlen:"64"`
	MaxMemories int    `json:"max_memories,omitempty" doc:"Memories in all" min:"1" max:"100000000"`
	MaxPerDay   int    `json:"max_per_day,omitempty" doc:"Memories stored in a day (UTC)" min:"1" max:"100000000"`
	Clear       bool   `json:"clear,omitempty" doc:"Back to the usual limits"`
}

// Validate refuses two wishes at once.
func (a memoryLimitsArgs) Validate() error {
	if a.Clear && (a.MaxMemories > 0 || a.MaxPerDay > 0) {
		return fault.Invalid("clear", "--clear goes back to the usual limits; leave --max-memories and --max-per-day out")
	}
	return nil
}

type memoryLimitsResult struct {
	AgentID     string `json:"agent_id"`
	MaxMemories int    `json:"max_memories"`
	MaxPerDay   int    `json:"max_per_day"`
}

// memoryLimits shows the limits, after it changed them.
func (s *session) memoryLimits(ctx context.Context, _ caller.Caller, a memoryLimitsArgs) (memoryLimitsResult, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return memoryLimitsResult{}, err
	}
	var err error
	switch {
	case a.Clear:
		_, err = postgres.Exec(ctx, s.db, memoryLimitsClearSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID})
	case a.MaxMemories > 0 || a.MaxPerDay > 0:
		_, err = postgres.Exec(ctx, s.db, memoryLimitsSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "max_memories": a.MaxMemories, "max_per_day": a.MaxPerDay})
	}
	if err != nil {
		return memoryLimitsResult{}, fmt.Errorf("set memory limits: %w", err)
	}
	now, err := postgres.One[struct{ MaxMemories, MaxPerDay int }](ctx, s.db, memoryLimitsReadSQL, pgx.StrictNamedArgs{
		"agent_id": a.AgentID, "max_memories": memory.MaxMemories, "max_per_day": memory.MaxPerDay})
	if err != nil {
		return memoryLimitsResult{}, fmt.Errorf("read memory limits: %w", err)
	}
	return memoryLimitsResult{AgentID: a.AgentID, MaxMemories: now.MaxMemories, MaxPerDay: now.MaxPerDay}, nil
}
