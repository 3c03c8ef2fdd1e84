package stdio

import (
	"bytes"
	"encoding/json"
)

// deliver writes one message of the endpoint to the client and reports whether
// it was JSON-RPC at all.
func (p *pump) deliver(c *call, raw []byte) bool {
	object, err := members(raw)
	if err != nil || text(object["jsonrpc"]) != "2.0" {
		return false
	}
	if _, ok := object["method"]; ok {
		p.write(c, oneLine(raw))
		return true
	}
	if !isResponse(object) {
		return false
	}
	p.answer(c, object, raw)
	return true
}

// answer writes a response, once per request and under the request's own id.
func (p *pump) answer(c *call, object map[string]json.RawMessage, raw []byte) {
	failed := object["error"]
	switch {
	case c.answered:
		p.Log.Warn("second answer to one request dropped")
		return
	case !c.expectsAnswer():
		// A notification gets no answer, but a line refused as malformed was
		// not one, and its sender should hear of it (JSON-RPC 2.0, section 5).
		code := errorCode(failed)
		if code == codeParse || code == codeInvalid {
			p.write(c, oneLine(raw))
		}
		if code != 0 {
			p.Log.Warn("message refused by the endpoint", "method", clip(c.method, 64), "code", code)
		}
		return
	}
	line := oneLine(raw)
	if c.id != nil && idKey(object["id"]) != idKey(c.id) {
		if errorCode(failed) == 0 {
			// A result under another id may be another caller's: not passed on.
			p.fail(c, p.wrongID())
			return
		}
		if id := c.answerID(); id != nil {
			line = withID(id, "error", oneLine(failed))
		}
	}
	if c.method == methodInitialize {
		p.negotiated(object["result"])
	}
	c.answered = true
	p.write(c, line)
	p.forget(c)
	c.open()
}

// negotiated remembers the protocol version for the headers of later requests.
func (p *pump) negotiated(result json.RawMessage) {
	object, err := members(result)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = text(object["protocolVersion"])
}

// errorCode is the code of a JSON-RPC error object, 0 if it is none.
func errorCode(raw json.RawMessage) int {
	var e struct {
		Code int `json:"code"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &e) != nil {
		return 0
	}
	return e.Code
}

// oneLine takes the line breaks out of a JSON text and leaves one that has none
// as it is.
func oneLine(raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if !bytes.ContainsAny(raw, "\r\n") {
		return raw
	}
	var b bytes.Buffer
	b.Grow(len(raw))
	if json.Compact(&b, raw) != nil {
		// Cannot be: callers have decoded raw before.
		return bytes.ReplaceAll(raw, []byte("\n"), nil)
	}
	return b.Bytes()
}

// write puts one message on one line. Whether the client cancelled the call is
// asked under the lock, so nothing follows a cancellation that was read before.
func (p *pump) write(c *call, message []byte) {
	p.out.Lock()
	defer p.out.Unlock()
	if c.dropped.Load() || p.ctx.Err() != nil {
		return
	}
	p.frame = append(append(p.frame[:0], message...), '\n')
	if _, err := p.Out.Write(p.frame); err != nil {
		p.stop(&outputError{err})
	}
	if cap(p.frame) > 1<<20 {
		p.frame = nil
	}
}

// outputError is a failed write to the client, which ends the pump.
type outputError struct{ err error }

func (e *outputError) Error() string { return "write message: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }
