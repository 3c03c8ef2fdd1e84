package operator

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/agentfile"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed audit_list.sql
var auditListSQL string

type auditListArgs struct {
	Agent    string `json:"agent,omitempty" doc:"Only rows about this agent" maxlen:"64"`
	Tool     string `json:"tool,omitempty" doc:"Only this tool; memory_* for all that start so" maxlen:"64"`
	Decision string `json:"decision,omitempty" doc:"Only allowed or only refused" enum:"allowed,refused"`
	Since    string `json:"since,omitempty" doc:"Only newer rows: 24h, 7d, 2026-12-31" maxlen:"40"`
	Limit    int    `json:"limit,omitempty" doc:"Most rows to show; 50 if left out" min:"1" max:"500"`
	Cursor   string `json:"cursor,omitempty" doc:"next_cursor of the page before" maxlen:"100"`
}

type auditLine struct {
	ID           uuid.UUID       `json:"id"`
	At           time.Time       `json:"at"`
	RequestID    string          `json:"request_id"`
	Door         string          `json:"door"`
	AgentID      string          `json:"agent_id"`
	CredentialID string          `json:"credential_id"`
	Method       string          `json:"method"`
	Tool         string          `json:"tool"`
	Decision     string          `json:"decision"`
	Outcome      string          `json:"outcome"`
	Reason       string          `json:"reason"`
	DurationMS   float64         `json:"duration_ms"`
	Arguments    json.RawMessage `json:"arguments,omitempty"`
}

type auditListResult struct {
	Rows       []auditLine `json:"rows"`
	NextCursor string      `json:"next_cursor,omitzero"`
}

func (s *session) auditList(ctx context.Context, _ caller.Caller, a auditListArgs) (auditListResult, error) {
	limit := cmp.Or(a.Limit, 50)
	args, err := s.auditFilter(a)
	if err != nil {
		return auditListResult{}, err
	}
	args["limit"] = limit + 1
	rows, err := postgres.All[auditLine](ctx, s.db, auditListSQL, args)
	if err != nil {
		return auditListResult{}, fmt.Errorf("list audit rows: %w", err)
	}
	if len(rows) <= limit {
		return auditListResult{Rows: rows}, nil
	}
	last := rows[limit-1]
	return auditListResult{Rows: rows[:limit], NextCursor: last.At.UTC().Format(time.RFC3339Nano) + "/" + last.ID.String()}, nil
}

func (s *session) auditFilter(a auditListArgs) (pgx.StrictNamedArgs, error) {
	args := pgx.StrictNamedArgs{"agent": a.Agent, "tool": a.Tool, "prefix": "", "decision": a.Decision,
		"since": time.Time{}, "before": time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), "before_id": uuid.Max}
	if prefix, ok := strings.CutSuffix(a.Tool, "*"); ok {
		if !agentfile.IsPattern(a.Tool) {
			return nil, fault.Invalid("tool", "tool must be a tool's name or whole words and a star, such as memory_*")
		}
		args["tool"], args["prefix"] = "", prefix
	}
	if a.Since != "" {
		since, err := moment("since", a.Since, s.Now(), -1)
		if err != nil {
			return nil, err
		}
		args["since"] = since
	}
	if a.Cursor == "" {
		return args, nil
	}
	at, id, _ := strings.Cut(a.Cursor, "/")
	before, err1 := time.Parse(time.RFC3339Nano, at)
	beforeID, err2 := uuid.Parse(id)
	if err1 != nil || err2 != nil {
		return nil, fault.Invalid("cursor", "cursor must be the next_cursor of the page before")
	}
	args["before"], args["before_id"] = before, beforeID
	return args, nil
}
