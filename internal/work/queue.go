package work

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres"
)

var (
	//go:embed claim.sql
	claimSQL string
	//go:embed extend.sql
	extendSQL string
	//go:embed finish.sql
	finishSQL string
	//go:embed retry.sql
	retrySQL string
	//go:embed release.sql
	releaseSQL string
	//go:embed unheard.sql
	unheardSQL string
	//go:embed sweep.sql
	sweepSQL string
	//go:embed send.sql
	sendSQL string
	//go:embed told.sql
	toldSQL string
)

// Lease is how long a worker has an item without a sign of life.
const Lease = 60 * time.Second

// maxResult bounds a recorded result, in bytes.
const maxResult = 64 << 10

// maxNotice bounds the text of a notice, in code points; the channel splits
// what is too long for one message.
const maxNotice = 8000

// Leased is an item that a worker has.
type Leased struct {
	ID          uuid.UUID
	Kind        Kind
	Source      string
	Agent       string
	From        string
	Payload     string // JSON: a Prompt or a Call
	Scopes      []string
	NarrowedBy  []string
	RootID      uuid.UUID
	Depth       int
	Session     string
	Attempts    int // this one included
	MaxAttempts int
	Fence       int64
	CreatedAt   time.Time
}

// Queue leases and ends items.
type Queue struct {
	DB     postgres.DB
	Worker string        // how this worker is called, for people who look
	Lease  time.Duration // 0: Lease
}

func (q Queue) lease() float64 {
	if q.Lease > 0 {
		return q.Lease.Seconds()
	}
	return Lease.Seconds()
}

// Claim leases up to most items that are due; with ids, only of those.
func (q Queue) Claim(ctx context.Context, most int, ids ...uuid.UUID) ([]Leased, error) {
	var only []string // nil is null: all
	for _, id := range ids {
		only = append(only, id.String())
	}
	leased, err := postgres.All[Leased](ctx, q.DB, claimSQL, pgx.StrictNamedArgs{"ids": only, "most": most, "worker": q.Worker, "lease": q.lease()})
	if err != nil {
		return nil, fmt.Errorf("claim work: %w", err)
	}
	return leased, nil
}

// Extend prolongs a lease. It is false when the item is not this worker's any
// more: taken over, or ended by a stop.
func (q Queue) Extend(ctx context.Context, l Leased) (bool, error) {
	n, err := postgres.Exec(ctx, q.DB, extendSQL, pgx.StrictNamedArgs{"id": l.ID, "fence": l.Fence, "lease": q.lease()})
	if err != nil {
		return false, fmt.Errorf("extend lease: %w", err)
	}
	return n > 0, nil
}

// Done records the result of an item, and false when it was not this worker's
// any more; then nothing is recorded.
func (q Queue) Done(ctx context.Context, l Leased, result string) (bool, error) {
	return q.finish(ctx, l, "done", cut(result, maxResult), "", result)
}

// Bury makes an item a dead letter.
func (q Queue) Bury(ctx context.Context, l Leased, why string) (bool, error) {
	return q.finish(ctx, l, "dead", "", cut(why, maxResult), "Could not be done: "+why)
}

// Fail records a failed attempt: the item waits for another one, or is a dead
// letter after the last.
func (q Queue) Fail(ctx context.Context, l Leased, why string) (bool, error) {
	if l.Attempts >= l.MaxAttempts {
		return q.Bury(ctx, l, why)
	}
	n, err := postgres.Exec(ctx, q.DB, retrySQL, pgx.StrictNamedArgs{
		"id": l.ID, "fence": l.Fence, "error": cut(why, maxResult), "wait": Backoff(l.Attempts).Seconds()})
	if err != nil {
		return false, fmt.Errorf("return work: %w", err)
	}
	return n > 0, nil
}

// Release gives an item back untried, for a worker that is told to stop.
func (q Queue) Release(ctx context.Context, l Leased) error {
	if _, err := postgres.Exec(ctx, q.DB, releaseSQL, pgx.StrictNamedArgs{"id": l.ID, "fence": l.Fence}); err != nil {
		return fmt.Errorf("release work: %w", err)
	}
	return nil
}

// Unheard notes that a message about an item led to nothing: if it still waits,
// it is told of again when it can run.
func (q Queue) Unheard(ctx context.Context, id uuid.UUID) error {
	if _, err := postgres.Exec(ctx, q.DB, unheardSQL, pgx.StrictNamedArgs{"id": id}); err != nil {
		return fmt.Errorf("return message: %w", err)
	}
	return nil
}

func (q Queue) finish(ctx context.Context, l Leased, state, result, why, notice string) (bool, error) {
	if l.Source == "notice" {
		notice = "" // a notice that could not be sent is told to nobody
	}
	if runes := []rune(clean(notice)); len(runes) > maxNotice {
		notice = string(runes[:maxNotice-1]) + "…"
	}
	n, err := postgres.One[struct{ Count int }](ctx, q.DB, finishSQL, pgx.StrictNamedArgs{
		"id": l.ID, "fence": l.Fence, "state": state, "result": result, "error": why, "notice": clean(notice)})
	if err != nil {
		return false, fmt.Errorf("record result: %w", err)
	}
	return n.Count > 0, nil
}

