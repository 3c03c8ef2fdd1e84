package operator

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/redact"
	"pawgate/internal/tool"
)

//go:embed record.sql
var recordSQL string

// door is where operator commands come in, in the audit trail.
const door = "operator"

// recordedArguments is how many bytes of arguments a row keeps.
const recordedArguments = 8 << 10

// errNoSchema says that there is no table to write into yet.
var errNoSchema = fault.New(fault.NotConfigured, "the database has no tables yet; run: pawgate migrate")

// record is the audit row of one command.
type record struct {
	requestID, by, method, agent string
	arguments                    json.RawMessage
	started                      time.Time
	unknown                      bool
}

// write inserts the row, in the command's own transaction when it succeeded.
func (r record) write(ctx context.Context, db postgres.DB, out tool.Outcome, now time.Time) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make audit id: %w", err)
	}
	decision, outcome, reason := "allowed", "ok", ""
	switch {
	case r.unknown:
		decision, outcome, reason, r.method = "refused", "", "unknown_command", "unknown"
	case out.Fault != nil:
		outcome, reason = "fault", string(out.Fault.Reason)
	case out.Invalid != nil:
		outcome, reason = "invalid", short(hide().String(out.Invalid.Parameter))
	}
	if err := hasSchema(ctx, db); err != nil {
		return err
	}
	_, err = postgres.Exec(ctx, db, recordSQL, pgx.StrictNamedArgs{
		"id": id, "request_id": r.requestID, "door": door, "agent_id": r.agent, "credential_id": r.by,
		"method": r.method, "decision": decision, "reason": reason, "outcome": outcome,
		"arguments": jsonText(r.arguments), "duration_us": now.Sub(r.started).Microseconds(),
	})
	if err != nil {
		return fmt.Errorf("write audit row: %w", err)
	}
	return nil
}

// jsonText is a parameter that is jsonb in every query mode: behind a pooler
// the type is guessed from Go's, and bytes would be a bytea.
func jsonText(raw json.RawMessage) *string {
	if raw == nil {
		return nil
	}
	text := string(raw)
	return &text
}

// checkSchema refuses a command on a database without tables, in words that
// say what to do.
func (s *session) checkSchema(ctx context.Context, command string) error {
	if command == migrateCommand {
		return nil
	}
	return hasSchema(ctx, s.db)
}

func hasSchema(ctx context.Context, db postgres.DB) error {
	var has bool
	err := db.QueryRow(ctx, `select to_regclass('audit') is not null`).Scan(&has)
	switch {
	case err != nil:
		return fmt.Errorf("look for tables: %w", postgres.Classify(err))
	case !has:
		return errNoSchema
	}
	return nil
}

// hide finds known forms of secrets: people paste a key where its id belongs.
var hide = sync.OnceValue(func() *redact.Redactor { return redact.New() })

// recorded is what a row keeps of the arguments: secret ones hidden, and nothing
// when they are broken or long.
func recorded(d tool.Definition, arguments []byte) json.RawMessage {
	normal, err := d.Args.Normalize(arguments)
	if err != nil {
		return nil
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(normal, &m) != nil {
		return nil
	}
	for name, value := range m {
		if slices.Contains(d.Secrets, name) {
			m[name] = json.RawMessage(`"[secret]"`)
		} else if len(value) > recordedArguments {
			m[name] = json.RawMessage(`"[long]"`)
		}
	}
	kept, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return hide().Bytes(kept)
}
