package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
)

var (
	errCancelled = errors.New("cancelled by the client")
	errDrained   = errors.New("input ended")
	errEnough    = errors.New("nothing more is awaited")
)

// call is one message on its way. answered and opens belong to its goroutine.
type call struct {
	message
	ctx    context.Context
	cancel context.CancelCauseFunc

	dropped  atomic.Bool     // cancelled by the client: nothing more is written
	sent     atomic.Bool     // the request has left, so its outcome may be unknown
	after    <-chan struct{} // the handshake to wait for, nil for none
	opens    chan struct{}   // this call is the handshake others wait for
	weight   int64
	answered bool
}

// key is the call's place in pump.calls. What has no id of the client's own
// shares the place "", which no cancellation can name.
func (c *call) key() string {
	if c.reply || c.id == nil {
		return ""
	}
	return idKey(c.id)
}

// open lets the messages behind a handshake go.
func (c *call) open() {
	if c.opens != nil {
		close(c.opens)
		c.opens = nil
	}
}

// read takes lines until the input ends (nil), fails, or the pump stops.
func (p *pump) read() error {
	lines := newLineReader(p.In, 64<<10, p.MaxLine)
	bom := []byte("\xef\xbb\xbf") // some shells begin a pipe with one
	for {
		line, err := lines.next()
		line = bytes.TrimPrefix(line, bom)
		bom = nil
		var m message
		switch {
		case errors.Is(err, errLineTooLong):
			id, err := lines.skip(line)
			if err != nil {
				return err
			}
			m.refusal = errorLine(id, codeInvalid, fmt.Sprintf("message longer than %d bytes, send a smaller one", p.MaxLine),
				&errorData{Reason: "too_large"})
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		default:
			if line = bytes.Trim(line, " \t\r"); len(line) == 0 {
				continue
			}
			m = readMessage(line)
		}
		if !p.accept(m) {
			return nil
		}
	}
}

// accept starts a message and reports whether the pump still takes more. A
// call is findable by its id before accept returns, so a cancellation on the
// very next line meets it.
func (p *pump) accept(m message) bool {
	if m.refusal == nil && m.method == methodCancelled && m.id == nil {
		p.cancelCalls(m.cancels)
		return true
	}
	c := &call{message: m, after: p.gate}
	c.weight = int64(min(len(m.body)+messageWeight, p.ReadAhead))
	if p.ahead.Acquire(p.ctx, c.weight) != nil {
		return false
	}
	c.ctx, c.cancel = context.WithCancelCause(p.ctx)
	if m.method == methodInitialize && m.id != nil {
		c.opens = make(chan struct{})
		p.gate = c.opens
	}
	if !p.begin(c) {
		c.cancel(nil)
		return false
	}
	go p.run(c)
	return true
}

func (p *pump) begin(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.active++
	p.calls[c.key()] = append(p.calls[c.key()], c)
	return true
}

func (p *pump) end(c *call) {
	c.cancel(nil)
	c.open()
	p.forget(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.active--
	if p.closed && p.active == 0 {
		close(p.idle)
	}
}

// forget makes a later cancellation of an answered call meet nothing.
func (p *pump) forget(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := slices.DeleteFunc(p.calls[c.key()], func(other *call) bool { return other == c })
	if len(rest) == 0 {
		delete(p.calls, c.key())
		return
	}
	p.calls[c.key()] = rest
}

// cancelCalls ends the running and waiting calls with this id. Unknown and
// finished ids are no error: the notification may have crossed the answer.
func (p *pump) cancelCalls(id json.RawMessage) {
	if id == nil {
		p.Log.Debug("cancellation without requestId ignored")
		return
	}
	p.mu.Lock()
	found := slices.Clone(p.calls[idKey(id)])
	p.mu.Unlock()
	for _, c := range found {
		c.dropped.Store(true)
		c.cancel(errCancelled)
	}
	p.Log.Debug("cancellation", "calls", len(found))
}

// abandon ends the calls that outlasted the input, and counts them.
func (p *pump) abandon() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, calls := range p.calls {
		for _, c := range calls {
			c.cancel(errDrained)
			n++
		}
	}
	return n
}

// run carries one message from waiting to its end.
func (p *pump) run(c *call) {
	defer p.end(c)
	if c.refusal != nil {
		p.write(c, c.refusal)
		p.ahead.Release(c.weight)
		return
	}
	admitted := p.admit(c)
	p.ahead.Release(c.weight)
	if !admitted {
		p.fail(c, failure{})
		return
	}
	defer func() { <-p.slots }()
	p.post(c)
}

// admit waits for the handshake and then for a place among the POSTs.
func (p *pump) admit(c *call) bool {
	if c.after != nil {
		select {
		case <-c.after:
		case <-c.ctx.Done():
			return false
		}
	}
	select {
	case p.slots <- struct{}{}:
		return c.ctx.Err() == nil || p.leave()
	case <-c.ctx.Done():
		return false
	}
}

// leave gives a place back that a call cancelled meanwhile does not need.
func (p *pump) leave() bool {
	<-p.slots
	return false
}
