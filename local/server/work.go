package server

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"pawgate/internal/tick"
	"pawgate/internal/worker"
)

// tickEvery is how often what is due is looked for.
const tickEvery = 5 * time.Second

// Work makes what is due happen and does the queue's work until ctx ends; then
// it gives back what is under way. Any number of servers may do so on the same
// database.
func (l *Local) Work(ctx context.Context, s Settings, log *slog.Logger) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { l.tick(ctx, log) })
	if s.Workers > 0 {
		name := fmt.Sprintf("serve %d", os.Getpid())
		all.Go(func() { worker.New(l.Router, s.Chat, s.Tiers, name).Serve(ctx, s.Workers) })
	}
}

func (l *Local) tick(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		if _, err := (tick.Ticker{DB: l.DB}).Tick(ctx); err != nil && ctx.Err() == nil {
			log.Warn("look for what is due", "error", err)
		}
		l.Router.SendCards(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
