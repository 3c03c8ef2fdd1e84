// Command empty is the smallest Lambda function in Go: what cold starts and
// memory are compared with.
package main

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(_ context.Context, event json.RawMessage) (json.RawMessage, error) { return event, nil })
}
