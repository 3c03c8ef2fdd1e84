package agent

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed check_responses.sql
var checkResponsesSQL string

// preview is how much of a response a list shows, in code points.
const preview = 2000

type checkResponsesArgs struct {
	AgentID   string `json:"agent_id" doc:"Whom you asked" maxlen:"64"`
	MessageID string `json:"message_id,omitempty" doc:"One, in full" maxlen:"36"`
	Limit     int    `json:"limit,omitempty" doc:"5 if left out" min:"1" max:"50"`
	Cursor    string `json:"cursor,omitempty" doc:"-" maxlen:"100"`
}

type response struct {
	MessageID  uuid.UUID  `json:"message_id"`
	State      string     `json:"state"` // queued, running, done, dead or cancelled
	AskedAt    time.Time  `json:"asked_at"`
	FinishedAt *time.Time `json:"finished_at,omitzero"`
	Response   string     `json:"response,omitzero"`
	Cut        bool       `json:"cut,omitzero"` // message_id shows it in full
	Error      string     `json:"error,omitzero"`
}

type checkResponsesResult struct {
	Responses  []response `json:"responses"`
	NextCursor string     `json:"next_cursor,omitzero"`
}

// checkResponses shows what became of the caller's own requests to an agent,
// newest first: those that wait and those that failed too. Nobody sees what
// others asked, save an operator. It fails with fault.NotFound for a message that
// is not the caller's, and a broken cursor is a broken argument.
func (c agent) checkResponses(ctx context.Context, who caller.Caller, a checkResponsesArgs) (checkResponsesResult, error) {
	before, beforeID, err := readAskedCursor(a.Cursor)
	if err != nil {
		return checkResponsesResult{}, err
	}
	limit, length := cmp.Or(a.Limit, 5), preview
	var only *uuid.UUID
	if a.MessageID != "" {
		id, err := uuid.Parse(a.MessageID)
		if err != nil {
			return checkResponsesResult{}, fault.Invalid("message_id", "message_id must be one that send_to_agent, spawn_agent or spawn_ephemeral gave")
		}
		only, length = &id, 1<<30
	}
	found, err := postgres.All[response](ctx, c.db, checkResponsesSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "operator": who.Operator(), "agent_id": a.AgentID, "only": only, "length": length,
		"before": before, "before_id": beforeID, "limit": limit + 1,
	})
	if err != nil {
		return checkResponsesResult{}, fmt.Errorf("list responses: %w", err)
	}
	if only != nil && len(found) == 0 {
		return checkResponsesResult{}, fault.New(fault.NotFound, "no message %s from you to %s", only, a.AgentID)
	}
	if len(found) <= limit {
		return checkResponsesResult{Responses: found}, nil
	}
	last := found[limit-1]
	return checkResponsesResult{Responses: found[:limit], NextCursor: strconv.FormatInt(last.AskedAt.UnixMicro(), 10) + "." + last.MessageID.String()}, nil
}

// readAskedCursor gives the row that a page comes after.
func readAskedCursor(cursor string) (time.Time, uuid.UUID, error) {
	if cursor == "" {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), uuid.Max, nil
	}
	micros, id, _ := strings.Cut(cursor, ".")
	at, err := strconv.ParseInt(micros, 10, 64)
	beforeID, err2 := uuid.Parse(id)
	if err != nil || err2 != nil {
		return time.Time{}, uuid.UUID{}, fault.Invalid("cursor", "cursor must be the next_cursor of the page before")
	}
	return time.UnixMicro(at), beforeID, nil
}
