package send

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"pawgate/internal/caller"
	"pawgate/internal/client/channel"
	"pawgate/internal/fault"
	"pawgate/internal/outbox"
)

type statusArgs struct {
	Channel string `json:"channel,omitempty" doc:"-" maxlen:"20"`
}

// Validate refuses a channel that no version has.
func (a statusArgs) Validate() error {
	if a.Channel == "" {
		return nil
	}
	if err := outbox.Known(a.Channel); err != nil {
		return fault.Invalid("channel", "%s", err.Error())
	}
	return nil
}

type channelStatus struct {
	Channel     string            `json:"channel"`
	Works       bool              `json:"works"` // said the platform just now
	AccountID   string            `json:"account_id,omitzero"`
	AccountName string            `json:"account_name,omitzero"`
	Details     map[string]string `json:"details,omitempty"`
	Problem     string            `json:"problem,omitzero"`
	// WorksSince is since when no answer of the platform denied it.
	WorksSince  *time.Time      `json:"works_since,omitzero"`
	LastSentAt  *time.Time      `json:"last_sent_at,omitzero"`
	LastError   string          `json:"last_error,omitzero"`
	LastErrorAt *time.Time      `json:"last_error_at,omitzero"`
	Chats       []outbox.Target `json:"chats"`
}

type statusResult struct {
	Channels []channelStatus `json:"channels"`
}

// askTimeout bounds one platform's answer.
const askTimeout = 8 * time.Second

// status asks every configured platform who its account is, at the same time.
func (s send) status(ctx context.Context, who caller.Caller, a statusArgs) (statusResult, error) {
	accounts, err := s.outbox.Accounts(ctx, who.Agent, a.Channel)
	if err != nil {
		return statusResult{}, err
	}
	if a.Channel != "" && len(accounts) == 0 {
		_, err := s.outbox.Account(ctx, who.Agent, a.Channel)
		return statusResult{}, err
	}
	r := statusResult{Channels: make([]channelStatus, len(accounts))}
	identities := make([]channel.Identity, len(accounts))
	problems := make([]error, len(accounts))
	var group errgroup.Group
	for i, account := range accounts {
		group.Go(func() error {
			identities[i], problems[i] = s.ask(ctx, account)
			return nil
		})
	}
	_ = group.Wait()
	for i, account := range accounts { // one connection to the database is enough
		if r.Channels[i], err = s.told(ctx, who, account, identities[i], problems[i]); err != nil {
			return statusResult{}, err
		}
	}
	return r, nil
}

func (s send) ask(ctx context.Context, account outbox.Account) (channel.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	p, err := s.outbox.Open(ctx, account, true)
	if err != nil {
		return channel.Identity{}, err
	}
	return p.Identify(ctx)
}

// told keeps what a platform said and puts it together with what was known.
func (s send) told(ctx context.Context, who caller.Caller, account outbox.Account, me channel.Identity, problem error) (channelStatus, error) {
	now := s.now()
	c := channelStatus{Channel: account.Channel, Works: problem == nil, AccountID: me.ID, AccountName: me.Name, Details: me.Details,
		WorksSince: account.WorksSince, LastSentAt: account.LastSentAt, LastError: account.LastError, LastErrorAt: account.LastErrorAt}
	var failed *channel.Error
	if problem != nil {
		failed = channel.ErrorOf(account.Channel, problem)
		if f, ok := fault.Of(problem); ok { // nobody was asked: the secret or the address cannot be had
			failed = &channel.Error{Platform: account.Channel, Fate: channel.Refused, Says: f.Message, BadLogin: true}
		}
		c.Problem, c.LastError, c.LastErrorAt = failed.Answer(), failed.Answer(), &now
		if failed.BadLogin {
			c.WorksSince = nil
		}
	} else if c.WorksSince == nil {
		c.WorksSince = &now
	}
	if err := s.outbox.Health(ctx, who.Agent, account.Channel, false, failed); err != nil {
		return c, err
	}
	targets, err := s.outbox.Targets(ctx, who.Agent, account.Channel)
	c.Chats = append([]outbox.Target{}, targets...)
	return c, err
}
