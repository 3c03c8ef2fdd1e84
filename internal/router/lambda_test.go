package router_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"pawgate/internal/caller"
	"pawgate/internal/router"
	"pawgate/internal/serve"
	"pawgate/internal/tool"
)

// invoke is a Lambda API of one function.
type invoke func(context.Context, *lambda.InvokeInput) (*lambda.InvokeOutput, error)

func (f invoke) Invoke(ctx context.Context, in *lambda.InvokeInput, _ ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	return f(ctx, in)
}

// function places the probe in a function reached through client.
func function(client router.Invoker, signer caller.Signer) func(*router.Config) {
	return func(c *router.Config) {
		c.Timeout = 2 * time.Second
		c.Backends = map[string]router.Backend{"probe": router.Function{
			Client: func() (router.Invoker, error) { return client, nil }, Name: "probe", Signer: signer, Now: time.Now}}
	}
}

func newSigner(t *testing.T) (caller.Signer, string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return caller.NewSigner(private, time.Now), caller.FormatKey(public)
}

// TestFunction: router and category speak through the Invoke API.
func TestFunction(t *testing.T) {
	signer, public := newSigner(t)
	host, err := serve.NewHost((&probe{release: make(chan struct{})}).category(), serve.Config{PublicKey: public}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, function(invoke(func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
		var call tool.Call
		if err := json.Unmarshal(in.Payload, &call); err != nil {
			return nil, err
		}
		payload, err := tool.Marshal(host.Handle(ctx, call))
		return &lambda.InvokeOutput{StatusCode: 200, Payload: payload}, err
	}), signer))
	if got := g.post(callBody("probe_echo", `{"text":"<&> 備份"}`)).wantOK(t); got["text"] != "<&> 備份" || got["agent"] != "alice" {
		t.Errorf("got %v", got)
	}
	g.post(callBody("probe_fault", `{}`)).wantFault(t, "probe_busy")
	g.post(callBody("probe_write", `{}`)).wantError(t, 200, -32602, "input")
	g.post(callBody("probe_slow", `{}`)).wantFault(t, "deadline_exceeded")
}

// TestFunctionFailures: what goes wrong on the way says whether the call may
// have run.
func TestFunctionFailures(t *testing.T) {
	signer, _ := newSigner(t)
	unhandled := "Unhandled"
	for _, c := range []struct {
		name        string
		out         *lambda.InvokeOutput
		err         error
		read, write string
	}{
		{"throttled", nil, &types.TooManyRequestsException{}, "unavailable", "unavailable"},
		{"not deployed", nil, &types.ResourceNotFoundException{}, "not_configured", "not_configured"},
		{"connection lost", nil, io.ErrUnexpectedEOF, "unavailable", "outcome_unknown"},
		{"H71 a message with an ARN", nil, errors.New("AccessDenied arn:aws:iam::123456789012:role/x"), "unavailable", "outcome_unknown"},
		{"the function broke", &lambda.InvokeOutput{FunctionError: &unhandled, Payload: []byte(`{"errorMessage":"secret-detail"}`)}, nil, "function_failed", "function_failed"},
		{"an answer that is none", &lambda.InvokeOutput{Payload: []byte(`"x"`)}, nil, "unavailable", "outcome_unknown"},
		{"a result that is a number", &lambda.InvokeOutput{Payload: []byte(`{"ok":5}`)}, nil, "unavailable", "outcome_unknown"},
		{"a result that is null", &lambda.InvokeOutput{Payload: []byte(`{"ok":null}`)}, nil, "unavailable", "outcome_unknown"},
		{"an empty outcome", &lambda.InvokeOutput{Payload: []byte(`{}`)}, nil, "unavailable", "outcome_unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sent atomic.Int64
			g := newGate(t, function(invoke(func(context.Context, *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
				sent.Add(1)
				return c.out, c.err
			}), signer))
			for body, reason := range map[string]string{callBody("probe_echo", `{}`): c.read, callBody("probe_write", `{"input":"x"}`): c.write} {
				r := g.post(body)
				r.wantFault(t, reason)
				for _, leak := range []string{"arn:", "123456789012", "secret-detail"} {
					if strings.Contains(r.Body, leak) {
						t.Errorf("%s leaked: %s", leak, r.Body)
					}
				}
			}
			if sent.Load() != 2 {
				t.Errorf("2 calls were sent %d times", sent.Load())
			}
		})
	}
}

// TestInvokerSendsOnce: the SDK's own retries never send a call again.
func TestInvokerSendsOnce(t *testing.T) {
	var sent atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer api.Close()
	client, err := router.NewInvoker(router.AWS{Endpoint: api.URL, Region: "eu-west-1", AccessKeyID: "x", SecretKey: "x"})
	if err != nil {
		t.Fatal(err)
	}
	name := "probe"
	if _, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name, Payload: []byte(`{}`)}); err == nil {
		t.Fatal("no error")
	}
	if sent.Load() != 1 {
		t.Errorf("sent %d times", sent.Load())
	}
}
