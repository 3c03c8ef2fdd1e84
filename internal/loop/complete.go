package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"pawgate/internal/client/chat"
	"pawgate/internal/fault"
)

const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// recordTimeout is how long usage is tried to be kept, also when the run is
	// over meanwhile.
	recordTimeout = 10 * time.Second
)

// complete asks for one turn, again where that may help, and records what it
// took.
func (r *run) complete(ctx context.Context, tools []chat.Tool, last bool) (chat.Completion, error) {
	q := chat.Request{Model: r.request.Model, System: r.request.System, Messages: r.result.Messages, Tools: tools, NoCalls: last, MaxTokens: r.room()}
	spent := Spent{ID: fmt.Sprintf("%s/%d", r.result.ID, r.result.Rounds+1), At: r.Now(), Request: r.request, Provider: r.Model.Provider()}
	turn, err := r.afford(ctx, q, &spent)
	if err != nil {
		return turn, err
	}
	r.result.Rounds++
	turn.Model, turn.Usage = plausible(turn.Model), counted(turn.Usage)
	if turn.Usage.Total() == 0 {
		turn.Usage = estimate(q, turn)
	}
	r.result.Usage = r.result.Usage.Add(turn.Usage)
	r.last = turn.Usage.Prompt() + turn.Usage.Output
	if turn.Model == "" {
		turn.Model = r.request.Model
	}
	// What was spent is kept also when the run is cancelled at this moment.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	spent.At, spent.Model, spent.Usage = r.Now(), turn.Model, turn.Usage
	micros, priced, err := r.Meter.Record(keep, spent)
	if err != nil {
		return turn, fmt.Errorf("record usage: %w", err)
	}
	r.result.Micros += micros
	if !priced {
		r.result.Unpriced++
		if r.limits.Micros > 0 {
			return turn, errUnpriced(turn.Model)
		}
	}
	r.Notify(Event{Kind: Completed, Round: r.result.Rounds, Usage: turn.Usage, Micros: micros})
	return turn, nil
}

// afford asks when the budgets have room for the most that it can take, which
// it holds back meanwhile.
func (r *run) afford(ctx context.Context, q chat.Request, spent *Spent) (chat.Completion, error) {
	spent.Model, spent.Usage = q.Model, r.most(q)
	hold, err := r.Meter.Hold(ctx, *spent)
	if _, told := fault.Of(err); told {
		return chat.Completion{}, err // a budget without room says so itself
	} else if err != nil {
		return chat.Completion{}, fmt.Errorf("hold money: %w", err)
	}
	spent.Hold = hold
	turn, err := r.ask(ctx, q)
	if err != nil {
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
		defer cancel()
		if lost := r.Meter.Release(free, hold); lost != nil { // it ends by itself
			err = errors.Join(err, lost)
		}
	}
	return turn, err
}

// ask repeats a question while its failure may pass, with growing pauses of at
// least what the provider asks for. It gives up at once when the pause would
// outlast the run.
func (r *run) ask(ctx context.Context, q chat.Request) (chat.Completion, error) {
	for attempt := 1; ; attempt++ {
		turn, err := r.Model.Complete(ctx, q)
		var refused *chat.Error
		if err == nil || !errors.As(err, &refused) || !refused.Again || attempt >= r.limits.Attempts {
			return turn, err
		}
		pause := max(refused.After, backOff(attempt))
		if deadline, ok := ctx.Deadline(); ok && r.Now().Add(pause).After(deadline) {
			return turn, fmt.Errorf("%w; to wait %s for it would outlast the run", err, pause.Round(time.Second))
		}
		r.Notify(Event{Kind: Waited, Round: r.result.Rounds + 1, Text: refused.Text, Took: pause})
		if err := r.Sleep(ctx, pause); err != nil {
			return turn, err
		}
	}
}

// backOff doubles with every attempt; chance keeps those who failed together
// from coming back together.
func backOff(attempt int) time.Duration {
	pause := min(maxPause, firstPause<<(attempt-1))
	return pause/2 + rand.N(pause/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxModel bounds the name of a model, in bytes, and maxTokens a count, as usage
// rows do.
const maxModel, maxTokens = 256, 1_000_000_000_000

// plausible is a name as it can be kept. What a server says must not keep what
// it took from being recorded.
func plausible(model string) string {
	model = strings.ReplaceAll(strings.ToValidUTF8(model, ""), "\x00", "")
	return strings.ToValidUTF8(model[:min(len(model), maxModel)], "")
}

// counted is a usage whose counts can be.
func counted(u chat.Usage) chat.Usage {
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite5m, &u.CacheWrite1h, &u.Reasoning} {
		*n = max(0, min(*n, maxTokens))
	}
	return u
}

// most is what a question can take at most. What stood in the last one, and its
// answer, the provider has counted; the rest is weighed.
func (r *run) most(q chat.Request) chat.Usage {
	u := chat.Usage{Output: q.MaxTokens}
	fresh := q.Messages
	if r.last > 0 {
		u.Input, fresh = r.last, fresh[len(fresh)-1:]
	} else {
		u.Input = weigh(q.System)
		for _, t := range q.Tools {
			u.Input += weigh(t.Name) + weigh(t.About) + weigh(string(t.Schema))
		}
	}
	for _, m := range fresh {
		u.Input += weigh(m.Text) + weigh(string(m.Native))
		for _, result := range m.Results {
			u.Input += weigh(result.Text)
		}
	}
	return u
}

// weigh is how many tokens a text has at most, if it is one that people or
// programs write: three small letters or spaces make one at least; of anything
// else, such as digits, signs and the bytes of other scripts, each may be one.
func weigh(text string) int64 {
	small := 0
	for _, b := range []byte(text) {
		if b == ' ' || 'a' <= b && b <= 'z' {
			small++
		}
	}
	return int64(len(text) - small + (small+2)/3)
}

// bytesPerToken is rather few, so that an estimate is rather high.
const bytesPerToken = 3

// estimate stands for usage that a server does not tell: limits must hold with
// such a server too, and what it took was not nothing.
func estimate(q chat.Request, turn chat.Completion) chat.Usage {
	read, written := len(q.System), len(turn.Text)
	for _, m := range q.Messages {
		read += len(m.Text) + len(m.Native)
		for _, result := range m.Results {
			read += len(result.Text)
		}
	}
	for _, t := range q.Tools {
		read += len(t.Name) + len(t.About) + len(t.Schema)
	}
	for _, c := range turn.Calls {
		written += len(c.Name) + len(c.Arguments)
	}
	return chat.Usage{Input: int64(read/bytesPerToken + 1), Output: int64(written/bytesPerToken + 1)}
}
