// Package outbox sends messages for agents: to the channels and chats that an
// operator opened for them, each message once.
//
// Postgres keeps every message with its parts before the first is sent, under
// a key: the caller's, or one made of the message itself. A call that repeats
// the key goes on where the first stopped, and what was sent is not sent again.
// Where the platform knows a repeated request by a key of ours, an attempt of
// unknown fate is repeated; where it does not, it never is, and the answer
// says that the outcome is unknown.
//
// The package is beside the categories so that any of them can notify
// somebody (Notify). It never chooses an address or a secret by what an agent
// says, and keeps no secret longer than a minute.
package outbox

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/client/channel"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/safehttp"
	"pawgate/internal/settings"
)

var (
	//go:embed account.sql
	accountSQL string
	//go:embed targets.sql
	targetsSQL string
	//go:embed mode.sql
	modeSQL string
)

// Outbox sends. It is safe for concurrent use.
type Outbox struct {
	// Wait passes the time between two attempts; tests replace it.
	Wait func(ctx context.Context, d time.Duration) error

	db      postgres.DB
	now     func() time.Time
	secrets *settings.Secrets
	options []safehttp.Option

	mu   sync.Mutex
	open map[opened]channel.Platform
}

// opened identifies a platform with its account.
type opened struct {
	name    string
	account channel.Account
}

// New is an outbox over an open database. It does no I/O. The options replace
// the network in tests.
func New(db postgres.DB, now func() time.Time, options ...safehttp.Option) *Outbox {
	return &Outbox{Wait: wait, db: db, now: now, secrets: settings.NewSecrets(settings.Resolve, now), options: options, open: map[opened]channel.Platform{}}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Account is an agent's channel as an operator configured it.
type Account struct {
	Channel      string
	BaseURL      string
	Account      string
	Secret       string // a reference
	SecondSecret string // a reference

	SetAt       time.Time
	WorksSince  *time.Time
	LastSentAt  *time.Time
	LastError   string
	LastErrorAt *time.Time
}

// Target is a chat that an agent may write to.
type Target struct {
	Target string `json:"target"`
	Name   string `json:"name,omitzero"`
}

// anywhere is the target that allows every chat.
const anywhere = "*"

// Accounts are an agent's channels, or the one named.
func (o *Outbox) Accounts(ctx context.Context, agent, name string) ([]Account, error) {
	accounts, err := postgres.All[Account](ctx, o.db, accountSQL, pgx.StrictNamedArgs{"agent": agent, "channel": name})
	if err != nil {
		return nil, fmt.Errorf("read channels: %w", err)
	}
	return accounts, nil
}

// Account is one of an agent's channels. The fault for one that is not
// configured says how it is.
func (o *Outbox) Account(ctx context.Context, agent, name string) (Account, error) {
	accounts, err := o.Accounts(ctx, agent, name)
	switch {
	case err != nil:
		return Account{}, err
	case len(accounts) == 1:
		return accounts[0], nil
	case name == "" && len(accounts) > 1:
		return Account{}, fault.New(fault.NotFound, "agent %s has several channels; name one", agent)
	}
	return Account{}, fault.New(fault.NotConfigured, "agent %s has no channel %s; an operator makes one with: pawgate channel set %s %s --secret env://NAME", agent, name, agent, name)
}

// Targets are the chats that an agent may write to on a channel.
func (o *Outbox) Targets(ctx context.Context, agent, name string) ([]Target, error) {
	targets, err := postgres.All[Target](ctx, o.db, targetsSQL, pgx.StrictNamedArgs{"agent": agent, "channel": name})
	if err != nil {
		return nil, fmt.Errorf("read targets: %w", err)
	}
	return targets, nil
}

// Open is the platform of an account. A secret that was refused is read anew
// with fresh.
func (o *Outbox) Open(ctx context.Context, a Account, fresh bool) (channel.Platform, error) {
	account := channel.Account{BaseURL: a.BaseURL, ID: a.Account}
	for reference, into := range map[string]*string{a.Secret: &account.Secret, a.SecondSecret: &account.Second} {
		if reference == "" {
			continue
		}
		if fresh {
			o.secrets.Forget(reference)
		}
		value, err := o.secrets.Get(ctx, reference)
		if err != nil { // the error may name an environment or a file: the operator's business
			return nil, fault.New(fault.NotConfigured, "the secret of channel %s cannot be had; an operator checks the reference given to pawgate channel set", a.Channel)
		}
		*into = value
	}
	key := opened{a.Channel, account}
	o.mu.Lock()
	defer o.mu.Unlock()
	if p, ok := o.open[key]; ok {
		return p, nil
	}
	if err := Known(a.Channel); err != nil {
		return nil, fault.New(fault.NotConfigured, "%s", err.Error())
	}
	p, err := platforms[a.Channel].open(account, o.options...)
	if err != nil {
		return nil, fault.New(fault.NotConfigured, "channel %s is not configured rightly: %s; an operator sets it anew with pawgate channel set", a.Channel, err.Error())
	}
	if len(o.open) >= maxOpen {
		clear(o.open)
	}
	o.open[key] = p
	return p, nil
}

// maxOpen bounds the platforms that are kept open for their connections.
const maxOpen = 64

// allow turns a name into a chat's id and holds that against the allow-list:
// a name leads only to what the list has.
func (o *Outbox) allow(ctx context.Context, p channel.Platform, agent, name, chat string) (string, error) {
	targets, err := o.Targets(ctx, agent, name)
	if err != nil {
		return "", err
	}
	id, known := resolve(targets, chat)
	switch {
	case id == "":
		return "", fault.Invalid("chat_id", "chat_id is missing, and channel %s has more than one chat: %s", name, words(targets))
	case !known:
		return "", fault.New(fault.Denied, "chat %s is none that agent %s may write to on %s; allowed: %s. An operator adds one with: pawgate channel allow %s %s CHAT",
			short(chat), agent, name, words(targets), agent, name)
	}
	if err := p.CheckTarget(id); err != nil {
		return "", fault.Invalid("chat_id", "%s", err.Error())
	}
	return id, nil
}

// plain reports whether a chat is to get text without format (response_mode).
func (o *Outbox) plain(ctx context.Context, agent, name, chat string) (bool, error) {
	modes, err := postgres.All[struct{ Mode string }](ctx, o.db, modeSQL, pgx.StrictNamedArgs{"agent": agent, "channel": name, "chat": chat})
	if err != nil {
		return false, fmt.Errorf("read channel settings: %w", err)
	}
	return len(modes) > 0 && modes[0].Mode == "plain", nil
}

// resolve finds a chat by its id, else by its name; an empty chat is the one
// named notify, or the only one.
func resolve(targets []Target, chat string) (id string, known bool) {
	any := false
	for _, t := range targets {
		any = any || t.Target == anywhere
		if t.Target == chat && chat != anywhere {
			return t.Target, true
		}
	}
	for _, t := range targets {
		if t.Name != "" && t.Target != anywhere && (strings.EqualFold(t.Name, strings.TrimPrefix(chat, "#")) || chat == "" && t.Name == "notify") {
			return t.Target, true
		}
	}
	if chat == "" && len(targets) == 1 && !any {
		return targets[0].Target, true
	}
	return chat, any
}

func words(targets []Target) string {
	if len(targets) == 0 {
		return "none"
	}
	var list []string
	for _, t := range targets {
		if t.Name != "" {
			list = append(list, t.Name)
		} else {
			list = append(list, t.Target)
		}
	}
	return strings.Join(list, ", ")
}

func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
