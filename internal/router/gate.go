package router

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/standing"
	"pawgate/internal/tool"
)

// call is one message on its way through the gate.
type call struct {
	message   *message
	name      string         // of the tool, without its qualifier
	entry     *catalog.Entry // nil when no tool has that name
	who       standing.Who
	snapshot  policy.Snapshot
	door      string
	requestID string
	modern    bool
	started   time.Time

	arguments []byte // normalised, once they are
	because   string // why a person must approve, if one must

	local   *LocalDoor             // the stdio door, when it came by it
	push    func(msg []byte) error // sends the client a message before the answer
	streams bool                   // the client reads event streams
	request context.Context        // ends with the client's connection or the deadline
	answer  *answer                // set when the gate has answered
}

func (r *Router) newCall(ctx context.Context, m *message) *call {
	c := &call{message: m, requestID: requestID(ctx), modern: m.modern(), started: r.Now()}
	c.local, _ = ctx.Value(localKey{}).(*LocalDoor)
	if m.method == "tools/call" {
		c.name = policy.BaseName(m.name)
		c.entry = r.Catalog.Find(c.name)
	}
	return c
}

// status is the HTTP status of a JSON-RPC error: revision 2026-07-28 maps
// codes to statuses, the older ones answer 200 to everything they parsed.
func (c *call) status(modern int) int {
	if c.modern {
		return modern
	}
	return http.StatusOK
}

// listedTools joins the public forms of the tools this caller may call.
func (r *Router) listedTools(s policy.Snapshot) []byte {
	out := make([]byte, 0, r.Catalog.Size())
	for _, e := range r.Catalog.All() {
		if !policy.Lists(s, &e.Tool) {
			continue
		}
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, e.Public...)
	}
	return out
}

// serveCall is the gate, in DESIGN's order: one decision, then dispatch, then
// the record. The answer leaves only when its audit row is safe.
func (r *Router) serveCall(ctx context.Context, c *call) answer {
	if d := policy.Standing(c.snapshot, c.entry != nil && c.entry.Exempt); d.Step != 0 { // 2 to 4, whatever the tool
		return r.refuse(ctx, c, d)
	}
	if c.entry == nil {
		return r.refuse(ctx, c, policy.Unknown(c.name))
	}
	if d := policy.Decide(c.snapshot, c.entry.Tool); !d.Allowed { // 2 to 9
		return r.refuse(ctx, c, d)
	}
	arguments, err := c.entry.Schema().Normalize(c.message.arguments) // 10
	if err != nil {
		return r.settle(ctx, c, reservation{}, tool.Failed(err, c.requestID))
	}
	c.arguments = arguments
	d, because := policy.Weigh(c.snapshot, c.entry.Tool, arguments) // 11, 12
	if !d.Allowed {
		return r.refuse(ctx, c, d)
	}
	reserved, refusal := r.reserve(ctx, c, because) // 13 to 15
	if refusal != nil {
		return *refusal
	}
	return r.settle(ctx, c, reserved, r.dispatch(ctx, c))
}

func (r *Router) dispatch(ctx context.Context, c *call) tool.Outcome {
	backend, ok := r.Backends[c.entry.Category]
	if !ok {
		return tool.Outcome{Fault: fault.New(fault.NotConfigured,
			"category %s has no backend here; the operator sets PAWGATE_FUNCTION_* or PAWGATE_SIDECAR_URL", c.entry.Category)}
	}
	ctx, release := r.watch(ctx, c)
	defer release()
	ctx, silence := r.progress(ctx, c)
	defer silence()
	out := backend.Call(ctx, c.snapshot.Caller, c.entry, c.arguments)
	if errors.Is(context.Cause(ctx), errStopped) && out.OK == nil {
		return cutOff(c)
	}
	if f := out.Fault; f != nil && (f.Reason == fault.DeadlineExceeded || f.Reason == fault.Cancelled) {
		out.Fault = fault.New(f.Reason, "%s did not finish (%s); %s", c.entry.Name, f.Reason, mayHaveRun(c.entry))
	}
	return out
}

// refuse records a refusal and words it: steps 5 to 8 alike, as an unknown
// tool.
func (r *Router) refuse(ctx context.Context, c *call, d policy.Decision) answer {
	row := r.row(c, "decision")
	row.Decision, row.Reason = "refused", d.Reason
	if err := r.audit.write(ctx, row); err != nil {
		return r.unrecorded(c, err, true)
	}
	if d.Hidden() || d.Fault == nil {
		return answer{rpc: rpcErrorf(codeInvalidParams, "unknown tool: %s", short(c.message.name)).reason("unknown_tool")}
	}
	return answerOf(tool.Outcome{Fault: d.Fault})
}

