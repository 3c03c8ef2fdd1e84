// Package stdio is the pump behind `pawgate mcp-server`: it carries JSON-RPC
// messages between lines on standard input and output and POSTs to one
// streamable-HTTP MCP endpoint. The endpoint is the router in this process
// (see [InProcess]) or a deployed router reached over HTTPS; the pump does not
// know which.
//
// It is a pump and not an MCP server on purpose: a message goes on byte for
// byte, so numbers keep their last digit and every judgement about a message
// stays in the router. It reads only what the stdio transport itself demands:
// the id (to answer, and to cancel), the method (to keep the handshake in
// order), and what revision 2026-07-28 wants repeated in HTTP headers.
//
// Three decisions, with their reasons:
//
//   - notifications/cancelled is not sent on. Over HTTP a request is cancelled
//     by dropping its POST (revision 2026-07-28, basic/patterns/cancellation),
//     and a stateless endpoint could only match the id against other clients'
//     requests.
//   - Messages waiting for a free place are held outside the reader, so that a
//     cancellation is read past them. Past Options.ReadAhead bytes of them the
//     reader stops instead, and with it cancellations further back: memory has
//     an end, and refusing messages would break bulk input from a file.
//   - After the answer of an event stream the stream is read to its end for a
//     short while instead of being closed at once: closing cancels the
//     endpoint's context while it may still be settling the call.
//
// It never writes anything but protocol to its output, never sends a request
// twice, never follows a redirect (the key would travel along), never sends a
// key over plain http to another machine, never acts on a URL that an answer
// contains, never starts a process, and never logs or repeats the body of a
// message or the key.
package stdio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	defaultMaxLine   = 8 << 20
	defaultMaxAnswer = 64 << 20
	defaultInFlight  = 64
	defaultReadAhead = 64 << 20
	defaultDrain     = time.Minute

	// messageWeight is what a waiting message counts beside its own bytes: its
	// goroutine and bookkeeping.
	messageWeight = 8 << 10
	// linger is how long an event stream may go on after its answer.
	linger = time.Second
	// grace is how long cancelled calls may take to notice.
	grace = 2 * time.Second
)

// Options are the ends of the pump and its limits. In, Out and either URL or
// Transport are required; every zero limit has a default.
type Options struct {
	// In is read line by line. If it is an io.Closer it is closed when Run ends
	// before the end of input, which is what frees a blocked reader.
	In io.Reader
	// Out receives one Write per message, never two at a time.
	Out io.Writer
	// Log must not lead to Out. Nil discards.
	Log *slog.Logger

	// URL is the endpoint: https, or http to this machine only. Empty with a
	// Transport means that the transport is the endpoint, as InProcess is.
	URL string
	// Key is sent as bearer token with every POST; empty sends none.
	Key string
	// Transport carries the POSTs; nil is HTTP with the limits of this package.
	Transport http.RoundTripper

	// MaxLine is the longest message read, in bytes; 8 MiB if 0.
	MaxLine int
	// MaxAnswer is the longest message written, in bytes; 64 MiB if 0.
	MaxAnswer int
	// InFlight is how many POSTs may run at once; 64 if 0.
	InFlight int
	// ReadAhead is how many bytes of messages may be read and not yet sent before
	// reading stops; 64 MiB if 0.
	ReadAhead int
	// Drain is how long calls may take once the input has ended; a minute if 0.
	Drain time.Duration
	// Now is the clock for Retry-After dates; time.Now if nil.
	Now func() time.Time
}

// Run pumps until the input ends and what was read is answered (nil), until ctx
// ends (nil: that is how a signal stops it), until the output cannot be
// written, or until calls outlast Drain after the end of input; those are
// answered with an error each before Run returns one.
func Run(ctx context.Context, o Options) error {
	p, err := newPump(ctx, o)
	if err != nil {
		return err
	}
	defer p.tidy()
	defer p.stop(nil)
	ended := make(chan error, 1)
	go func() { ended <- p.read() }()
	select {
	case err := <-ended:
		return p.drain(err)
	case <-p.ctx.Done():
		// The reader is not waited for: a read of a blocking stdin cannot be
		// interrupted, and the process is about to end.
		if c, ok := o.In.(io.Closer); ok {
			c.Close()
		}
		return p.settle(p.close())
	}
}

// pump is one run. Only the reader goroutine touches gate; mu guards what the
// calls share.
type pump struct {
	Options
	endpoint *url.URL
	tidy     func() // closes what newPump opened
	ctx      context.Context
	stop     context.CancelCauseFunc

	ahead *semaphore.Weighted // bytes read and not yet sent
	slots chan struct{}       // POSTs running
	gate  chan struct{}       // closed once the last initialize is answered

	mu      sync.Mutex
	calls   map[string][]*call // by id key; a client may reuse an id in error
	active  int
	closed  bool
	idle    chan struct{} // closed when closed and active is 0
	version string        // negotiated by initialize

	out   sync.Mutex
	frame []byte
}

func newPump(ctx context.Context, o Options) (*pump, error) {
	if o.In == nil || o.Out == nil {
		return nil, errors.New("start stdio pump: no input or no output")
	}
	endpoint, err := checkEndpoint(&o)
	if err != nil {
		return nil, err
	}
	tidy := func() {}
	if o.Transport == nil {
		t := newTransport()
		o.Transport, tidy = t, t.CloseIdleConnections
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.MaxLine = cmp.Or(o.MaxLine, defaultMaxLine)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, defaultMaxAnswer)
	o.InFlight = cmp.Or(o.InFlight, defaultInFlight)
	o.ReadAhead = cmp.Or(o.ReadAhead, defaultReadAhead)
	o.Drain = cmp.Or(o.Drain, defaultDrain)
	p := &pump{
		Options:  o,
		endpoint: endpoint,
		tidy:     tidy,
		ahead:    semaphore.NewWeighted(int64(o.ReadAhead)),
		slots:    make(chan struct{}, o.InFlight),
		calls:    map[string][]*call{},
		idle:     make(chan struct{}),
	}
	p.ctx, p.stop = context.WithCancelCause(ctx)
	return p, nil
}

// drain waits for the calls that were read before the input ended.
func (p *pump) drain(readErr error) error {
	idle := p.close()
	timer := time.NewTimer(p.Drain)
	defer timer.Stop()
	select {
	case <-idle:
	case <-p.ctx.Done():
		return p.settle(idle)
	case <-timer.C:
		late := p.abandon()
		err := p.settle(idle)
		return cmp.Or(err, fmt.Errorf("wait for answers: %d calls unanswered %s after the input ended", late, p.Drain))
	}
	if err := p.failure(); err != nil {
		return err
	}
	if readErr != nil {
		return fmt.Errorf("read message: %w", readErr)
	}
	return nil
}

// settle waits a moment for cancelled calls. One that is blocked writing to an
// output nobody reads cannot be freed, so the wait is bounded.
func (p *pump) settle(idle <-chan struct{}) error {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
		p.Log.Warn("calls did not end when cancelled")
	}
	return p.failure()
}

// failure is what broke the output, if anything did.
func (p *pump) failure() error {
	var broken *outputError
	if errors.As(context.Cause(p.ctx), &broken) {
		return broken
	}
	return nil
}

// close takes no more calls; the channel it returns is closed when the last
// running one has ended.
func (p *pump) close() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		if p.active == 0 {
			close(p.idle)
		}
	}
	return p.idle
}
