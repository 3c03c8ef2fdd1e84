package router

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"pawgate/internal/settings"
)

// Version is what the server calls itself to clients.
const Version = "1.0.0"

// functionSettings are the router's settings as a Lambda function.
type functionSettings struct {
	Settings
	Stream bool `envconfig:"PAWGATE_RESPONSE_STREAM" desc:"serve a Function URL with RESPONSE_STREAM instead of an HTTP API"`
}

// Lambda is the whole main of the router's function.
func Lambda() {
	level := new(slog.LevelVar)
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(log)
	ctx := context.Background()
	var s functionSettings
	if err := settings.Load(ctx, &s); err != nil {
		log.Error("start router", "error", err)
		os.Exit(1)
	}
	level.Set(s.LogLevel)
	r, err := Open(ctx, s.Settings, Version, log)
	if err != nil {
		log.Error("start router", "error", err)
		os.Exit(1)
	}
	if s.Stream {
		lambda.Start(FunctionURL(r))
		return
	}
	lambda.Start(APIGateway(r))
}
