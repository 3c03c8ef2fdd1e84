package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// gateTool is the one tool that mcp-go knows. Every tools/call arrives at its
// handler; the name the client gave is in the call. Registering the catalogue
// with mcp-go as well would cost each cold start some milliseconds and add
// nothing: the list is spliced and the gate finds the tool.
const gateTool = "pawgate"

// Instructions are what initialize and server/discover tell a model, and the
// model loop tells its own.
const Instructions = "Tools for memory, agents, messaging, the web, local models and more. " +
	"A refusal says why and what to do; call tool_preflight, where it is listed, to ask before acting."

type callKey struct{}

// newMCP is the protocol layer: both generations of MCP, stateless, without
// anything that mcp-go keeps per session (its stateless mode shares that
// between all callers).
func newMCP(version string, serve func(context.Context, *call) answer) http.Handler {
	s := server.NewMCPServer("pawgate", version,
		server.WithToolCapabilities(false), // the list does not announce changes: nothing could be told to a stateless client
		server.WithInstructions(Instructions),
		server.WithMethodCacheHints(mcp.MethodToolsList, 60_000, mcp.CacheScopePrivate),
		server.WithToolFilter(func(ctx context.Context, tools []mcp.Tool) []mcp.Tool {
			if c, ok := ctx.Value(callKey{}).(*call); ok && c.message.method == "tools/call" {
				return tools
			}
			return nil
		}))
	s.AddTool(mcp.NewToolWithRawSchema(gateTool, "", []byte(`{"type":"object"}`)),
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			c, ok := ctx.Value(callKey{}).(*call)
			if !ok {
				return nil, errors.New("call without its context")
			}
			ctx, cancel := c.bound(ctx)
			defer cancel()
			a := serve(ctx, c)
			c.answer = &a
			switch {
			case a.rpc != nil:
				return nil, errors.New(placeholderError)
			case a.input != nil:
				return a.input, nil
			}
			return &mcp.CallToolResult{IsError: a.isError}, nil
		})
	return server.NewStreamableHTTPServer(s, server.WithStateLess(true), server.WithDisableStreaming(true),
		server.WithDisableLocalhostProtection(true)) // hosts and origins are checked before, for every door
}

// forward hands one message to mcp-go and splices its answer.
func forward(h http.Handler, w http.ResponseWriter, r *http.Request, c *call, tools func() []byte) {
	body, matched := c.message.rebuild(r.Header.Get(mcp.HeaderName))
	// mcp-go answers nothing once its context has ended, not even that time is
	// up; so the end of the request reaches the call (see bound), not mcp-go.
	c.request = r.Context()
	inner := r.Clone(context.WithValue(context.WithoutCancel(r.Context()), callKey{}, c))
	inner.Body = io.NopCloser(bytes.NewReader(body))
	inner.ContentLength = int64(len(body))
	inner.Header.Del(mcp.HeaderSessionID) // nothing is kept per session; a stale or foreign id has no effect
	if matched {
		inner.Header.Set(mcp.HeaderName, gateTool)
	}
	s := &splicer{ResponseWriter: w, call: c, tools: tools}
	c.push, c.streams = s.push, readsEvents(r.Header.Values("Accept"))
	h.ServeHTTP(s, inner)
	s.sendHeader()
}

// rebuild is the message as mcp-go gets it: the placeholder id, the gate's
// tool for any tool, no arguments. A Mcp-Name header that does not match the
// body is left for mcp-go to refuse, with both names as they came.
func (m *message) rebuild(nameHeader string) (body []byte, matched bool) {
	params := m.params
	if m.method == "tools/call" {
		name := m.name
		if decoded, ok := mcp.DecodeHeaderValue(nameHeader); nameHeader == "" || ok && decoded == m.name {
			name, matched = gateTool, nameHeader != ""
		}
		params = fmt.Appendf(nil, `{"name":%q`, name)
		if m.meta != nil {
			params = append(append(params, `,"_meta":`...), m.meta...)
		}
		params = append(params, '}')
	}
	body = fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s`, quote(m.method))
	if m.id != nil {
		body = fmt.Appendf(body, `,"id":%q`, placeholderID)
	}
	if params != nil {
		body = append(append(body, `,"params":`...), params...)
	}
	return append(body, '}'), matched
}

func quote(s string) []byte {
	q, err := jsontext.AppendQuote(nil, s)
	if err != nil { // it came out of a strict decoder
		return []byte(`""`)
	}
	return q
}

// modern reports whether the message is of the stateless revision: it states
// its protocol version in _meta.
func (m *message) modern() bool {
	if m.meta == nil {
		return false
	}
	version := member(m.meta, mcp.MetaKeyProtocolVersion)
	s, err := jsontext.AppendUnquote(nil, version)
	return err == nil && mcp.IsModernProtocol(string(s))
}

// member finds one member of an object; nil when it is not there.
func member(object jsontext.Value, name string) jsontext.Value {
	var found jsontext.Value
	_ = members(object, nil, func(n string, v jsontext.Value) *rpcError {
		if n == name {
			found = v.Clone()
		}
		return nil
	})
	return found
}

// bound ends a call's context when the client goes away or time is up, and
// keeps the two apart.
func (c *call) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.request, func() {
		if !errors.Is(c.request.Err(), context.DeadlineExceeded) {
			cancel()
		}
	})
	release := func() { stop(); cancel() }
	deadline, ok := c.request.Deadline()
	if !ok {
		return ctx, release
	}
	ctx, expire := context.WithDeadline(ctx, deadline)
	return ctx, func() { expire(); release() }
}
