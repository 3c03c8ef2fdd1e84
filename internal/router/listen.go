package router

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
)

// listen answers subscriptions/listen (revision 2026-07-28). Nothing here
// changes in a way that could be announced, so the stream says which
// subscriptions there are, none, and ends. mcp-go judges the request; its own
// acknowledgement is written here, because it loses the last notification before
// an answer about every other time.
func (r *Router) listen(w http.ResponseWriter, req *http.Request, c *call) {
	held := &heldAnswer{header: w.Header()}
	forward(r.mcp, held, req, c, nil)
	final := held.lastMessage()
	final = bytes.ReplaceAll(final, []byte(`"`+placeholderID+`"`), orNull(c.message.id)) // the subscription's id is the request's
	if held.status != http.StatusOK || !bytes.Contains(final, []byte(`"result"`)) {
		w.WriteHeader(held.status)
		_, _ = w.Write(final)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	acknowledged := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":{"_meta":{%q:%s},"notifications":{}}}`,
		mcp.MethodNotificationSubscriptionsAcknowledged, mcp.MetaKeySubscriptionID, orNull(c.message.id))
	_, _ = w.Write(asEvent(acknowledged))
	_, _ = w.Write(asEvent(final))
}

// heldAnswer keeps an answer back.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *heldAnswer) Header() http.Header { return h.header }

func (h *heldAnswer) WriteHeader(status int) { h.status = status }

func (h *heldAnswer) Write(p []byte) (int, error) { return h.body.Write(p) }

// lastMessage is the answer without what came before it on a stream.
func (h *heldAnswer) lastMessage() []byte {
	body := bytes.TrimSpace(h.body.Bytes())
	if i := bytes.LastIndex(body, []byte("data: ")); bytes.HasPrefix(body, []byte("event:")) && i >= 0 {
		return body[i+len("data: "):]
	}
	return body
}
