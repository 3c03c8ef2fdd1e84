package worker

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/uuid"
)

// poll is how often a local worker looks for work.
const poll = time.Second

// Serve looks for work and does it, so many items at once, until ctx ends; then
// what is under way is given back untried.
func (w Worker) Serve(ctx context.Context, atOnce int) {
	free := make(chan struct{}, atOnce)
	var busy sync.WaitGroup
	defer busy.Wait()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		for w.take(ctx, free, &busy) { // until there is nothing, or no place
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// take claims as much as there are places for, and reports whether there may be
// more to do at once.
func (w Worker) take(ctx context.Context, free chan struct{}, busy *sync.WaitGroup) bool {
	places := cap(free) - len(free)
	if places == 0 || ctx.Err() != nil {
		return false
	}
	leased, err := w.Queue.Claim(ctx, places)
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("look for work", "error", err)
	}
	for _, l := range leased {
		free <- struct{}{}
		busy.Go(func() {
			defer func() { <-free }()
			if err := w.Do(ctx, l); err != nil {
				w.Log.Error("record work", "work_id", l.ID, "error", err)
			}
		})
	}
	return len(leased) == places
}

// margin is how long before the function's end a run is ended, so that what it
// came to is recorded.
const margin = recordTimeout + 5*time.Second

// Batch does the items that a batch of SQS messages tells of, all at once, and
// reports only the messages that must come again: those that could not be read,
// and those of which nothing could be recorded. An attempt that failed is
// recorded with its back-off, and the outbox tells of it again.
func (w Worker) Batch(ctx context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-margin))
		defer cancel()
	}
	failed := make([]bool, len(batch.Records))
	var all sync.WaitGroup
	for i, m := range batch.Records {
		all.Go(func() {
			if err := w.message(ctx, m.Body); err != nil {
				w.Log.Error("message of SQS", "message_id", m.MessageId, "error", err)
				failed[i] = true
			}
		})
	}
	all.Wait()
	if w.Tell != nil && len(batch.Records) > 0 {
		w.Tell(context.WithoutCancel(ctx)) // bounds itself, well within the margin
	}
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i, m := range batch.Records {
		if failed[i] {
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return response, nil
}

func (w Worker) message(ctx context.Context, body string) error {
	id, err := uuid.Parse(body)
	if err != nil {
		return err
	}
	leased, err := w.Queue.Claim(ctx, 1, id)
	if err != nil {
		return err
	}
	if len(leased) == 0 { // done, another's, or not due
		return w.Queue.Unheard(ctx, id)
	}
	return w.Do(ctx, leased[0])
}
