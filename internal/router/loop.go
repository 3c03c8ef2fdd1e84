package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/standing"
	"pawgate/internal/tool"
)

// LoopDoor is the door of the model loop: a model that this program runs,
// without a network between. Its calls pass the same gate as everybody's, in the
// name of an agent and of what started the run, such as a schedule.
type LoopDoor struct {
	router *Router
	as     Identity
}

// Identity is in whose name a run acts. Nothing of it comes from the model.
type Identity struct {
	Agent string
	// Credential says in audit rows what started the run, and keeps its limits
	// and idempotency keys apart: "local", "schedule:…".
	Credential string
	// Scopes are what the run may touch; nil: whatever a key without limits may.
	// None at all is none: whoever asked for the run had none.
	Scopes []string
	// Tools narrows the agent's own list for this run by patterns like those of
	// allowed_tools; nil: it is not narrowed. It never widens.
	Tools []string
}

// LoopDoor opens the door for one identity.
func (r *Router) LoopDoor(as Identity) *LoopDoor {
	if as.Scopes == nil {
		as.Scopes = []string{caller.ScopeAll}
	}
	if as.Credential == "" {
		as.Credential = localCredential
	}
	return &LoopDoor{router: r, as: as}
}

func (d *LoopDoor) who() standing.Who {
	return standing.Who{Agent: d.as.Agent, Credential: d.as.Credential, Scopes: d.as.Scopes}
}

// snapshot completes what was read with what only the router knows.
func (d *LoopDoor) snapshot(s policy.Snapshot, requestID string) policy.Snapshot {
	s.Caller.RequestID, s.Edition, s.Within = requestID, d.router.Licence.EditionAt(d.router.Now()), d.as.Tools
	return s
}

// List gives what may be called now, as elements of tools/list. It fails with
// a fault when the agent may call nothing at all: unknown, paused, stopped.
func (d *LoopDoor) List(ctx context.Context) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	read, err := d.router.standing.Peek(ctx, d.who(), nil)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fault.New(fault.NotFound, "no agent %s", d.as.Agent)
	case err != nil:
		return nil, fmt.Errorf("list tools: %w", err)
	}
	s := d.snapshot(read, "")
	s.FloodWait = 0 // to look is no call
	if now := policy.Standing(s, false); now.Step != 0 {
		return nil, now.Fault
	}
	listed := []json.RawMessage{}
	for _, e := range d.router.Catalog.All() {
		if policy.Lists(s, &e.Tool) {
			listed = append(listed, e.Public)
		}
	}
	return listed, nil
}

// Call takes a call through the gate. The arguments are read as strictly as a
// message from a network. It always comes to an answer: an object with status,
// and error and reason when it failed.
func (d *LoopDoor) Call(ctx context.Context, name string, arguments []byte, key string) (result []byte, failed bool) {
	r := d.router
	id, ctx := withRequestID(ctx)
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			r.Log.Error("panic in router", "request_id", id, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, failed = answerOf(tool.Outcome{Fault: fault.New(fault.Internal, "internal error; the operator finds it in the log under request %s", id)}).plain()
		}
	}()
	if v := jsontext.Value(arguments); !v.IsValid() || v.Kind() != '{' {
		return answerOf(tool.Outcome{Invalid: fault.Invalid("arguments", "the arguments must be one JSON object, without a member given twice")}).plain()
	}
	m, bad := parse(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%s,"arguments":%s,"_meta":{"pawgate/idempotencyKey":%s}}}`,
		quote(name), arguments, quote(key)))
	if bad != nil {
		return answer{rpc: bad.reason("invalid_argument")}.plain()
	}
	return d.gate(ctx, r.newCall(ctx, m)).plain()
}

// gate is serveMCP without the wire.
func (d *LoopDoor) gate(ctx context.Context, c *call) answer {
	r := d.router
	c.door, c.who = "loop", d.who()
	var definition *tool.Definition
	if c.entry != nil {
		definition = &c.entry.Definition
	}
	reading, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	read, err := r.standing.Read(reading, c.who, definition)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return answerOf(tool.Outcome{Fault: fault.New(fault.NotFound, "no agent %s", d.as.Agent)})
	case ctx.Err() != nil:
		return answerOf(tool.Outcome{Fault: fault.New(fault.Cancelled, "the call was cancelled before it began")})
	case err != nil:
		return r.unrecorded(c, err, true)
	}
	c.snapshot = d.snapshot(read, c.requestID)
	return r.serveCall(ctx, c)
}

// plain is an answer for a model: the object alone, whatever it would have
// been on the wire.
func (a answer) plain() (result []byte, failed bool) {
	if a.rpc == nil {
		return a.result, a.isError
	}
	f := fault.New(fault.Internal, "%s", a.rpc.Message)
	if data, ok := a.rpc.Data.(map[string]any); ok {
		if reason, ok := data["reason"].(fault.Reason); ok {
			f.Reason = reason
		}
		if reason, ok := data["reason"].(string); ok {
			f.Reason = fault.Reason(reason)
		}
	}
	return answerOf(tool.Outcome{Fault: f}).plain()
}
