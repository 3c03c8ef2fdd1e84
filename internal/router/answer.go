package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"

	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// rpcError is a JSON-RPC error, for what never became a call.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`

	id jsontext.Value
}

func rpcErrorf(code int, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// of ties the error to the message it answers.
func (e *rpcError) of(m *message) *rpcError {
	e.id = m.id
	return e
}

// reason adds the stable token that programs switch on.
func (e *rpcError) reason(reason fault.Reason) *rpcError {
	e.Data = map[string]any{"reason": reason}
	return e
}

// write sends the error as the whole answer.
func (e *rpcError) write(w http.ResponseWriter, status int) {
	body, err := tool.Marshal(struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *rpcError       `json:"error"`
	}{"2.0", json.RawMessage(orNull(e.id)), e})
	if err != nil { // only a fault's fields could fail to encode
		body = []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"internal error"}}`)
	}
	writeJSON(w, status, body)
}

func orNull(v jsontext.Value) []byte {
	if v == nil {
		return []byte("null")
	}
	return v
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone; nobody is left to tell
}

// answer is what a tools/call comes to: a tool result, or a JSON-RPC error.
type answer struct {
	result  []byte // the result object; nil when rpc is set
	isError bool
	rpc     *rpcError
	input   *mcp.CallToolResult // a question to the person at the client
}

// answerOf renders an outcome (DESIGN, Answers): a success and a fault are
// tool results whose object is both text and structured content; a broken
// argument is a JSON-RPC error.
func answerOf(out tool.Outcome) answer {
	switch {
	case out.Invalid != nil:
		e := rpcErrorf(codeInvalidParams, "%s", out.Invalid.Message)
		e.Data = map[string]any{"reason": "invalid_argument", "parameter": out.Invalid.Parameter}
		return answer{rpc: e}
	case out.Fault != nil:
		encoded, err := tool.Marshal(out.Fault)
		if err != nil {
			encoded, _ = tool.Marshal(fault.New(fault.Internal, "internal error"))
		}
		return answer{result: withStatus("error", encoded), isError: true}
	}
	return answer{result: withStatus("ok", out.OK)}
}

// maxAnswer is the largest answer of a tool, in bytes as it is sent: Lambda
// carries 6 MB, and an event's body is escaped once more, which at worst doubles
// it.
const maxAnswer = 3 << 20

// fitting is the answer, or what is said instead of one that is too large.
func (a answer) fitting(name string) answer {
	if a.rpc != nil || 2*len(a.result) < maxAnswer && len(a.content()) <= maxAnswer {
		return a
	}
	if n := len(a.content()); n > maxAnswer {
		return answerOf(tool.Outcome{Fault: fault.New(fault.TooLarge,
			"%s ran, but its answer has %d bytes and at most %d can be sent; ask for less", name, n, maxAnswer)})
	}
	return a
}

// withStatus puts the status member first in an encoded object.
func withStatus(status string, object []byte) []byte {
	object = bytes.TrimSpace(object)
	out := make([]byte, 0, len(object)+len(status)+14)
	out = fmt.Appendf(out, `{"status":%q`, status)
	if inner := bytes.TrimSpace(object[1 : len(object)-1]); len(inner) > 0 {
		out = append(append(out, ','), inner...)
	}
	return append(out, '}')
}

// content renders the members of a tool result: the same object as text, for
// clients that read content, and as structuredContent, for those (Claude Code)
// that show a model nothing else.
func (a answer) content() []byte {
	quoted, err := jsontext.AppendQuote(nil, a.result)
	if err != nil { // invalid UTF-8 cannot come out of an encoder
		quoted = []byte(`""`)
	}
	out := make([]byte, 0, len(quoted)+len(a.result)+80)
	out = append(out, `"content":[{"type":"text","text":`...)
	out = append(out, quoted...)
	out = append(out, `}],"structuredContent":`...)
	return append(out, a.result...)
}
