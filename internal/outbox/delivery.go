package outbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/client/channel"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed purge.sql
	purgeSQL string
	//go:embed rename.sql
	renameSQL string
	//go:embed claim.sql
	claimSQL string
	//go:embed holder.sql
	holderSQL string
	//go:embed parts_add.sql
	partsAddSQL string
	//go:embed parts.sql
	partsSQL string
	//go:embed part_start.sql
	partStartSQL string
	//go:embed part_end.sql
	partEndSQL string
	//go:embed release.sql
	releaseSQL string
	//go:embed health.sql
	healthSQL string
)

// part is a row of outbox_parts.
type part struct {
	N         int
	Key       string
	Kind      string
	Body      string
	Markup    bool
	Plain     string
	State     string
	FirstTry  *time.Time
	MessageID string
}

// delivery is one call's work on one message.
type delivery struct {
	*Outbox
	account  Account
	platform channel.Platform
	message  Message

	id    string
	until time.Time // the end of this call's hold on the message, by which the hold is known
	key   string    // as the caller may repeat it; empty: the message's own
	parts []part
}

// leaseOver is how much longer than the call its hold on a message lasts: the
// records that are written after the deadline need it.
const leaseOver = 10 * time.Second

// claim writes the message down, or finds it, and keeps other calls off it.
func (d *delivery) claim(ctx context.Context, parts []part) error {
	m, now := d.message, d.now()
	hash := m.hash()
	key := "own:" + m.Key
	if m.Key == "" {
		key = "same:" + hash
	}
	d.key = m.Key
	deadline, _ := ctx.Deadline()
	d.until = now.Add(time.Until(deadline) + leaseOver)
	err := postgres.InTx(ctx, d.db, func(tx pgx.Tx) error {
		if _, err := postgres.Exec(ctx, tx, purgeSQL, pgx.StrictNamedArgs{"agent": m.Agent, "now": now}); err != nil {
			return err
		}
		if m.Key == "" {
			if _, err := postgres.Exec(ctx, tx, renameSQL, pgx.StrictNamedArgs{"agent": m.Agent, "key": key, "now": now, "same_secs": SameFor.Seconds()}); err != nil {
				return err
			}
		}
		id := uuid.NewString()
		row, err := postgres.One[struct {
			ID        string
			CreatedAt time.Time
		}](ctx, tx, claimSQL, pgx.StrictNamedArgs{"id": id, "agent": m.Agent, "key": key, "hash": hash, "channel": m.Channel,
			"target": m.Chat, "until": d.until, "now": now})
		if err != nil {
			return err
		}
		d.id = row.ID
		if row.ID == id {
			return addParts(ctx, tx, id, parts)
		}
		return nil
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return d.taken(ctx, key, hash)
	}
	if err != nil {
		return fmt.Errorf("claim message: %w", err)
	}
	d.parts, err = postgres.All[part](ctx, d.db, partsSQL, pgx.StrictNamedArgs{"id": d.id})
	if err != nil {
		return fmt.Errorf("read parts: %w", err)
	}
	return nil
}

func addParts(ctx context.Context, tx pgx.Tx, id string, parts []part) error {
	var ns []int
	var keys, kinds, bodies, plains []string
	var markups []bool
	for i, p := range parts {
		ns, keys, kinds = append(ns, i+1), append(keys, uuid.NewString()), append(kinds, p.Kind)
		bodies, plains, markups = append(bodies, p.Body), append(plains, p.Plain), append(markups, p.Markup)
	}
	_, err := postgres.Exec(ctx, tx, partsAddSQL, pgx.StrictNamedArgs{"id": id, "ns": ns, "keys": keys, "kinds": kinds, "bodies": bodies, "markups": markups, "plains": plains})
	return err
}

// taken says why a message could not be claimed.
func (d *delivery) taken(ctx context.Context, key, hash string) error {
	row, err := postgres.One[struct {
		Hash       string
		LeaseUntil time.Time
	}](ctx, d.db, holderSQL, pgx.StrictNamedArgs{"agent": d.message.Agent, "key": key})
	switch {
	case err != nil:
		return fmt.Errorf("read message: %w", err)
	case row.Hash != hash:
		return fault.New(fault.Conflict, "this idempotency_key was used for another message; use a new one")
	}
	return underWay()
}

// underWay is a message that another call works on.
func underWay() *fault.Fault {
	return fault.Retry(fault.InProgress, 2*time.Second, "the same message is being sent by another call; repeat the call for its outcome")
}

// run sends the parts in order, from the first that is not sent.
func (d *delivery) run(ctx context.Context) (Sent, error) {
	repeated := true
	for i := range d.parts {
		if d.parts[i].State == "sent" {
			continue
		}
		repeated = false
		if err := d.deliver(ctx, &d.parts[i]); err != nil {
			d.release(ctx)
			return Sent{}, err
		}
	}
	d.release(ctx)
	sent := Sent{Channel: d.message.Channel, ChatID: d.message.Chat, State: "accepted", MessageIDs: d.sentIDs(), Parts: len(d.parts), Key: d.key, Repeated: repeated}
	if repeated && d.key == "" {
		sent.Note = "the same message was sent a moment ago, and not again now; to send it twice, give an idempotency_key"
	}
	return sent, nil
}

func (d *delivery) sentIDs() []string {
	ids := []string{}
	for _, p := range d.parts {
		if p.State == "sent" {
			ids = append(ids, p.MessageID)
		}
	}
	return ids
}

// recordTimeout bounds what is written down after a call's time is up.
const recordTimeout = 3 * time.Second

// record writes in spite of a deadline: what happened must not be forgotten.
func (d *delivery) record(ctx context.Context, sql string, args pgx.StrictNamedArgs) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	_, err := postgres.Exec(ctx, d.db, sql, args)
	return err
}

// release lets other calls at the message. Without it they wait until the hold
// runs out; the parts are on record by then, so the answer stands.
func (d *delivery) release(ctx context.Context) {
	if err := d.record(ctx, releaseSQL, pgx.StrictNamedArgs{"id": d.id, "until": d.until, "now": d.now()}); err != nil {
		slog.Error("message not released", "channel", d.message.Channel, "error", err)
	}
}

// end writes down what became of a part.
func (d *delivery) end(ctx context.Context, p *part, state, messageID, code string) error {
	p.State, p.MessageID = state, messageID
	if err := d.record(ctx, partEndSQL, pgx.StrictNamedArgs{"id": d.id, "n": p.N, "state": state, "message_id": messageID, "code": code, "now": d.now()}); err != nil {
		if state == "sent" {
			return fault.New(fault.OutcomeUnknown, "%s has the message, but that could not be written down; do not send it again", d.message.Channel).With("message_ids", d.sentIDs())
		}
		return fmt.Errorf("record part: %w", err)
	}
	return nil
}

// Health keeps what the platform last said of an account.
func (o *Outbox) Health(ctx context.Context, agent, name string, sent bool, e *channel.Error) error {
	args := pgx.StrictNamedArgs{"agent": agent, "channel": name, "now": o.now(), "sent": sent, "works": e == nil, "broken": false, "error": ""}
	if e != nil {
		args["error"], args["broken"] = e.Answer(), e.BadLogin
	}
	if _, err := postgres.Exec(ctx, o.db, healthSQL, args); err != nil {
		return fmt.Errorf("keep channel health: %w", err)
	}
	return nil
}
