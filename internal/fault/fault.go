// Package fault holds the errors that are worded for the caller of a tool.
//
// Every other error is an accident: it is logged with its cause and shown to
// the caller as "internal error". A fault is the opposite: a sentence that a
// model can act on, and a stable token that a program can switch on. A fault
// never carries a secret, a database message or a path of the host.
package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Reason is the stable token of a fault. Clients may depend on the values;
// they are never renamed.
type Reason string

// The reasons that more than one place uses. A category may add tokens of its
// own; they are snake_case like these.
const (
	NotFound           Reason = "not_found"
	Conflict           Reason = "conflict"
	Denied             Reason = "denied"
	Unavailable        Reason = "unavailable"
	Internal           Reason = "internal"
	TooLarge           Reason = "too_large"
	RateLimited        Reason = "rate_limited"
	ApprovalRequired   Reason = "approval_required"
	Stopped            Reason = "stopped"
	Edition            Reason = "edition"
	Ungranted          Reason = "grant_required"
	Forbidden          Reason = "forbidden_by_rule"
	BudgetExceeded     Reason = "budget_exceeded"
	InProgress         Reason = "in_progress"
	DeadlineExceeded   Reason = "deadline_exceeded"
	Cancelled          Reason = "cancelled"
	OutcomeUnknown     Reason = "outcome_unknown"
	SidecarUnreachable Reason = "sidecar_unreachable"
	FunctionFailed     Reason = "function_failed"
	NotConfigured      Reason = "not_configured"
)

// Fault is an error for the caller: what is wrong, and what to do about it.
type Fault struct {
	Reason  Reason
	Message string
	// RetryAfter is how long to wait before trying again; zero means that
	// waiting is not the remedy.
	RetryAfter time.Duration
	// Fields are further members of the answer, such as an approval's id.
	Fields map[string]any
}

// New is a fault with a reason and a formatted sentence.
func New(reason Reason, format string, args ...any) *Fault {
	return &Fault{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Retry is a fault that goes away by waiting.
func Retry(reason Reason, after time.Duration, format string, args ...any) *Fault {
	f := New(reason, format, args...)
	f.RetryAfter = after
	return f
}

// With adds a member to the answer and returns the same fault.
func (f *Fault) With(key string, value any) *Fault {
	if f.Fields == nil {
		f.Fields = map[string]any{}
	}
	f.Fields[key] = value
	return f
}

func (f *Fault) Error() string { return f.Message }

// Of finds the fault in an error's chain.
func Of(err error) (*Fault, bool) {
	var f *Fault
	ok := errors.As(err, &f)
	return f, ok
}

// MarshalJSON writes the wire form: error, reason, retry_after_ms, and the
// further members beside them.
func (f *Fault) MarshalJSON() ([]byte, error) {
	m := make(map[string]any, len(f.Fields)+3)
	for k, v := range f.Fields {
		m[k] = v
	}
	m["error"] = f.Message
	m["reason"] = f.Reason
	if f.RetryAfter > 0 {
		m["retry_after_ms"] = f.RetryAfter.Milliseconds()
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads the wire form back.
func (f *Fault) UnmarshalJSON(b []byte) error {
	var known struct {
		Error  string `json:"error"`
		Reason Reason `json:"reason"`
		Retry  int64  `json:"retry_after_ms"`
	}
	if err := json.Unmarshal(b, &known); err != nil {
		return fmt.Errorf("read fault: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		return fmt.Errorf("read fault fields: %w", err)
	}
	for _, k := range []string{"error", "reason", "retry_after_ms"} {
		delete(fields, k)
	}
	*f = Fault{Reason: known.Reason, Message: known.Error, RetryAfter: time.Duration(known.Retry) * time.Millisecond}
	if len(fields) > 0 {
		f.Fields = fields
	}
	return nil
}

// InvalidArgument is a broken argument. It becomes a JSON-RPC error −32602,
// not a tool result, because the call never ran.
type InvalidArgument struct {
	Parameter string `json:"parameter"`
	Message   string `json:"error"`
}

// Invalid says what is wrong with one parameter; the sentence names it.
func Invalid(parameter, format string, args ...any) *InvalidArgument {
	return &InvalidArgument{Parameter: parameter, Message: fmt.Sprintf(format, args...)}
}

func (e *InvalidArgument) Error() string { return e.Message }

// InvalidOf finds the broken argument in an error's chain.
func InvalidOf(err error) (*InvalidArgument, bool) {
	var e *InvalidArgument
	ok := errors.As(err, &e)
	return e, ok
}
