package operator

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"pawgate/internal/catalog"
	"pawgate/internal/client/embed"
	"pawgate/internal/fault"
	"pawgate/internal/licence"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/migrate"
	"pawgate/internal/settings"
)

// Settings are what the admin function reads from its environment. Its
// DATABASE_URL goes past any transaction pooler, because migrations hold a
// session lock.
type Settings struct {
	postgres.Config
	Env     string `envconfig:"PAWGATE_ENV" default:"local" desc:"local, staging or prod; part of every key"`
	Licence licence.Config
	// Embeddings is for memory backfill.
	Embeddings embed.Config
}

// Request is what the admin function is invoked with.
type Request struct {
	Command string          `json:"command"`
	Args    json.RawMessage `json:"args,omitempty"`
}

// Response is its answer: exactly one of the two.
type Response struct {
	Result json.RawMessage `json:"result,omitempty"`
	Fault  *fault.Fault    `json:"fault,omitempty"`
}

// InvalidArgument is the reason of a fault about a broken argument; its member
// parameter names it.
const InvalidArgument fault.Reason = "invalid_argument"

// Lambda is the whole main of the admin function. Who may invoke it is up to
// IAM; the record names the invocation, and CloudTrail who made it.
func Lambda() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	ctx := context.Background()
	var cfg Settings
	err := settings.Load(ctx, &cfg)
	if err == nil {
		var o Operator
		if o, _, err = Open(ctx, cfg, "admin-function", time.Now); err == nil {
			lambda.Start(func(ctx context.Context, r Request) (Response, error) {
				id := ""
				if lc, ok := lambdacontext.FromContext(ctx); ok {
					id = lc.AwsRequestID
				}
				return o.Handle(ctx, id, r), nil
			})
			return
		}
	}
	slog.Error("start admin function", "error", err)
	os.Exit(1)
}

// Open is an operator on the database of its settings, with the embedded
// catalogue, and what closes it.
func Open(ctx context.Context, cfg Settings, by string, now func() time.Time) (Operator, func(), error) {
	tools, err := catalog.Load()
	if err != nil {
		return Operator{}, nil, err
	}
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return Operator{}, nil, err
	}
	up := func(ctx context.Context) ([]migrate.Applied, error) { return migrate.Up(ctx, cfg.URL) }
	paid, refused := cfg.Licence.Check(now())
	o := Operator{DB: db, Migrate: up, Catalog: tools, Env: cfg.Env, Licence: paid, LicenceError: refused, By: by, Now: now}
	if cfg.Embeddings.URL != "" {
		o.Embedder = embed.New(cfg.Embeddings)
	}
	return o, db.Close, nil
}

// Handle runs a request. Accidents are logged and answered as an internal
// error.
func (o Operator) Handle(ctx context.Context, requestID string, r Request) Response {
	result, err := o.Run(ctx, requestID, r.Command, r.Args)
	if err == nil {
		return Response{Result: result}
	}
	return Response{Fault: AsFault(err)}
}

// AsFault words any error of Run for the operator.
func AsFault(err error) *fault.Fault {
	if f, ok := fault.Of(err); ok {
		return f
	}
	if e, ok := fault.InvalidOf(err); ok {
		return fault.New(InvalidArgument, "%s", e.Message).With("parameter", e.Parameter)
	}
	slog.Error("operator command", "error", err)
	return fault.New(fault.Internal, "internal error; the log has the cause")
}