// Backoff is how long an item waits after so many attempts: 5 s, 20 s, 80 s …,
// at most ten minutes, with up to a quarter added so that what failed together
// does not come back together.
func Backoff(attempts int) time.Duration {
	wait := min(5*math.Pow(4, float64(attempts-1)), 600)
	return time.Duration(wait * (1 + rand.Float64()/4) * float64(time.Second))
}

// Swept is what Sweep put in order.
type Swept struct {
	Cancelled int `json:"cancelled"` // covered by a stop, or the agent is gone
	Buried    int `json:"buried"`    // dead letters
	Returned  int `json:"returned"`  // taken from a lost worker
	Unheard   int `json:"unheard"`   // to be told to SQS again
	Archived  int `json:"archived"`  // ephemeral agents
}

// Sweep takes back what lost its worker and ends what must not run any more.
// It is safe at any time and from any number of processes.
func Sweep(ctx context.Context, db postgres.DB) (Swept, error) {
	swept, err := postgres.One[Swept](ctx, db, sweepSQL, nil)
	if err != nil {
		return Swept{}, fmt.Errorf("sweep work: %w", err)
	}
	return swept, nil
}

// Sender tells SQS of items. It returns the ids that were not accepted.
type Sender interface {
	Send(ctx context.Context, ids []string) (refused []string, err error)
}

// batchSize is the most messages of one request to SQS.
const batchSize = 10

// Dispatch empties the outbox: it tells of every item that is due and was not
// told of. An item stays marked only if the sender accepted it; one that was
// accepted and lost its mark is told of twice, which is harmless.
func Dispatch(ctx context.Context, db postgres.DB, sender Sender) (sent int, err error) {
	for {
		told, more, err := dispatchBatch(ctx, db, sender)
		sent += told
		if err != nil || !more {
			return sent, err
		}
	}
}

// tellTimeout bounds how long a caller waits for SQS.
const tellTimeout = 2 * time.Second

// Teller tells at once of what was queued; nil where there is no queue to tell,
// because workers look for themselves.
func Teller(db postgres.DB, sender Sender, configured bool) func(context.Context) {
	if !configured {
		return nil
	}
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, tellTimeout)
		defer cancel()
		_, _ = Dispatch(ctx, db, sender) // what SQS was not told of waits for the next tick
	}
}

// telling is how long whoever marked items has to tell of them; then they are
// anybody's again. A sender must give up before.
const telling = 30 * time.Second

// tellMost bounds one request to SQS.
const tellMost = telling / 3

// marked is an item that this process tells of.
type marked struct {
	ID     uuid.UUID
	SentAt time.Time
}

// dispatchBatch makes its request outside any transaction: a slow or dead SQS
// holds no lock and no connection.
func dispatchBatch(ctx context.Context, db postgres.DB, sender Sender) (sent int, more bool, err error) {
	rows, err := postgres.All[marked](ctx, db, sendSQL, pgx.StrictNamedArgs{"most": batchSize, "telling": telling.Seconds()})
	if err != nil {
		return 0, false, fmt.Errorf("dispatch work: %w", err)
	}
	if len(rows) == 0 {
		return 0, false, nil
	}
	ids, marks := make([]string, len(rows)), make([]time.Time, len(rows))
	for i, row := range rows {
		ids[i], marks[i] = row.ID.String(), row.SentAt
	}
	bounded, cancel := context.WithTimeout(ctx, tellMost)
	refused, failed := sender.Send(bounded, ids)
	cancel()
	if failed != nil { // nobody knows which were taken; to be told twice is harmless
		refused = ids
	}
	// Also when the caller waits no longer: the others need not wait for telling_until.
	kept, done := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer done()
	_, err = postgres.Exec(kept, db, toldSQL, pgx.StrictNamedArgs{"ids": ids, "marks": marks, "refused": append([]string{}, refused...)})
	if err = errors.Join(failed, err); err != nil {
		return 0, false, fmt.Errorf("dispatch work: %w", err)
	}
	return len(ids) - len(refused), len(refused) == 0 && len(ids) == batchSize, nil
}

// Prompt reads the payload of a prompt.
func (l Leased) Prompt() (Prompt, error) { return payload[Prompt](l) }

// Call reads the payload of a call.
func (l Leased) Call() (Call, error) { return payload[Call](l) }

func payload[T any](l Leased) (T, error) {
	var p T
	if err := json.Unmarshal([]byte(l.Payload), &p); err != nil {
		return p, fmt.Errorf("read payload of %s: %w", l.ID, err)
	}
	return p, nil
}

// clean makes a text one that Postgres can hold.
func clean(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\ufffd")
}

// cut keeps a text within so many bytes and never cuts a character.
func cut(text string, most int) string {
	text = clean(text)
	if len(text) <= most {
		return text
	}
	most -= len("…")
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
