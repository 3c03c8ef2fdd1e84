package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"pawgate/internal/operator"
	"pawgate/internal/settings"
)

// stackSettings are what --stack reads from the environment, besides what the
// AWS SDK reads by itself.
type stackSettings struct {
	AdminFunction string `envconfig:"PAWGATE_ADMIN_FUNCTION" desc:"function that --stack NAME invokes; unset: NAME-admin"`
}

// stackRunner sends commands to the admin function of a deployment (Lambda
// API, Invoke). A command is sent once: repeating a lost one could make a
// second key.
func stackRunner(ctx context.Context, stack string) (runner, error) {
	var s stackSettings
	if err := settings.Load(ctx, &s); err != nil {
		return nil, err
	}
	name := cmp.Or(s.AdminFunction, stack+"-admin")
	cfg, err := config.LoadDefaultConfig(ctx) // an operator may have profiles and SSO, unlike a function
	if err != nil {
		return nil, fmt.Errorf("read AWS configuration: %w", err)
	}
	client := lambda.NewFromConfig(cfg, func(o *lambda.Options) { o.Retryer = aws.NopRetryer{} })
	return func(ctx context.Context, command string, args map[string]any) (json.RawMessage, error) {
		encoded, err := plainJSON(args)
		if err != nil {
			return nil, fmt.Errorf("encode arguments: %w", err)
		}
		payload, err := plainJSON(operator.Request{Command: command, Args: encoded})
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		out, err := client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, Payload: payload})
		if err != nil {
			return nil, invokeError(name, err)
		}
		return readResponse(name, out)
	}, nil
}

// plainJSON leaves < > & as they are: an invocation has 6 MB, and escaped each
// of them takes six bytes.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func readResponse(name string, out *lambda.InvokeOutput) (json.RawMessage, error) {
	if out.FunctionError != nil {
		return nil, fmt.Errorf("function %s broke off (%s); its log in CloudWatch has the cause", name, *out.FunctionError)
	}
	var r operator.Response
	if err := json.Unmarshal(out.Payload, &r); err != nil || r.Result == nil && r.Fault == nil {
		return nil, fmt.Errorf("function %s did not answer like an admin function; is it one? PAWGATE_ADMIN_FUNCTION names another", name)
	}
	if r.Fault != nil {
		return nil, asError(r.Fault)
	}
	return r.Result, nil
}

func invokeError(name string, err error) error {
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return fmt.Errorf("there is no function %s in this account and region; is the stack's name right? PAWGATE_ADMIN_FUNCTION names another function", name)
	}
	if strings.Contains(err.Error(), "get credentials:") { // the SDK has no type for it
		return fmt.Errorf("invoke %s: there are no AWS credentials; sign in with AWS_PROFILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", name)
	}
	return fmt.Errorf("invoke %s: %w", name, err)
}
