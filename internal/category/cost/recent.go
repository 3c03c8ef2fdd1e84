package cost

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed recent.sql
var recentSQL string

type recentArgs struct {
	Limit   int    `json:"limit,omitempty" doc:"20 if left out" min:"1" max:"500"`
	AgentID string `json:"agent_id,omitempty" doc:"-" maxlen:"64"`
	Cursor  string `json:"cursor,omitempty" doc:"-"`
}

type recentResult struct {
	Requests   []request `json:"requests"` // newest first
	NextCursor string    `json:"next_cursor,omitzero"`
	Note       string    `json:"note,omitzero"`
}

type request struct {
	ID                 int64     `json:"-"`
	At                 time.Time `json:"at"`
	AgentID            string    `json:"agent_id"`
	UserID             string    `json:"user_id,omitzero"`
	SessionID          string    `json:"session_id,omitzero"`
	RequestType        string    `json:"request_type"`
	Provider           string    `json:"provider,omitzero"`
	Model              string    `json:"model,omitzero"`
	AskedModel         string    `json:"asked_model,omitzero"` // where another one served
	Tool               string    `json:"tool,omitzero"`
	Units              int64     `json:"units,omitzero"`
	InputTokens        int64     `json:"input_tokens"`
	OutputTokens       int64     `json:"output_tokens"`
	ReasoningTokens    int64     `json:"reasoning_tokens,omitzero"`
	CacheReadTokens    int64     `json:"cache_read_tokens"`
	CacheWrite5mTokens int64     `json:"cache_write_5m_tokens"`
	CacheWrite1hTokens int64     `json:"cache_write_1h_tokens"`
	CostMicroUSD       *int64    `json:"cost_micro_usd"`         // nil: unknown
	PriceVersion       string    `json:"price_version,omitzero"` // reported: its source said so
	Source             string    `json:"source"`
}

func (c cost) recent(ctx context.Context, who caller.Caller, a recentArgs) (recentResult, error) {
	agents, err := c.seen(ctx, who, a.AgentID)
	if err != nil {
		return recentResult{}, err
	}
	limit := a.Limit
	if limit == 0 {
		limit = 20
	}
	args := pgx.StrictNamedArgs{"agent": agents, "limit": limit + 1, "before": time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), "before_id": int64(0)}
	if a.Cursor != "" {
		at, id, _ := strings.Cut(a.Cursor, "/")
		before, err1 := time.Parse(time.RFC3339Nano, at)
		beforeID, err2 := strconv.ParseInt(id, 10, 64)
		if err1 != nil || err2 != nil {
			return recentResult{}, fault.Invalid("cursor", "cursor must be the next_cursor of the page before")
		}
		args["before"], args["before_id"] = before, beforeID
	}
	rows, err := postgres.All[request](ctx, c.db, recentSQL, args)
	if err != nil {
		return recentResult{}, fmt.Errorf("list usage: %w", err)
	}
	r := recentResult{Requests: rows}
	switch {
	case len(rows) > limit:
		last := rows[limit-1]
		r.Requests, r.NextCursor = rows[:limit], last.At.UTC().Format(time.RFC3339Nano)+"/"+strconv.FormatInt(last.ID, 10)
	case len(rows) == 0:
		r.Requests, r.Note = []request{}, "no usage was recorded"
	}
	return r, nil
}
