package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

const (
	methodInitialize = "initialize"
	methodCancelled  = "notifications/cancelled"

	codeParse    = -32700
	codeInvalid  = -32600
	codeInternal = -32603
)

// message is one line from the client and what the transport needs to know of
// it. Members are matched by their exact names: encoding/json would also take
// "Name" for "name", and a header must not say something else than the body.
type message struct {
	body    []byte
	id      json.RawMessage // nil if the line has no id
	method  string          // "" if it has none
	reply   bool            // the client's answer to a request of the server
	meta    string          // protocol version in _meta: revision 2026-07-28 and later
	name    string          // what goes into Mcp-Name
	cancels json.RawMessage // the request that this line cancels
	refusal []byte          // answer of our own; the line is not sent
}

// readMessage looks at one line. What is not JSON at all, or not an object, is
// refused here, because no endpoint could say more about it; everything else
// is left to the endpoint's judgement.
func readMessage(line []byte) message {
	object, err := members(line)
	switch {
	case err != nil:
		return message{refusal: errorLine(nil, codeParse, "parse error: "+err.Error(), nil)}
	case object == nil && line[0] == '[':
		return message{refusal: errorLine(nil, codeInvalid, "batches are not supported, send one message per line", nil)}
	case object == nil:
		return message{refusal: errorLine(nil, codeInvalid, "a message must be a JSON object", nil)}
	}
	m := message{body: line, id: object["id"], method: text(object["method"])}
	_, hasMethod := object["method"]
	m.reply = m.id != nil && !hasMethod && isResponse(object)
	if object["params"] == nil {
		return m
	}
	params, err := members(object["params"])
	if err != nil || params == nil {
		return m
	}
	if m.method == methodCancelled && m.id == nil {
		m.cancels = params["requestId"]
	}
	if meta, err := members(params["_meta"]); err == nil {
		m.meta = text(meta["io.modelcontextprotocol/protocolVersion"])
	}
	switch m.method {
	case "tools/call", "prompts/get":
		m.name = text(params["name"])
	case "resources/read":
		m.name = text(params["uri"])
	}
	return m
}

// expectsAnswer reports whether the client may be waiting: a request, or a line
// so broken that it is neither request, notification nor reply.
func (m message) expectsAnswer() bool {
	return !m.reply && (m.id != nil || m.method == "")
}

// answerID is the id for an answer worded by the pump; nil stands for null.
func (m message) answerID() json.RawMessage {
	if m.reply || !usableID(m.id) {
		return nil
	}
	return m.id
}

// members are the members of a JSON object by exact name; nil without an error
// if the text is another JSON value or empty.
func members(raw []byte) (map[string]json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, nil
	}
	if !utf8.Valid(raw) {
		return nil, errors.New("not valid UTF-8")
	}
	if raw[0] != '{' {
		if !json.Valid(raw) {
			return nil, errors.New("not valid JSON")
		}
		return nil, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("not valid JSON at byte %d", syntax.Offset)
		}
		return nil, errors.New("not valid JSON")
	}
	return object, nil
}

func isResponse(object map[string]json.RawMessage) bool {
	_, result := object["result"]
	_, failed := object["error"]
	return result || failed
}

// text is a JSON string's value, "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// idKey is one spelling for equal ids: numbers to the last digit as written,
// strings by value, because a serializer may write "a/b" as "a\/b". A string
// never equals a number.
func idKey(id json.RawMessage) string {
	if len(id) == 0 || id[0] != '"' || bytes.IndexByte(id, '\\') < 0 {
		return string(id)
	}
	plain, err := json.Marshal(text(id))
	if err != nil {
		return string(id)
	}
	return string(plain)
}

// errorData is the `data` of an error worded by the pump.
type errorData struct {
	Reason       string `json:"reason"`
	HTTPStatus   int    `json:"http_status,omitempty"`
	RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
}

// errorLine is a JSON-RPC error message; a nil id is written as null.
func errorLine(id json.RawMessage, code int, text string, data *errorData) []byte {
	type rpcError struct {
		Code    int        `json:"code"`
		Message string     `json:"message"`
		Data    *errorData `json:"data,omitempty"`
	}
	raw, err := json.Marshal(rpcError{code, text, data})
	if err != nil {
		// Cannot be: the three members are plain strings and numbers.
		raw = []byte(`{"code":-32603,"message":"internal error"}`)
	}
	return withID(id, "error", raw)
}

// withID builds a response around an untouched result or error.
func withID(id json.RawMessage, member string, raw []byte) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	return bytes.Join([][]byte{[]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"` + member + `":`), raw, []byte("}")}, nil)
}
