package people

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/fault"
	"pawgate/internal/plural"
	"pawgate/internal/postgres"
)

var (
	//go:embed pairing_lock.sql
	pairingLockSQL string
	//go:embed pairing_read.sql
	pairingReadSQL string
	//go:embed pairing_write.sql
	pairingWriteSQL string
	//go:embed pairing_list.sql
	pairingListSQL string
	//go:embed pairing_asked.sql
	pairingAskedSQL string
)

// CodeLife is how long a code is good. maxWrong is how many wrong ones it
// takes: with 40 bits, five guesses hit once in 200 thousand million. maxAsked
// is how many wishes of one agent may wait for a person.
const (
	CodeLife = 10 * time.Minute
	maxWrong = 5
	maxAsked = 20
)

// WrongCode is the reason of a fault about a code that is not good.
const WrongCode fault.Reason = "wrong_code"

// The states of a pairing. Expired is how an invitation is shown whose code is
// no longer good.
const (
	asked    = "asked"
	invited  = "invited"
	approved = "approved"
	revoked  = "revoked"
)

// Pairing is an account and whether it may reach an agent.
type Pairing struct {
	AgentID   string     `json:"agent_id"`
	Channel   string     `json:"channel"`
	Subject   string     `json:"subject"`
	State     string     `json:"state"` // asked, invited, expired, approved or revoked
	ExpiresAt *time.Time `json:"expires_at,omitzero"`
	ChangedBy string     `json:"changed_by,omitzero"`
	ChangedAt time.Time  `json:"changed_at,omitzero"`
}

// stored is a pairing with its code.
type stored struct {
	Pairing
	Code, Salt []byte
	Wrong      int
}

// Ask is a wish about an account, in the form of Account.
type Ask struct {
	AgentID, Channel, Subject, By string
	Now                           time.Time
}

// Paired is what became of it.
type Paired struct {
	Pairing
	Changed bool
	Code    string // of an invitation
	Note    string
}

// Approve lets an account in. Who may say that is up to the caller.
func Approve(ctx context.Context, db postgres.DB, a Ask) (Paired, error) {
	return a.change(ctx, db, func(_ pgx.Tx, p *stored) (string, error) {
		p.State = approved
		return "", nil
	})
}

// Revoke lets an account in no longer, and voids its code.
func Revoke(ctx context.Context, db postgres.DB, a Ask) (Paired, error) {
	return a.change(ctx, db, func(_ pgx.Tx, p *stored) (string, error) {
		if p.State == "" {
			return "there was no such pairing", nil
		}
		p.State = revoked
		return "", nil
	})
}

// Request keeps an agent's wish to let an account in, for a person to decide.
func Request(ctx context.Context, db postgres.DB, a Ask) (Paired, error) {
	return a.change(ctx, db, func(tx pgx.Tx, p *stored) (string, error) {
		if p.State == approved || p.State == invited && p.ExpiresAt.After(a.Now) {
			return "nothing to ask for", nil
		}
		n, err := postgres.One[struct{ N int }](ctx, tx, pairingAskedSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID})
		switch {
		case err != nil:
			return "", fmt.Errorf("count wishes: %w", err)
		case n.N >= maxAsked && p.State != asked:
			return "", fault.New("too_many_pending", "%d wishes of this agent wait for a person; wait until some are decided", n.N)
		}
		p.State = asked
		return fmt.Sprintf("a person decides: pawgate pairing approve %s %s %s", a.AgentID, a.Channel, a.Subject), nil
	})
}

// Invite makes a code for an account, in place of one before.
func Invite(ctx context.Context, db postgres.DB, a Ask) (Paired, error) {
	code := rand.Text()[:8] // base32, 5 bits each
	done, err := a.change(ctx, db, func(_ pgx.Tx, p *stored) (string, error) {
		if p.State == approved {
			code = ""
			return "it may come in already; revoke it first", nil
		}
		until := a.Now.Add(CodeLife)
		p.State, p.ExpiresAt, p.Wrong, p.Salt = invited, &until, 0, []byte(rand.Text())
		var err error
		p.Code, err = stretch(code, p.Salt)
		return "give the code to the person by another way than this chat; it is shown this once", err
	})
	if code != "" && err == nil {
		done.Code = code[:4] + "-" + code[4:]
	}
	return done, err
}

