package loop

import (
	"cmp"
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"pawgate/internal/fault"
)

// Limits of a run. A zero is the default, which for Tokens and Micros is none.
type Limits struct {
	Rounds int           // completions; 20
	Tokens int64         // read and written, over all completions
	Micros int64         // micro-dollars; one completion can go over it
	Wall   time.Duration // from start to end; 10 minutes

	Output   int64 // tokens of one completion; 4096
	Result   int   // bytes of a call's answer that the model sees; 32 KiB
	Parallel int   // calls at once; 8
	Attempts int   // at one completion; 5
}

// maxCalls is how many calls of one turn are run.
const maxCalls = 64

func (l Limits) orDefaults() Limits {
	l.Rounds = cmp.Or(l.Rounds, 20)
	l.Wall = cmp.Or(l.Wall, 10*time.Minute)
	l.Output = cmp.Or(l.Output, 4096)
	l.Result = cmp.Or(l.Result, 32<<10)
	l.Parallel = cmp.Or(l.Parallel, 8)
	l.Attempts = cmp.Or(l.Attempts, 5)
	return l
}

// affordable refuses a limit of money that could not be kept, before anything
// is spent.
func (r *run) affordable(ctx context.Context) error {
	if r.limits.Micros <= 0 {
		return nil
	}
	priced, err := r.Meter.Priced(ctx, r.Model.Provider(), r.request.Model)
	if err == nil && !priced {
		err = errUnpriced(r.request.Model)
	}
	return err
}

func errUnpriced(model string) error {
	return fault.New("unpriced", "model %s has no price, so a limit of money cannot be kept; set its price, or run without that limit", model)
}

// exhausted is the limit that allows no further completion. The next prompt
// holds the last one, so tokens end a run before they are spent.
func (r *run) exhausted() End {
	switch {
	case r.result.Rounds >= r.limits.Rounds:
		return Rounds
	case r.limits.Tokens > 0 && r.room() <= 0:
		return Tokens
	case r.limits.Micros > 0 && r.result.Micros >= r.limits.Micros:
		return Money
	}
	return ""
}

// room is how many tokens the next answer may have.
func (r *run) room() int64 {
	if r.limits.Tokens <= 0 {
		return r.limits.Output
	}
	return min(r.limits.Output, r.limits.Tokens-r.result.Usage.Total()-r.last)
}

// cut keeps a text within so many bytes, the note of it included, and never
// cuts a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	note := fmt.Sprintf("\n[cut: this is the beginning of %d bytes; ask for less, or for the next page]", len(text))
	keep := max(0, most-len(note))
	for keep > 0 && !utf8.RuneStart(text[keep]) {
		keep--
	}
	return text[:keep] + note
}
