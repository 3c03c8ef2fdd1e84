// Package serve hosts a category: as a Lambda function, or over HTTPS on the
// sidecar. Both take the same small JSON call and answer the same outcome.
//
// Nothing reaches a handler without a valid assertion of the router. There is
// one exception, for trying a function out with a committed event under SAM
// local or the emulator: AWS_SAM_LOCAL is "true" and no verify key is
// configured; then the call's own statement of the caller is believed. The
// template always configures the key.
//
// This package links no MCP server and, for Lambda, no HTTP server, which
// keeps the cold start of a category near that of an empty function.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// Config is what every host reads besides its category's own settings.
type Config struct {
	// PublicKey checks assertions: the base64 of an Ed25519 public key.
	PublicKey string     `envconfig:"PAWGATE_ASSERTION_PUBLIC_KEY" desc:"checks the router's assertions (base64, Ed25519)"`
	LogLevel  slog.Level `envconfig:"PAWGATE_LOG_LEVEL" default:"INFO" desc:"DEBUG, INFO, WARN or ERROR"`
	// SAMLocal is set by the SAM CLI in the containers it starts.
	SAMLocal bool `envconfig:"AWS_SAM_LOCAL" desc:"set by the SAM CLI; permits unsigned calls when no key is configured"`
}

// Host answers the calls of one category.
type Host struct {
	table    tool.Table
	verifier *caller.Verifier // nil: unsigned calls are believed
}

// errNoKey is a configuration that would let anybody in.
var errNoKey = errors.New("PAWGATE_ASSERTION_PUBLIC_KEY is not set: a category refuses to start without the key that checks calls; the README makes the pair under Deploying")

// NewHost is a host over a category. It fails without a key, except under
// SAM local.
func NewHost(c tool.Category, cfg Config, now func() time.Time) (*Host, error) {
	h := &Host{table: tool.Assemble(c)}
	if cfg.PublicKey == "" {
		if cfg.SAMLocal {
			return h, nil
		}
		return nil, errNoKey
	}
	key, err := caller.ParsePublicKey(cfg.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("read PAWGATE_ASSERTION_PUBLIC_KEY: %w", err)
	}
	v := caller.NewVerifier(key, c.Name, now)
	h.verifier = &v
	return h, nil
}

// Handle answers one call: assertion, deadline, tool.
func (h *Host) Handle(ctx context.Context, call tool.Call) tool.Outcome {
	if call.V != tool.Version {
		return tool.Outcome{Fault: fault.New(fault.Unavailable, "this category speaks version %d of the call, not %d", tool.Version, call.V)}
	}
	who, err := h.caller(call)
	if err != nil {
		slog.Warn("call refused", "category", h.table.Name, "tool", call.Tool, "request_id", call.RequestID, "error", err)
		return tool.Outcome{Fault: fault.New(fault.Denied, "this call did not come through the router's gate")}
	}
	if !call.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, call.Deadline)
		defer cancel()
	}
	return h.table.Call(ctx, who, call.Tool, call.Arguments)
}

func (h *Host) caller(call tool.Call) (caller.Caller, error) {
	if h.verifier != nil {
		return h.verifier.Verify(call.Assertion, call.Tool, call.Arguments)
	}
	if call.Caller == nil || call.Caller.Agent == "" {
		return caller.Caller{}, errors.New("an unsigned call must state its caller")
	}
	who := *call.Caller
	who.RequestID = call.RequestID
	return who, nil
}
