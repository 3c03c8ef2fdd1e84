package control

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed audit_trail_query.sql
var auditTrailSQL string

type trailArgs struct {
	AgentID   string     `json:"agent_id,omitempty" doc:"-"`
	EventType string     `json:"event_type,omitempty" doc:"call, refusal, command, login, or a tool"`
	Outcome   string     `json:"outcome,omitempty" doc:"-" enum:"ok,replayed,fault,invalid,refused,success,failure"`
	SkillID   string     `json:"skill_id,omitempty" doc:"-"`
	Since     *time.Time `json:"since,omitempty" doc:"RFC 3339"`
	Until     *time.Time `json:"until,omitempty" doc:"Excluded"`
	Limit     int        `json:"limit,omitempty" doc:"100 if left out" min:"1" max:"1000"`
	Offset    int        `json:"offset,omitempty" doc:"-" min:"0" max:"1000000"`
	Cursor    string     `json:"cursor,omitempty" doc:"-"`
}

var toolForm = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// Validate refuses what would only look like an empty trail.
func (a trailArgs) Validate() error {
	switch {
	case a.EventType != "" && !toolForm.MatchString(a.EventType):
		return fault.Invalid("event_type", "event_type must be call, refusal, command, login, or the name of a tool, such as memory_store")
	case a.Since != nil && a.Until != nil && !a.Since.Before(*a.Until):
		return fault.Invalid("until", "until must be later than since")
	case a.Offset > 0 && a.Cursor != "":
		return fault.Invalid("offset", "offset and cursor exclude each other; use cursor alone")
	}
	return nil
}

type trailResult struct {
	Events     []event `json:"events"`
	NextCursor string  `json:"next_cursor,omitzero"` // absent on the last page
}

// event is one row of the trail.
type event struct {
	ID         uuid.UUID       `json:"id"`
	Timestamp  time.Time       `json:"timestamp"`
	EventType  string          `json:"event_type"` // call, refusal, command or login
	AgentID    string          `json:"agent_id"`
	Tool       string          `json:"tool"` // of a command: its name
	Outcome    string          `json:"outcome"`
	Reason     string          `json:"reason,omitzero"`
	DurationMS float64         `json:"duration_ms"`
	RequestID  string          `json:"request_id"`
	Credential string          `json:"credential_id"`
	Door       string          `json:"door"`
	Arguments  json.RawMessage `json:"arguments,omitempty"` // without secrets; left out when long
}

// outcomes are what the filter's collective words stand for.
func outcomes(word string) []string {
	switch word {
	case "":
		return []string{}
	case "success":
		return []string{"ok", "replayed"}
	case "failure":
		return []string{"fault", "invalid"}
	}
	return []string{word}
}

// auditTrailQuery shows rows of the caller and of those that report to it, and
// an operator every row. To an agent a tool that it may not call and one that
// does not exist look alike here too, and what operators did is not shown.
func (c control) auditTrailQuery(ctx context.Context, who caller.Caller, a trailArgs) (trailResult, error) {
	if a.AgentID != "" {
		if err := c.checkReach(ctx, who, a.AgentID); err != nil {
			return trailResult{}, err
		}
	}
	limit := cmp.Or(a.Limit, 100)
	args := pgx.StrictNamedArgs{
		"agent": who.Agent, "operator": who.Operator(), "agent_id": a.AgentID, "kind": "", "tool": a.EventType,
		"outcomes": outcomes(a.Outcome), "skill": a.SkillID, "since": a.Since, "until": a.Until,
		"before": time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), "before_id": uuid.Max, "offset": a.Offset, "limit": limit + 1,
	}
	if slices.Contains([]string{"call", "refusal", "command", "login"}, a.EventType) {
		args["kind"], args["tool"] = a.EventType, ""
	}
	if a.Cursor != "" {
		at, id, err := readCursor(a.Cursor)
		if err != nil {
			return trailResult{}, err
		}
		args["before"], args["before_id"] = at, id
	}
	events, err := postgres.All[event](ctx, c.db, auditTrailSQL, args)
	if err != nil {
		return trailResult{}, fmt.Errorf("query audit trail: %w", err)
	}
	r := trailResult{Events: events}
	if len(events) > limit {
		last := events[limit-1]
		r.Events, r.NextCursor = events[:limit], last.Timestamp.UTC().Format(time.RFC3339Nano)+"/"+last.ID.String()
	}
	return r, nil
}

func readCursor(cursor string) (time.Time, uuid.UUID, error) {
	at, id, _ := strings.Cut(cursor, "/")
	before, err1 := time.Parse(time.RFC3339Nano, at)
	beforeID, err2 := uuid.Parse(id)
	if err1 != nil || err2 != nil {
		return time.Time{}, uuid.UUID{}, fault.Invalid("cursor", "cursor must be the next_cursor of the page before")
	}
	return before, beforeID, nil
}
