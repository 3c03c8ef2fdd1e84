package router

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/tool"
)

const (
	// progressEvery is the least time between two notifications of a call.
	progressEvery = 250 * time.Millisecond
	// maxProgress is how many bytes of a handler's words one carries.
	maxProgress = 300
)

// progress sends a client the progress of one call, as notifications before
// the answer (MCP 2025-11-25 and 2026-07-28, Progress): only to a client that
// gave a token for it and reads event streams, never a value that does not grow,
// and never after the call.
type progress struct {
	token  jsontext.Value
	push   func([]byte) error
	redact func(string) string
	now    func() time.Time

	mu     sync.Mutex
	ended  bool
	last   time.Time
	done   float64
	some   bool
	failed bool // the client is gone; the call hears of it by its context
}

// progress lets the client hear of a call's progress, where it asked to.
func (r *Router) progress(ctx context.Context, c *call) (context.Context, func()) {
	if c.push == nil || !c.streams || c.message.meta == nil || c.message.meta.Kind() != '{' {
		return ctx, func() {}
	}
	token := member(c.message.meta, "progressToken")
	if token == nil || checkID(token) != nil { // a string or an integer, as an id
		return ctx, func() {}
	}
	p := &progress{token: token, push: c.push, redact: r.redact.String, now: r.Now}
	return tool.WithProgress(ctx, p.report), p.end
}

func (p *progress) report(now tool.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.now()
	if p.ended || p.failed || p.some && (now.Done <= p.done || at.Sub(p.last) < progressEvery) {
		return
	}
	now.Message = shortened(p.redact(now.Message), maxProgress)
	params, err := tool.Marshal(now)
	if err != nil { // not a number
		return
	}
	p.some, p.done, p.last = true, now.Done, at
	p.failed = p.push(concat([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`), p.token, []byte(`,`),
		bytes.TrimPrefix(params, []byte(`{`)), []byte(`}`))) != nil
}

// end lets nothing pass any more: the answer follows.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}
