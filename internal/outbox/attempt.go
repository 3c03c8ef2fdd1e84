package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/client/channel"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

// maxTries bounds the attempts at one part in one call, and pause is the wait
// before the second; it doubles.
const (
	maxTries = 4
	pause    = 300 * time.Millisecond
	// margin is what a further attempt needs of a call's time.
	margin = 2 * time.Second
)

// The reasons of this package's own faults.
const (
	Refused        fault.Reason = "send_refused"    // the platform says no to this message
	QuotaExhausted fault.Reason = "quota_exhausted" // the platform takes no more this month
)

// deliver brings one part to the platform, with as many attempts as are safe
// and fit the call's time.
func (d *delivery) deliver(ctx context.Context, p *part) error {
	if p.open() && !d.repeatable(p) {
		return d.fault(p, &channel.Error{Platform: d.message.Channel, Fate: channel.Unknown, Says: "an earlier attempt broke off"})
	}
	for try := 1; ; try++ {
		open := p.open()
		if err := d.start(ctx, p); err != nil {
			return err
		}
		receipt, err := d.attempt(ctx, p)
		if err == nil {
			return d.took(ctx, p, receipt)
		}
		e := *channel.ErrorOf(d.message.Channel, err)
		if open { // what this attempt came to says nothing of the one before
			e.Fate = channel.Unknown
		}
		if err := d.end(ctx, p, stateOf(&e), "", e.Code); err != nil {
			return err
		}
		switch {
		case e.BadMarkup && p.Markup && !open: // nothing was sent: the plain form is this part from now on
			p.Body, p.Markup = p.Plain, false
			continue
		case e.BadLogin && try == 1 && d.fresh(ctx): // the secret may have been changed since
			continue
		}
		if wait, again := d.again(ctx, p, &e, try); !again || d.Wait(ctx, wait) != nil {
			return d.lost(ctx, p, &e)
		}
	}
}

func (d *delivery) took(ctx context.Context, p *part, receipt channel.Receipt) error {
	if err := d.end(ctx, p, "sent", receipt.MessageID, ""); err != nil {
		return err
	}
	d.health(ctx, true, nil)
	return nil
}

// lost ends the call's attempts at a part.
func (d *delivery) lost(ctx context.Context, p *part, e *channel.Error) error {
	d.health(ctx, false, e)
	return d.fault(p, e)
}

// health keeps what the platform said. That it cannot be kept must not hide
// what became of the message.
func (d *delivery) health(ctx context.Context, sent bool, e *channel.Error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	if err := d.Health(ctx, d.message.Agent, d.message.Channel, sent, e); err != nil {
		slog.Error("channel health lost", "channel", d.message.Channel, "error", err)
	}
}

func (d *delivery) start(ctx context.Context, p *part) error {
	now := d.now()
	n, err := postgres.Exec(ctx, d.db, partStartSQL, pgx.StrictNamedArgs{"id": d.id, "n": p.N, "until": d.until, "now": now})
	switch {
	case err != nil:
		return fmt.Errorf("start part: %w", err)
	case n == 0: // this call was taken for dead
		return underWay()
	}
	if p.FirstTry == nil {
		p.FirstTry = &now
	}
	return nil
}

func (d *delivery) attempt(ctx context.Context, p *part) (channel.Receipt, error) {
	text := channel.Part{Text: p.Body, Markup: p.Markup, Plain: p.Plain}
	switch p.Kind {
	case "sticker":
		return d.platform.(channel.StickerSender).SendSticker(ctx, d.message.Chat, *d.message.Sticker, p.Key)
	case "photo":
		photo := *d.message.Photo
		photo.Caption = text
		return d.platform.SendPhoto(ctx, d.message.Chat, photo, p.Key)
	}
	return d.platform.Send(ctx, d.message.Chat, text, p.Key)
}

// fresh opens the platform anew with a secret that is read now.
func (d *delivery) fresh(ctx context.Context) bool {
	p, err := d.Open(ctx, d.account, true)
	if err == nil {
		d.platform = p
	}
	return err == nil
}

// open reports whether an attempt was made whose fate is not known.
func (p *part) open() bool { return p.State == "sending" || p.State == "unknown" }

func stateOf(e *channel.Error) string {
	switch e.Fate {
	case channel.NotSent:
		return "pending"
	case channel.Refused:
		return "refused"
	}
	return "unknown"
}

// repeatable reports whether the platform would recognise a repetition of an
// attempt whose fate is unknown.
func (d *delivery) repeatable(p *part) bool {
	life := d.platform.Traits().KeyLife
	return p.FirstTry != nil && d.now().Sub(*p.FirstTry) < life
}

// again says whether and when to try once more in this call.
func (d *delivery) again(ctx context.Context, p *part, e *channel.Error, try int) (time.Duration, bool) {
	if e.Fate == channel.NotSent {
		p.FirstTry = nil
	}
	safe := e.Fate == channel.NotSent || e.Fate == channel.Unknown && d.repeatable(p)
	wait := max(e.RetryAfter, pause<<(try-1))
	if e.Limited && e.RetryAfter == 0 {
		return 0, false // no word of when: a tight repetition only makes it worse
	}
	deadline, _ := ctx.Deadline()
	return wait, safe && try < maxTries && time.Until(deadline) > wait+margin
}

// fault words a part that is not sent: what is, and what to do.
func (d *delivery) fault(p *part, e *channel.Error) *fault.Fault {
	text, f := e.Error(), fault.New(fault.Unavailable, "")
	stuck := e.Fate == channel.Unknown && !d.repeatable(p)
	switch {
	case e.Fate == channel.Unknown && !stuck:
		f = fault.Retry(fault.OutcomeUnknown, max(e.RetryAfter, time.Second), "")
		text += "; repeat the same call soon: the platform will recognise it and not send twice"
	case stuck:
		f.Reason = fault.OutcomeUnknown
		text += "; look into the chat first. The same call does not send it again; one with a new idempotency_key does"
	case e.Fate == channel.Refused && e.Limited:
		f.Reason = QuotaExhausted
	case e.Fate == channel.Refused && e.BadLogin:
		f.Reason = fault.NotConfigured
	case e.Fate == channel.Refused:
		f.Reason = Refused
	case e.Limited:
		f = fault.Retry(fault.RateLimited, max(e.RetryAfter, time.Second), "")
	default:
		f.RetryAfter = max(e.RetryAfter, time.Second)
	}
	if len(d.parts) > 1 {
		text += d.rest(p, stuck)
	}
	f.Message = text
	if d.key != "" {
		f.With("idempotency_key", d.key)
	}
	return f.With("channel", d.message.Channel).With("platform_code", e.Code).With("message_ids", d.sentIDs()).With("parts", len(d.parts))
}

// rest says what became of the other parts, and how they get there.
func (d *delivery) rest(p *part, stuck bool) string {
	done := len(d.sentIDs())
	switch {
	case stuck && p.N < len(d.parts):
		return fmt.Sprintf("; %d of %d parts are sent, part %d may be, and those after it are not: send what is missing as a message of its own", done, len(d.parts), p.N)
	case stuck:
		return fmt.Sprintf("; %d of %d parts are sent, and part %d may be", done, len(d.parts), p.N)
	case done > 0:
		return fmt.Sprintf("; %d of %d parts are sent, and the same call goes on with part %d", done, len(d.parts), p.N)
	}
	return ""
}