// settle records what a call came to, then answers.
func (r *Router) settle(ctx context.Context, c *call, reserved reservation, out tool.Outcome) answer {
	out = r.redacted(out)
	outcome := r.row(c, "outcome")
	outcome.Decision = "allowed"
	outcome.setOutcome(out)
	record := record{rows: []auditRow{outcome}}
	if !reserved.recorded { // a read: its decision is recorded with its outcome
		record.rows = []auditRow{r.decisionRow(c), outcome}
	}
	if reserved.ticket != "" || reserved.approval != "" || reserved.hold != "" || c.price() != nil {
		end, err := reserved.finish(c, out)
		if err != nil {
			return r.unrecorded(c, err, false)
		}
		record.finished = []finished{end}
	}
	// The record is kept also when the client is gone or its time is up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
	defer cancel()
	if err := r.audit.keep(ctx, record); err != nil {
		return r.unrecorded(c, err, c.entry.Hints.ReadOnly || untouched(out))
	}
	return answerOf(out).fitting(c.entry.Name)
}

// redacted hides known forms of secrets before anything leaves or is kept.
func (r *Router) redacted(out tool.Outcome) tool.Outcome {
	switch {
	case out.OK != nil:
		out.OK = r.redact.Bytes(out.OK)
	case out.Fault != nil:
		f := *out.Fault
		f.Message, f.Fields = r.redact.String(f.Message), r.redactedFields(f.Fields)
		out.Fault = &f
	case out.Invalid != nil:
		out.Invalid = &fault.InvalidArgument{Parameter: r.redact.String(out.Invalid.Parameter), Message: r.redact.String(out.Invalid.Message)}
	}
	return out
}

// redactedFields are what a fault says besides its sentence.
func (r *Router) redactedFields(fields map[string]any) map[string]any {
	encoded, err := tool.Marshal(fields)
	if err != nil || len(fields) == 0 {
		return nil // what cannot be encoded could not be sent either
	}
	hidden := r.redact.Bytes(encoded)
	if bytes.Equal(hidden, encoded) {
		return fields
	}
	var parts map[string]json.RawMessage
	if json.Unmarshal(hidden, &parts) != nil {
		return nil
	}
	out := make(map[string]any, len(parts))
	for name, part := range parts {
		out[name] = part
	}
	return out
}

// unrecorded answers instead of a call whose audit row could not be written.
func (r *Router) unrecorded(c *call, cause error, harmless bool) answer {
	r.Log.Error("audit row not written", "request_id", c.requestID, "tool", r.named(c.name), "error", cause)
	if harmless && !passing(cause) {
		return answerOf(tool.Outcome{Fault: fault.New(fault.Internal,
			"the call could not be recorded, so it was not done; the operator finds the cause in the log under request %s", c.requestID)})
	}
	if harmless {
		return answerOf(tool.Outcome{Fault: fault.Retry(fault.Unavailable, 2*time.Second,
			"the database is not reachable, so the call could not be recorded; nothing was changed, try again in a few seconds")})
	}
	return answerOf(tool.Outcome{Fault: fault.Retry(fault.OutcomeUnknown, 2*time.Second,
		"the call ran but could not be recorded, so its result is withheld; look whether the change was made before you repeat it")})
}

// untouched reports whether the outcome of a write says for certain that it did
// nothing. Whatever is not listed may have been done, or half of it.
func untouched(out tool.Outcome) bool {
	if out.Invalid != nil {
		return true
	}
	return out.Fault != nil && slices.Contains([]fault.Reason{fault.Unavailable, fault.SidecarUnreachable, fault.NotConfigured,
		fault.NotFound, fault.Conflict, fault.Denied}, out.Fault.Reason)
}

// passing reports whether an error of the database goes away by itself.
func passing(err error) bool {
	_, said := fault.Of(err) // package postgres has said so
	return said || postgres.Away(err) || errors.Is(err, context.DeadlineExceeded)
}

// refuseNotification: a tools/call without an id could never be answered, so
// it does not run; the attempt is recorded.
func (r *Router) refuseNotification(ctx context.Context, w http.ResponseWriter, c *call) {
	row := r.row(c, "decision")
	row.Decision, row.Reason = "refused", "no_id"
	if err := r.audit.write(ctx, row); err != nil {
		r.unavailable(ctx, w, c.message, err)
		return
	}
	rpcErrorf(codeInvalidRequest, "tools/call needs an id; without one nothing is run").write(w, http.StatusBadRequest)
}

// refuseFlood answers a credential that sends too much, whatever it sends.
func (r *Router) refuseFlood(ctx context.Context, w http.ResponseWriter, c *call, d policy.Decision) {
	// One row a minute tells of a flood; a row for each request would be one.
	key := "flood-row " + c.snapshot.Agent.ID + " " + c.snapshot.Caller.Credential
	if wait, err := standing.Take(ctx, r.DB, key, standing.Limit{Burst: 1, PerMinute: 1}); err != nil || wait == 0 {
		row := r.row(c, "decision")
		row.Decision, row.Reason = "refused", d.Reason
		if err := r.audit.write(ctx, row); err != nil {
			r.unavailable(ctx, w, c.message, err)
			return
		}
	}
	tooMany(w, c.message, c.snapshot.FloodWait, "this credential sends too many requests")
}
