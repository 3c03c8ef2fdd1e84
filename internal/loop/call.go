package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"pawgate/internal/client/chat"
	"pawgate/internal/fault"
)

// calls runs the calls of a turn, at once, and gives their results in order.
// A call always has a result: a provider refuses a conversation with a hole.
func (r *run) calls(ctx context.Context, turn chat.Completion) []chat.Result {
	results := make([]chat.Result, len(turn.Calls))
	var group errgroup.Group
	group.SetLimit(r.limits.Parallel)
	var told sync.Mutex
	tell := func(e Event) {
		told.Lock()
		defer told.Unlock()
		r.Notify(e)
	}
	for i, c := range turn.Calls {
		if f := unfit(turn, i); f != nil {
			results[i] = r.answer(c, wire(f), true)
			tell(Event{Kind: Returned, Round: r.result.Rounds, Tool: c.Name, Text: results[i].Text, Failed: true})
			continue
		}
		r.result.Calls++
		group.Go(func() error {
			started := r.Now()
			tell(Event{Kind: Called, Round: r.result.Rounds, Tool: c.Name, Text: c.Arguments})
			answer, failed := r.Gate.Call(ctx, c.Name, []byte(c.Arguments), fmt.Sprintf("loop/%s/%d/%d", r.result.ID, r.result.Rounds, i))
			results[i] = r.answer(c, string(answer), failed)
			tell(Event{Kind: Returned, Round: r.result.Rounds, Tool: c.Name, Text: results[i].Text, Failed: failed, Took: r.Now().Sub(started)})
			return nil
		})
	}
	_ = group.Wait() // none of them gives an error
	return results
}

func (r *run) answer(c chat.Call, text string, failed bool) chat.Result {
	return chat.Result{ID: c.ID, Text: cut(text, r.limits.Result), Failed: failed}
}

// unfit is why a call of a turn is not sent to the gate.
func unfit(turn chat.Completion, i int) *fault.Fault {
	c := turn.Calls[i]
	switch {
	case turn.Stop == chat.Length:
		// Arguments that were cut may still be JSON, and say something else.
		return fault.New("cut_off", "your turn was cut at the most tokens it may have, so none of its calls was run; ask for fewer or smaller calls at once")
	case c.Broken:
		return fault.New("invalid_argument", "the arguments of %s are not a JSON object, so it was not run; send them again. They were: %s", c.Name, cut(c.Arguments, maxQuoted))
	case i >= maxCalls:
		return fault.New("too_many_calls", "at most %d calls of one turn are run; ask for this one again", maxCalls)
	}
	return nil
}

// maxQuoted is how many bytes of broken arguments the model sees again.
const maxQuoted = 400

// wire words a refusal of the loop itself as the gate words its own.
func wire(f *fault.Fault) string {
	f.With("status", "error")
	b, err := json.Marshal(f)
	if err != nil { // texts always encode
		return `{"status":"error"}`
	}
	return string(b)
}
