package worker

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"pawgate/internal/client/chat"
	"pawgate/internal/client/sqs"
	"pawgate/internal/loop"
	"pawgate/internal/router"
	"pawgate/internal/settings"
	"pawgate/internal/work"
)

// Settings are what the function agent-worker reads from its environment: it is
// a router without a door to the network, and runs models.
type Settings struct {
	router.Settings
	Chat   chat.Config
	Models Models
	Queue  sqs.Config
}

// New is a worker whose calls go through a router's gate. Where no model is
// configured it does single calls, and prompts fail with a sentence that says
// so.
func New(r *router.Router, model chat.Config, tiers Models, name string) Worker {
	tiers.Default = model.Model
	client, broken := chat.New(model)
	return Worker{
		Queue: work.Queue{DB: r.DB, Worker: name},
		Gate:  func(as router.Identity) loop.Gate { return r.LoopDoor(as) },
		Runner: func(gate loop.Gate) (Runner, error) {
			if broken != nil {
				return nil, broken
			}
			return loop.New(loop.Options{Gate: gate, Model: client, Meter: loop.Ledger{DB: r.DB}}), nil
		},
		Narrow: Narrow(r.DB, r.Catalog),
		Models: tiers,
		Log:    r.Log,
	}
}

// Lambda is the whole main of the function agent-worker, which SQS feeds. Once
// a minute a clock has it send the approval cards that are due.
func Lambda() {
	level := new(slog.LevelVar)
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(log)
	ctx := context.Background()
	var s Settings
	err := settings.Load(ctx, &s)
	if err == nil {
		level.Set(s.LogLevel)
		var r *router.Router
		if r, err = router.Open(ctx, s.Settings, router.Version, log); err == nil {
			w := New(r, s.Chat, s.Models, "agent-worker "+time.Now().UTC().Format(time.RFC3339))
			queue, told := sqs.New(s.Queue)
			w.Tell = work.Teller(r.DB, queue, told)
			lambda.Start(func(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
				if len(batch.Records) == 0 { // the clock of EventBridge, not SQS
					r.SendCards(ctx)
				}
				return w.Batch(ctx, batch)
			})
			return
		}
	}
	log.Error("start worker", "error", err)
	os.Exit(1)
}
