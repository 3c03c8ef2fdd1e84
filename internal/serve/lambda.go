package serve

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"pawgate/internal/settings"
	"pawgate/internal/tool"
)

// margin is how long before the function's own end a call is given up, so
// that an answer still leaves.
const margin = 500 * time.Millisecond

// Lambda is the whole main of a category's function: it reads the category's
// settings from the environment, opens it and serves its calls. A function
// that cannot start says why in its log and exits, which Lambda reports as a
// failed initialisation.
func Lambda[C any](open func(context.Context, C) (tool.Category, error)) {
	level := new(slog.LevelVar)
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	handler, err := lambdaHandler(context.Background(), level, open)
	if err != nil {
		slog.Error("start function", "error", err)
		os.Exit(1)
	}
	lambda.Start(handler)
}

func lambdaHandler[C any](ctx context.Context, level *slog.LevelVar, open func(context.Context, C) (tool.Category, error)) (func(context.Context, tool.Call) (tool.Outcome, error), error) {
	var own C
	if err := settings.Load(ctx, &own); err != nil {
		return nil, err
	}
	var cfg Config
	if err := settings.Load(ctx, &cfg); err != nil {
		return nil, err
	}
	level.Set(cfg.LogLevel)
	category, err := open(ctx, own)
	if err != nil {
		return nil, err
	}
	host, err := NewHost(category, cfg, time.Now)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, call tool.Call) (tool.Outcome, error) {
		if end, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, end.Add(-margin))
			defer cancel()
		}
		return host.Handle(ctx, call), nil
	}, nil
}
