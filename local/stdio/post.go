package stdio

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"
)

// ackWait is how long the POST of a message that gets no answer may take; it
// must not hold its place for ever.
const ackWait = 30 * time.Second

// post sends one message and carries what comes back to the output.
func (p *pump) post(c *call) {
	if !c.expectsAnswer() {
		timer := time.AfterFunc(ackWait, func() { c.cancel(errEnough) })
		defer timer.Stop()
	}
	start := p.Now()
	resp, err := p.send(c)
	if err != nil {
		p.fail(c, p.sendFailure(c, err))
		return
	}
	defer resp.Body.Close()
	c.sent.Store(true)
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == "text/event-stream" {
		p.receiveEvents(c, resp)
	} else {
		p.receiveBody(c, resp)
	}
	p.Log.Debug("message done", "method", clip(c.method, 64), "http_status", resp.StatusCode, "took", p.Now().Sub(start))
}

// send makes the one POST. It goes to the transport and not through an
// http.Client, which would follow redirects.
func (p *pump) send(c *call) (*http.Response, error) {
	ctx := httptrace.WithClientTrace(c.ctx, &httptrace.ClientTrace{WroteHeaders: func() { c.sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.endpoint.String(), bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	p.setHeaders(req.Header, c.message)
	return p.Transport.RoundTrip(req)
}

// setHeaders adds the headers of MCP's streamable HTTP: for a message of a
// stateless revision what its body says (2026-07-28, basic/transports/
// streamable-http), for an older one the version that initialize settled on.
// Mcp-Param-* headers would need the tools' schemas and are not made; the
// router publishes no tool that asks for them.
func (p *pump) setHeaders(h http.Header, m message) {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	h.Set("User-Agent", "pawgate-stdio")
	if p.Key != "" {
		h.Set("Authorization", "Bearer "+p.Key)
	}
	version := m.meta
	if version == "" && m.method != methodInitialize {
		p.mu.Lock()
		version = p.version
		p.mu.Unlock()
	}
	setHeader(h, "Mcp-Protocol-Version", version)
	if m.meta != "" {
		setHeader(h, "Mcp-Method", m.method)
		setHeader(h, "Mcp-Name", m.name)
	}
}

func setHeader(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, encodeHeader(value))
	}
}

// encodeHeader writes a value as SEP-2243 has it: visible ASCII as it is, all
// else, and what would read as encoded, in base64 between markers.
func encodeHeader(s string) string {
	const prefix, suffix = "=?base64?", "?="
	plain := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) &&
		strings.Trim(s, " ") == s &&
		!(strings.HasPrefix(s, prefix) && strings.HasSuffix(s, suffix))
	if plain {
		return s
	}
	return prefix + base64.StdEncoding.EncodeToString([]byte(s)) + suffix
}

// receiveBody carries an answer that is one message, or none.
func (p *pump) receiveBody(c *call, resp *http.Response) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(p.MaxAnswer)+1))
	switch {
	case err != nil:
		p.fail(c, p.sendFailure(c, err))
		return
	case len(body) > p.MaxAnswer:
		p.fail(c, p.tooLarge())
		return
	}
	// A refused key is reported in the pump's own words even when the body is
	// JSON-RPC: only the pump knows which variable holds the key.
	delivered := resp.StatusCode != http.StatusUnauthorized && p.deliver(c, body)
	if (c.expectsAnswer() && !c.answered) || (!delivered && resp.StatusCode >= 300) {
		p.fail(c, p.statusFailure(resp, body))
	}
}

// receiveEvents carries an answer that is an event stream: every event's data
// is one message, written out as it arrives.
func (p *pump) receiveEvents(c *call, resp *http.Response) {
	events := newEventReader(resp.Body, p.MaxAnswer)
	for {
		data, err := events.next()
		switch {
		case err == io.EOF:
			if c.expectsAnswer() && !c.answered {
				p.fail(c, p.unanswered(resp))
			}
			return
		case err == errLineTooLong:
			p.fail(c, p.tooLarge())
			return
		case err != nil:
			p.fail(c, p.sendFailure(c, err))
			return
		}
		waiting := !c.answered
		if !p.deliver(c, data) {
			p.Log.Warn("event that is no JSON-RPC message skipped", "bytes", len(data))
		}
		if waiting && c.answered {
			timer := time.AfterFunc(linger, func() { c.cancel(errEnough) })
			defer timer.Stop()
		}
	}
}
