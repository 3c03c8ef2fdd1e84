package router

import (
	"bytes"
	"net/http"

	"pawgate/internal/tool"
)

// mcp-go speaks the protocol; what it does not need to understand is spliced
// into its answer: the id exactly as it came (mcp-go reads integers through
// float64), the tools of a list pre-encoded, a category's result unchanged,
// and the JSON-RPC error that a handler of mcp-go cannot choose. These are the
// texts that stand for them in between. None can occur inside a JSON string,
// where quotation marks are escaped.
const (
	idPlaceholder    = `"id":"pawgate-id"`
	placeholderID    = "pawgate-id"
	listPlaceholder  = `"tools":[]`
	callPlaceholder  = `"content":[]`
	placeholderError = "pawgate-error"
	errorPlaceholder = `{"code":-32603,"message":"pawgate-error"}`
)

// splicer is the ResponseWriter that mcp-go writes to. The first WriteHeader
// wins, and the status waits for the body, because an error chosen by the
// router decides the status too.
type splicer struct {
	http.ResponseWriter
	call   *call
	status int
	sent   bool
	tools  func() []byte // the elements of a list, already joined
	events bool          // a question or progress went out before the answer, so all is server-sent events
}

// Header is of no effect once it was sent: mcp-go sets a media type of its own
// when the answer follows progress, and not every writer took a copy.
func (s *splicer) Header() http.Header {
	if s.sent {
		return http.Header{}
	}
	return s.ResponseWriter.Header()
}

func (s *splicer) WriteHeader(status int) {
	if s.status == 0 {
		s.status = status
	}
}

func (s *splicer) Write(p []byte) (int, error) {
	out := bytes.Replace(p, []byte(idPlaceholder), append([]byte(`"id":`), orNull(s.call.message.id)...), 1)
	if s.tools != nil {
		if i := bytes.Index(out, []byte(listPlaceholder)); i >= 0 {
			out = concat(out[:i], []byte(`"tools":[`), s.tools(), []byte(`]`), out[i+len(listPlaceholder):])
			s.tools = nil
		}
	}
	if a := s.call.answer; a != nil {
		out = s.spliceAnswer(out, a)
	}
	s.sendHeader()
	if s.events && !bytes.HasPrefix(out, []byte("event:")) {
		out = asEvent(out)
	}
	if _, err := s.ResponseWriter.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil // what the caller wrote, not what it became
}

// push sends a message of the server's own before the answer.
func (s *splicer) push(message []byte) error {
	if !s.events {
		s.events = true
		s.Header().Set("Content-Type", "text/event-stream")
		s.Header().Set("Cache-Control", "no-cache")
		s.status = http.StatusOK
		s.sendHeader()
	}
	_, err := s.ResponseWriter.Write(asEvent(message))
	s.Flush()
	return err
}

func asEvent(message []byte) []byte {
	return concat([]byte("event: message\ndata: "), bytes.TrimSpace(message), []byte("\n\n"))
}

func (s *splicer) spliceAnswer(out []byte, a *answer) []byte {
	if a.input != nil {
		return out
	}
	if a.rpc != nil {
		if encoded, err := tool.Marshal(a.rpc); err == nil {
			out = bytes.Replace(out, []byte(errorPlaceholder), encoded, 1)
		}
		if !s.sent && s.call.modern && a.rpc.Code == codeInvalidParams {
			s.status = http.StatusBadRequest // revision 2026-07-28 maps −32602 to 400
		}
		return out
	}
	if i := bytes.Index(out, []byte(callPlaceholder)); i >= 0 {
		out = concat(out[:i], a.content(), out[i+len(callPlaceholder):])
	}
	return out
}

func (s *splicer) sendHeader() {
	if !s.sent {
		s.sent = true
		if s.status == 0 {
			s.status = http.StatusOK
		}
		s.ResponseWriter.WriteHeader(s.status)
	}
}

// Flush lets mcp-go stream progress as server-sent events. Where the
// connection cannot stream (Lambda), the events leave in one piece.
func (s *splicer) Flush() {
	s.sendHeader()
	if f, ok := s.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
