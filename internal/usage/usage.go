// Package usage keeps what everything costs: one row for each answer of a model
// and for each paid use of a tool. The model loop, the gate and the receivers of
// telemetry record here; the cost tools read.
//
// Money is in whole micro-dollars. A price that is not known makes a cost that
// is not known, never one of zero. The prices are rows too, so a
// better list recomputes what was recorded before it.
//
// Rows are recorded exactly once: a row whose source and id were recorded
// before changes nothing, or, when it says more of the same answer, takes its
// place.
package usage

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

//go:embed record.sql
var recordSQL string

// RequestType says what a model was asked for.
type RequestType string

// The request types.
const (
	Chat      RequestType = "chat"      // a person's message, or a session of Claude Code
	Dispatch  RequestType = "dispatch"  // another agent's task
	Cron      RequestType = "cron"      // a schedule
	Evolution RequestType = "evolution" // an agent at work on itself
	Tool      RequestType = "tool"      // the price of a tool itself, no model
)

// The sources that this program records from. Ids are unique within one.
const (
	SourceLoop       = "loop"        // the model loop: the id of the provider's answer
	SourceGate       = "gate"        // tools with a price: the id of the call
	SourceClaudeCode = "claude_code" // its telemetry and transcripts: agent and request id
	SourceAPI        = "api"         // POST /v1/usage: agent and the sender's id
)

// Row is one answer of a model, or one paid use of a tool.
//
// Tokens are counted apart: Input is what was neither read from the
// provider's cache nor written to it (see Plain), Output is everything written,
// Reasoning is the part of it that was thought and not shown. An attempt that
// was thrown away costs as much as one that was kept: it is a row of its own.
type Row struct {
	At          time.Time   `json:"at"` // when the answer came
	Agent       string      `json:"agent_id"`
	User        string      `json:"user_id,omitempty"`
	Session     string      `json:"session_id,omitempty"`
	Task        string      `json:"task_id,omitempty"`
	RequestType RequestType `json:"request_type,omitempty"` // "": Chat
	Provider    string      `json:"provider,omitempty"`     // as price lists call it: anthropic, openai, bedrock …
	Model       string      `json:"model,omitempty"`        // the one that served, not the one that was asked for
	AskedModel  string      `json:"asked_model,omitempty"`  // the one that was asked for, where that is another
	Tool        string      `json:"tool,omitempty"`         // the tool whose own price this is
	Requests    *int64      `json:"requests,omitempty"`     // nil: 1
	Units       int64       `json:"units,omitempty"`        // search credits, messages
	Input       int64       `json:"input"`
	Output      int64       `json:"output"`
	CacheRead   int64       `json:"cache_read"`
	CacheWrite  int64       `json:"cache_write_5m"` // kept for five minutes, or of unknown life
	CacheWrite1 int64       `json:"cache_write_1h"` // kept for an hour
	Reasoning   int64       `json:"reasoning"`
	// Reported is what the source said it cost, in micro-dollars; nil: it is
	// computed from the prices.
	Reported *int64 `json:"reported_micros,omitempty"`
	Source   string `json:"source"`
	ID       string `json:"source_id"` // the same again is the same usage
}

// Recorded says what became of rows.
type Recorded struct {
	Added int64 // new
	Grown int64 // recorded before, and now more was said
	Late  int64 // from before the time that rows are kept for; not recorded
}

// maxRows is how many rows one statement records. Statements of one transaction
// lock rows of budgets one after the other, and may wait for each other in a
// circle, so it is large.
const maxRows = 20_000

// maxText bounds every text of a row, in bytes.
const maxText = 256

// Record keeps rows, in the transaction when db is one. It may be called again
// with the same rows. It fails with a broken argument for a row without agent,
// time, source or id, and for counts that cannot be. Without a transaction, more
// than 20,000 rows are not kept all or none.
func Record(ctx context.Context, db postgres.DB, rows ...Row) (Recorded, error) {
	var sum Recorded
	if err := check(rows); err != nil {
		return sum, err
	}
	for len(rows) > 0 {
		part := rows[:min(len(rows), maxRows)]
		rows = rows[len(part):]
		encoded, err := Encode(part...)
		if err != nil {
			return sum, err
		}
		got, err := postgres.First[Recorded](ctx, db, recordSQL, encoded)
		if err != nil {
			return sum, fmt.Errorf("record usage: %w", err)
		}
		sum.Added, sum.Grown, sum.Late = sum.Added+got.Added, sum.Grown+got.Grown, sum.Late+got.Late
	}
	return sum, nil
}

// Encode writes rows as the functions of the database take them. It fails where
// Record would.
func Encode(rows ...Row) (string, error) {
	if err := check(rows); err != nil {
		return "", err
	}
	if rows == nil {
		rows = []Row{}
	}
	encoded, err := json.Marshal(rows)
	if err != nil {
		return "", fmt.Errorf("encode usage: %w", err)
	}
	return string(encoded), nil
}

func check(rows []Row) error {
	for i := range rows {
		if err := rows[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// Plain is the input that was neither read from a cache nor written to one, for
// providers that count the whole prompt: OpenAI's prompt_tokens hold the cached
// ones, Anthropic's input_tokens do not.
func Plain(prompt, cacheRead, cacheWrite int64) int64 { return max(0, prompt-cacheRead-cacheWrite) }

// MaxCost bounds the cost of a row, in micro-dollars, as the database does: no
// answer costs a million dollars, and sums of many rows must not overflow.
const MaxCost = 1_000_000_000_000

// maxCount bounds a count of tokens or units, as the table does.
const maxCount = 1_000_000_000_000

func (r *Row) check() error {
	switch {
	case r.Agent == "":
		return fault.Invalid("agent_id", "agent_id must name the agent that spent")
	case r.Source == "" || r.ID == "":
		return fault.Invalid("source_id", "source and source_id must identify the usage, so that sending it again counts once")
	case r.At.IsZero():
		return fault.Invalid("at", "at must say when the answer came")
	case r.Model == "" && r.Tool == "":
		return fault.Invalid("model", "model must name the model that served, or tool the tool that was paid for")
	case r.Reasoning > r.Output:
		return fault.Invalid("reasoning", "reasoning is a part of output, so it must not be more")
	case r.Reported != nil && (*r.Reported < 0 || *r.Reported > MaxCost):
		return fault.Invalid("reported_micros", "a cost must be between nothing and a million dollars")
	}
	switch r.RequestType {
	case "", Chat, Dispatch, Cron, Evolution, Tool:
	default:
		return fault.Invalid("request_type", "request_type must be chat, dispatch, cron, evolution or tool")
	}
	counts := []int64{r.Input, r.Output, r.CacheRead, r.CacheWrite, r.CacheWrite1, r.Reasoning, r.Units}
	if r.Requests != nil {
		counts = append(counts, *r.Requests)
	}
	for _, n := range counts {
		if n < 0 || n > maxCount {
			return fault.Invalid("tokens", "counts must be between 0 and %d", int64(maxCount))
		}
	}
	for _, text := range []string{r.Agent, r.User, r.Session, r.Task, r.Provider, r.Model, r.AskedModel, r.Tool, r.Source, r.ID} {
		if len(text) > maxText || strings.ContainsRune(text, 0) {
			return fault.Invalid("source_id", "texts must be at most %d bytes, without NUL", maxText)
		}
	}
	return nil
}
