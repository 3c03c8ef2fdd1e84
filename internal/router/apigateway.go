package router

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"pawgate/internal/fault"
)

// gatewayMargin is how long before the function's end a request is given up,
// so that an answer still leaves.
const gatewayMargin = time.Second

// APIGateway adapts a handler to events of an HTTP API or a Function URL
// (payload format 2.0), with repairs that the adapter needs: header values
// keep their commas, the first WriteHeader wins, a request that cannot be
// parsed is answered and is not an error of the function, and the gateway's
// context travels in the context, never in a header that a client could set.
func APIGateway(h http.Handler) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return func(ctx context.Context, event events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		ctx, release := beforeEnd(ctx)
		defer release()
		w := core.NewProxyResponseWriterV2()
		if req, err := gatewayRequest(ctx, event); err != nil {
			writeError(w, http.StatusBadRequest, "bad_request", "the request could not be read")
		} else {
			h.ServeHTTP(&onceWriter{ResponseWriter: w}, req)
		}
		resp, err := w.GetProxyResponse()
		if err != nil { // the handler wrote nothing, which none of ours does
			slog.Error("empty response", "error", err)
			return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusInternalServerError,
				Body: `{"error":"` + string(fault.Internal) + `"}`}, nil
		}
		resp.MultiValueHeaders = nil // API Gateway would send both, doubled
		return resp, nil
	}
}

// beforeEnd ends a context a little before the function itself ends.
func beforeEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end.Add(-gatewayMargin))
}

func gatewayRequest(ctx context.Context, event events.APIGatewayV2HTTPRequest) (*http.Request, error) {
	var accessor core.RequestAccessorV2
	req, err := accessor.EventToRequestWithContext(ctx, event)
	if err != nil {
		return nil, err
	}
	req.Header = make(http.Header, len(event.Headers)) // the adapter splits values at commas
	for name, value := range event.Headers {
		req.Header.Set(name, value)
	}
	if len(event.Cookies) > 0 {
		req.Header.Set("Cookie", strings.Join(event.Cookies, "; "))
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	req.RemoteAddr = event.RequestContext.HTTP.SourceIP
	return req, nil
}

// onceWriter lets the first status win, as net/http does, and takes a Flush
// without effect, so that progress leaves in one piece with the answer.
type onceWriter struct {
	http.ResponseWriter
	wrote bool
}

func (w *onceWriter) WriteHeader(status int) {
	if !w.wrote {
		w.wrote = true
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *onceWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

// Flush does nothing: the gateway takes one piece.
func (w *onceWriter) Flush() {}
