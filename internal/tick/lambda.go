package tick

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"pawgate/internal/client/sqs"
	"pawgate/internal/postgres"
	"pawgate/internal/settings"
)

// Settings are what the function tick reads from its environment.
type Settings struct {
	postgres.Config
	Queue    sqs.Config
	LogLevel slog.Level `envconfig:"PAWGATE_LOG_LEVEL" default:"INFO" desc:"DEBUG, INFO, WARN or ERROR"`
}

// Lambda is the whole main of the function tick, which EventBridge invokes once
// a minute. The event is of no account: an invocation that is repeated, late or
// retried finds what is due by the database's clock.
func Lambda() {
	level := new(slog.LevelVar)
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	ctx := context.Background()
	var s Settings
	err := settings.Load(ctx, &s)
	if err == nil {
		level.Set(s.LogLevel)
		var t Ticker
		if t, err = Open(ctx, s); err == nil {
			lambda.Start(t.handle)
			return
		}
	}
	slog.Error("start tick", "error", err)
	os.Exit(1)
}

// errUndone is all that the platform is told of a failure; the log has its cause.
var errUndone = errors.New("not all that was due could be done; the next tick goes on, and the log has the cause")

func (t Ticker) handle(ctx context.Context, _ json.RawMessage) (Done, error) {
	done, err := t.Tick(ctx)
	if err != nil {
		slog.Error("tick", "error", err)
		return done, errUndone
	}
	return done, nil
}

// Open is a ticker over the database and the queue of its settings.
func Open(ctx context.Context, s Settings) (Ticker, error) {
	db, err := postgres.Open(ctx, s.Config)
	if err != nil {
		return Ticker{}, err
	}
	t := Ticker{DB: db}
	if queue, ok := sqs.New(s.Queue); ok {
		t.Sender = queue
	}
	return t, nil
}
