package router

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/go-json-experiment/json/jsontext"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

// Invoker is the one call of the Lambda API that the router makes.
type Invoker interface {
	Invoke(context.Context, *lambda.InvokeInput, ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// AWS is where functions are and who invokes them. Lambda puts all of it in
// the environment.
type AWS struct {
	Region       string `envconfig:"AWS_REGION" desc:"region of the functions; set by Lambda"`
	AccessKeyID  string `envconfig:"AWS_ACCESS_KEY_ID" desc:"credentials to invoke functions; set by Lambda"`
	SecretKey    string `envconfig:"AWS_SECRET_ACCESS_KEY" desc:"their secret part; set by Lambda"`
	SessionToken string `envconfig:"AWS_SESSION_TOKEN" desc:"their session; set by Lambda"`
	Endpoint     string `envconfig:"AWS_ENDPOINT_URL_LAMBDA" desc:"another Lambda API, such as sam local start-lambda"`
}

// NewInvoker is a Lambda client that sends every request exactly once: the
// SDK's own retries could run a write twice. It does not use the SDK's
// configuration chain (profiles, SSO, instance metadata), which costs a cold
// start of the router a sixth of its time.
func NewInvoker(a AWS) (Invoker, error) {
	keys := aws.Credentials{AccessKeyID: a.AccessKeyID, SecretAccessKey: a.SecretKey, SessionToken: a.SessionToken, Source: "environment"}
	if a.Region == "" || !keys.HasKeys() {
		return nil, errors.New("AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set to reach functions")
	}
	options := lambda.Options{
		Region: a.Region, Retryer: aws.NopRetryer{}, HTTPClient: &http.Client{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil }),
	}
	if a.Endpoint != "" {
		options.BaseEndpoint = &a.Endpoint
	}
	return lambda.New(options), nil
}

// Function is a category in a Lambda function of its own.
type Function struct {
	// Client is made at the first call: the SDK's configuration costs a cold
	// start some milliseconds that a tools/list need not pay.
	Client func() (Invoker, error)
	Name   string // name or ARN
	Signer caller.Signer
	Now    func() time.Time
}

// Call invokes the function and waits for its outcome (Lambda API, Invoke,
// RequestResponse).
func (f Function) Call(ctx context.Context, who caller.Caller, entry *catalog.Entry, arguments []byte) tool.Outcome {
	client, err := f.Client()
	if err != nil {
		return tool.Failed(err, who.RequestID)
	}
	payload, err := envelope(ctx, f.Signer, who, entry, arguments)
	if err != nil {
		return tool.Failed(err, who.RequestID)
	}
	out, err := client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &f.Name, Payload: payload})
	if err != nil {
		return f.failed(ctx, who, entry, err)
	}
	if out.FunctionError != nil {
		slog.Error("function failed", "request_id", who.RequestID, "function", f.Name, "kind", *out.FunctionError)
		return tool.Outcome{Fault: fault.New(fault.FunctionFailed, "category %s broke off during %s; %s", entry.Category, entry.Name, mayHaveRun(entry))}
	}
	return decodeOutcome(out.Payload, who, entry)
}

// failed sorts the errors of an invocation by whether the function may have
// run.
func (f Function) failed(ctx context.Context, who caller.Caller, entry *catalog.Entry, err error) tool.Outcome {
	slog.Error("invoke function", "request_id", who.RequestID, "function", f.Name, "error", err)
	if ctx.Err() != nil {
		return lost(ctx, entry)
	}
	var throttled *types.TooManyRequestsException
	var missing *types.ResourceNotFoundException
	switch {
	case errors.As(err, &throttled):
		return tool.Outcome{Fault: fault.Retry(fault.Unavailable, 2*time.Second, "category %s is busy; nothing was done, try again in a few seconds", entry.Category)}
	case errors.As(err, &missing):
		return tool.Outcome{Fault: fault.New(fault.NotConfigured, "category %s is not deployed; the operator checks PAWGATE_FUNCTION_*", entry.Category)}
	case neverConnected(err):
		return tool.Outcome{Fault: fault.Retry(fault.Unavailable, 2*time.Second, "category %s could not be reached; nothing was done, try again", entry.Category)}
	}
	return outcomeUnknown(entry)
}

// envelope is the signed call as a category takes it.
func envelope(ctx context.Context, signer caller.Signer, who caller.Caller, entry *catalog.Entry, arguments []byte) ([]byte, error) {
	assertion, err := signer.Sign(who, entry.Category, entry.Name, arguments)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	return tool.Marshal(tool.Call{V: tool.Version, RequestID: who.RequestID, Tool: entry.Name,
		Arguments: arguments, Deadline: deadline.UTC(), Assertion: assertion})
}

func decodeOutcome(payload []byte, who caller.Caller, entry *catalog.Entry) tool.Outcome {
	var out tool.Outcome
	if err := json.Unmarshal(payload, &out); err != nil || !whole(out) {
		slog.Error("read outcome", "request_id", who.RequestID, "tool", entry.Name, "error", err)
		return outcomeUnknown(entry)
	}
	return out
}

// whole reports whether an outcome is one: a result that is an object, a fault,
// or a broken argument.
func whole(out tool.Outcome) bool {
	return out.Fault != nil || out.Invalid != nil || jsontext.Value(out.OK).Kind() == '{'
}
