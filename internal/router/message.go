package router

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a message. Depth is far above what a tool's arguments need and
// far below what could exhaust a stack; an id longer than a UUID with a prefix
// is somebody probing.
const (
	maxDepth    = 64
	maxIDLength = 256
	// maxTokens bounds the parts of a message: a body of the largest size
	// could otherwise hold half a million names, each of them remembered.
	maxTokens = 100_000
)

// JSON-RPC 2.0 error codes, and those of MCP 2026-07-28 that the router
// answers itself.
const (
	codeParse          = -32700
	codeInvalidRequest = -32600
	codeMethodNotFound = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603

	// Of the range that JSON-RPC leaves to implementations.
	codeUnauthenticated = -32001
	codeRateLimited     = -32029
)

// message is one JSON-RPC message, taken apart strictly: every later layer
// works on these parts and nothing is decoded twice in two ways.
type message struct {
	id     jsontext.Value // raw, to the last digit; nil on a notification
	method string         // empty on a response
	params jsontext.Value // raw object, or nil
	result jsontext.Value // of a response; nil when it is an error

	// Of params, for tools/call and paging.
	name      string
	arguments jsontext.Value
	cursor    string
	meta      jsontext.Value
	ticket    string // makes a repetition of the call recognisable, see parseTicket

	// The answers of a person to what an earlier attempt asked (revision
	// 2026-07-28, multi round-trip requests).
	inputs jsontext.Value
	state  string
}

func (m *message) notification() bool { return m.id == nil }

// The members that mean something, at the top and in params. A key that only
// resembles one (another case, a look-alike letter) is refused, because
// Go's own decoder, and others, would take it for the real one.
var (
	topMembers    = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramsMembers = []string{"name", "arguments", "cursor", "_meta", "inputResponses", "requestState"}
)

// parse takes a message apart. It refuses what JSON leaves to chance:
// duplicate and case-variant members, trailing data, batches, depth, invalid
// UTF-8, and ids that cannot be echoed exactly.
func parse(body []byte) (*message, *rpcError) {
	if err := wellFormed(body); err != nil {
		return nil, err
	}
	switch jsontext.Value(body).Kind() {
	case '{':
	case '[':
		return nil, rpcErrorf(codeInvalidRequest, "a batch is not accepted; send one message at a time")
	default:
		return nil, rpcErrorf(codeInvalidRequest, "a message must be a JSON object")
	}
	m := new(message)
	var version string
	reply := false
	err := members(body, topMembers, func(name string, v jsontext.Value) *rpcError {
		var err *rpcError
		switch name {
		case "jsonrpc":
			version, err = text(name, v)
		case "id":
			m.id, err = v.Clone(), checkID(v)
		case "method":
			m.method, err = text(name, v)
		case "params":
			m.params = v.Clone()
		case "result":
			reply, m.result = true, v.Clone()
		case "error":
			reply = true
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case version != "2.0":
		return nil, rpcErrorf(codeInvalidRequest, `jsonrpc must be "2.0"`).of(m)
	case m.method == "" && !reply:
		return nil, rpcErrorf(codeInvalidRequest, "method is missing").of(m)
	}
	if err := m.parseParams(); err != nil {
		return nil, err.of(m)
	}
	if err := m.parseTicket(); err != nil {
		return nil, err.of(m)
	}
	return m, nil
}

func (m *message) parseParams() *rpcError {
	if m.params == nil {
		return nil
	}
	if k := m.params.Kind(); k != '{' {
		return rpcErrorf(codeInvalidParams, "params must be an object")
	}
	return members(m.params, paramsMembers, func(name string, v jsontext.Value) *rpcError {
		var err *rpcError
		switch name {
		case "name":
			if m.method == "tools/call" {
				m.name, err = text("name", v)
			}
		case "arguments":
			m.arguments = v.Clone()
		case "cursor":
			if v.Kind() != 'n' {
				m.cursor, err = text("cursor", v)
			}
		case "_meta":
			m.meta = v.Clone()
		case "inputResponses":
			m.inputs = v.Clone()
		case "requestState":
			m.state, err = text("requestState", v)
		}
		return err
	})
}

// wellFormed reads every token once.
func wellFormed(body []byte) *rpcError {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body))
	values := 0
	for tokens := 0; ; tokens++ {
		_, err := dec.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			if values != 1 {
				return rpcErrorf(codeParse, "the body must hold exactly one JSON message")
			}
			return nil
		case errors.Is(err, jsontext.ErrDuplicateName):
			return rpcErrorf(codeInvalidRequest, "a member is given twice: %s", short(string(dec.StackPointer())))
		case err != nil:
			return rpcErrorf(codeParse, "the body is not valid JSON at byte %d", dec.InputOffset())
		}
		if tokens > maxTokens {
			return rpcErrorf(codeParse, "the JSON has more than %d parts", maxTokens)
		}
		if dec.StackDepth() > maxDepth {
			return rpcErrorf(codeParse, "the JSON is nested deeper than %d levels", maxDepth)
		}
		if dec.StackDepth() == 0 {
			if values++; values > 1 {
				return rpcErrorf(codeParse, "the body holds something after the JSON message")
			}
		}
	}
}

// members calls visit for the known members of an object and refuses
// look-alikes of them.
func members(object jsontext.Value, known []string, visit func(string, jsontext.Value) *rpcError) *rpcError {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object))
	if _, err := dec.ReadToken(); err != nil {
		return rpcErrorf(codeParse, "the body is not valid JSON")
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return rpcErrorf(codeParse, "the body is not valid JSON")
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return rpcErrorf(codeParse, "the body is not valid JSON")
		}
		if err := lookAlike(name, known); err != nil {
			return err
		}
		if err := visit(name, value); err != nil {
			return err
		}
	}
	return nil
}

func lookAlike(name string, known []string) *rpcError {
	if strings.ContainsRune(name, 0) {
		return rpcErrorf(codeInvalidRequest, "a member's name holds a NUL character")
	}
	for _, k := range known {
		if name != k && strings.EqualFold(name, k) { // EqualFold also folds ſ to s and the Kelvin sign to k
			return rpcErrorf(codeInvalidRequest, "member %q is not %q; names are case-sensitive", short(name), k)
		}
	}
	return nil
}

// checkID accepts what JSON-RPC and MCP allow: a string or an integer.
func checkID(v jsontext.Value) *rpcError {
	switch v.Kind() {
	case '"':
		if len(v) <= maxIDLength {
			return nil
		}
	case '0':
		if len(v) <= maxIDLength && !bytes.ContainsAny(v, ".eE") {
			return nil
		}
	}
	return rpcErrorf(codeInvalidRequest, "id must be a string of at most %d bytes or an integer", maxIDLength)
}

func text(member string, v jsontext.Value) (string, *rpcError) {
	if v.Kind() != '"' {
		return "", rpcErrorf(codeInvalidRequest, "%s must be a string", member)
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil || bytes.IndexByte(s, 0) >= 0 {
		return "", rpcErrorf(codeInvalidRequest, "%s holds an invalid character", member)
	}
	return string(s), nil
}

// short bounds what an error echoes of the input.
func short(s string) string { return shortened(s, 80) }

func shortened(s string, most int) string {
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