// Redeem lets an account in that knows its code. A wrong one counts, and after
// a few the code is void. It fails with WrongCode.
func Redeem(ctx context.Context, db postgres.DB, a Ask, code string) (Paired, error) {
	var refused error
	done, err := a.change(ctx, db, func(_ pgx.Tx, p *stored) (string, error) {
		if p.State == approved {
			return "it may come in already", nil
		}
		if p.State != invited || !p.ExpiresAt.After(a.Now) || p.Wrong >= maxWrong {
			refused = fault.New(WrongCode, "there is no code for this account that is still good; a person makes one: pawgate pairing invite %s %s %s", a.AgentID, a.Channel, a.Subject)
			return "", nil
		}
		given, err := stretch(strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code)), p.Salt)
		if err != nil {
			return "", err
		}
		if subtle.ConstantTimeCompare(given, p.Code) != 1 {
			p.Wrong++
			refused = fault.New(WrongCode, "the code is wrong; it can be tried %s", plural.Of(maxWrong-p.Wrong, "more time"))
			return "", nil
		}
		p.State = approved
		return "", nil
	})
	return done, errors.Join(err, refused)
}

// stretch makes guessing from a stolen row slower than the code lives.
func stretch(code string, salt []byte) ([]byte, error) {
	const rounds = 100_000
	key, err := pbkdf2.Key(sha256.New, code, salt, rounds, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("stretch code: %w", err)
	}
	return key, nil
}

// change reads the pairing, lets edit change it, and writes it. Two changes of
// pairings of one agent come one after the other.
func (a Ask) change(ctx context.Context, db postgres.DB, edit func(pgx.Tx, *stored) (note string, err error)) (Paired, error) {
	var done Paired
	err := postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		if _, err := postgres.Exec(ctx, tx, pairingLockSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID}); err != nil {
			return fmt.Errorf("lock pairings: %w", err)
		}
		before, err := postgres.One[stored](ctx, tx, pairingReadSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "channel": a.Channel, "subject": a.Subject})
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read pairing: %w", err)
		}
		after := before
		if done.Note, err = edit(tx, &after); err != nil {
			return err
		}
		done.Changed = after.State != before.State || after.State == invited && string(after.Code) != string(before.Code)
		if after.State != invited {
			after.Code, after.Salt, after.ExpiresAt, after.Wrong = nil, nil, nil, 0
		}
		if !done.Changed && after.Wrong == before.Wrong {
			done.Pairing = before.shown(a)
			return nil
		}
		after.ChangedBy, after.ChangedAt = before.ChangedBy, before.ChangedAt
		if done.Changed {
			after.ChangedBy, after.ChangedAt = a.By, a.Now
		}
		done.Pairing = after.shown(a)
		_, err = postgres.Exec(ctx, tx, pairingWriteSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "channel": a.Channel, "subject": a.Subject,
			"state": after.State, "code": after.Code, "salt": after.Salt, "expires_at": after.ExpiresAt, "wrong": after.Wrong,
			"by": after.ChangedBy, "at": after.ChangedAt})
		if err != nil {
			return fmt.Errorf("write pairing: %w", err)
		}
		return nil
	})
	return done, err
}

// shown names the account also where there is no pairing.
func (s stored) shown(a Ask) Pairing {
	p := s.Pairing
	p.AgentID, p.Channel, p.Subject = a.AgentID, a.Channel, a.Subject
	if p.State == "" {
		p.State = "none"
	}
	return p
}

// Pairings lists those of an agent, or of all for "", newest first; channel and
// subject may narrow it.
func Pairings(ctx context.Context, db postgres.DB, agentID, channel, subject string, now time.Time) ([]Pairing, error) {
	list, err := postgres.All[Pairing](ctx, db, pairingListSQL, pgx.StrictNamedArgs{"agent_id": agentID, "channel": channel, "subject": subject, "now": now})
	if err != nil {
		return nil, fmt.Errorf("list pairings: %w", err)
	}
	return list, nil
}
