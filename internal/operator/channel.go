package operator

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/outbox"
	"pawgate/internal/postgres"
	"pawgate/internal/safehttp"
	"pawgate/internal/settings"
	"pawgate/internal/tool"
)

var (
	//go:embed channel_set.sql
	channelSetSQL string
	//go:embed channel_list.sql
	channelListSQL string
	//go:embed channel_remove.sql
	channelRemoveSQL string
	//go:embed channel_allow.sql
	channelAllowSQL string
	//go:embed channel_deny.sql
	channelDenySQL string
	//go:embed channel_named.sql
	channelNamedSQL string
)

// channelCommands are about where agents may send messages. No agent has them:
// one that could pair an address of its own with a secret's reference would be
// sent the secret.
func (s *session) channelCommands() []tool.Tool {
	return []tool.Tool{
		tool.Write("channel_set", "Give an agent a bot or app on a messaging platform. It may write to no chat until one is allowed.", s.channelSet,
			tool.Idempotent, tool.Secret("secret", "second_secret")),
		tool.Write("channel_allow", "Let an agent write to a chat.", s.channelAllow, tool.Idempotent),
		tool.Write("channel_deny", "Let it write to that chat no longer.", s.channelDeny, tool.Idempotent),
		tool.Read("channel_list", "List the agents' channels and chats.", s.channelList),
		tool.Destroy("channel_remove", "Take a channel with its chats away from an agent.", s.channelRemove, tool.Idempotent),
	}
}

type channelArgs struct {
	AgentID string `json:"agent_id" doc:"The agent" maxlen:"64"`
	Channel string `json:"channel" doc:"The platform, such as telegram" maxlen:"20"`
}

func (a channelArgs) Validate() error {
	if err := outbox.Known(a.Channel); err != nil {
		return fault.Invalid("channel", "%s", err.Error())
	}
	return nil
}

type channelSetArgs struct {
	channelArgs
	Secret  string `json:"secret" doc:"Where its token or webhook address lies: env://NAME, file://PATH, secretsmanager://ID or ssm://NAME" maxlen:"500"`
	Second  string `json:"second_secret,omitempty" doc:"Where a second secret lies, on platforms that have one" maxlen:"500"`
	Account string `json:"account,omitempty" doc:"What is no secret, such as WhatsApp's phone number id" maxlen:"200"`
	BaseURL string `json:"base_url,omitempty" doc:"Address of the platform's API, if not the public one" maxlen:"512"`
	PlainOK bool   `json:"allow_http,omitempty" doc:"Take an http:// address, whose secret anyone on the way can read"`
}

type channelSet struct {
	AgentID string `json:"agent_id"`
	Channel string `json:"channel"`
	Note    string `json:"note"`
}

func (s *session) channelSet(ctx context.Context, _ caller.Caller, a channelSetArgs) (channelSet, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return channelSet{}, err
	}
	for parameter, reference := range map[string]string{"secret": a.Secret, "second_secret": a.Second} {
		if !settings.IsReference(reference) && (reference != "" || parameter == "secret") {
			return channelSet{}, fault.Invalid(parameter, "%s says where the secret lies, it is not the secret itself: env://NAME, file://PATH, secretsmanager://ID#KEY or ssm://NAME", parameter)
		}
	}
	if err := outbox.CheckAccount(a.Channel, outbox.Account{Account: a.Account, SecondSecret: a.Second}); err != nil {
		return channelSet{}, fault.Invalid("channel", "%s", err.Error())
	}
	if a.BaseURL != "" {
		u, err := safehttp.CheckURL(a.BaseURL)
		switch {
		case err != nil:
			return channelSet{}, fault.Invalid("base_url", "%s", err.Error())
		case u.RawQuery != "" || u.Fragment != "":
			return channelSet{}, fault.Invalid("base_url", "give the address without ? and #")
		case u.Scheme == "http" && !a.PlainOK && !loopback(u.Hostname()):
			return channelSet{}, fault.Invalid("base_url", "http:// sends the secret readable for all; use https://, or say --allow-http")
		}
	}
	_, err := postgres.Exec(ctx, s.db, channelSetSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "channel": a.Channel, "base_url": strings.TrimRight(a.BaseURL, "/"),
		"account": a.Account, "secret": a.Secret, "second_secret": a.Second, "by": s.By, "now": s.Now()})
	if err != nil {
		return channelSet{}, fmt.Errorf("write channel: %w", err)
	}
	return channelSet{AgentID: a.AgentID, Channel: a.Channel, Note: "not tested yet: the tool channel_status does that; pawgate channel allow opens chats"}, nil
}

type channelAllowArgs struct {
	channelArgs
	Chat tool.ID `json:"chat" doc:"Id of the chat, or * for any" maxlen:"128"`
	Name string  `json:"name,omitempty" doc:"A name for it that the agent may use; notify: where notifications go" maxlen:"64"`
}

type channelChanged struct {
	AgentID string `json:"agent_id"`
	Channel string `json:"channel"`
	Chat    string `json:"chat"`
	Changed bool   `json:"changed"`
}

// isChatName reports whether a text can name a chat; its length is bounded by
// the argument.
func isChatName(text string) bool {
	known := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	first, _ := utf8.DecodeRuneInString(text)
	return known(first) && !strings.ContainsFunc(text, func(r rune) bool { return !known(r) && !strings.ContainsRune(" _.-", r) })
}

func (s *session) channelAllow(ctx context.Context, _ caller.Caller, a channelAllowArgs) (channelChanged, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return channelChanged{}, err
	}
	if err := outbox.CheckTarget(a.Channel, string(a.Chat)); err != nil {
		return channelChanged{}, fault.Invalid("chat", "%s", err.Error())
	}
	if a.Name != "" && !isChatName(a.Name) {
		return channelChanged{}, fault.Invalid("name", "name has letters, digits, spaces, _, . and -")
	}
	args := pgx.StrictNamedArgs{"agent_id": a.AgentID, "channel": a.Channel, "target": string(a.Chat), "name": a.Name}
	others, err := postgres.All[struct{ Target string }](ctx, s.db, channelNamedSQL, args)
	if err != nil {
		return channelChanged{}, fmt.Errorf("look for name: %w", err)
	}
	if len(others) > 0 {
		return channelChanged{}, fault.New(fault.Conflict, "the name %s is %s's already; give another, or deny that chat first", a.Name, others[0].Target)
	}
	args["by"], args["now"] = s.By, s.Now()
	n, err := postgres.Exec(ctx, s.db, channelAllowSQL, args)
	if err != nil {
		return channelChanged{}, fmt.Errorf("write chat: %w", err)
	}
	if n == 0 {
		return channelChanged{}, fault.New(fault.NotFound, "agent %s has no channel %s; make one first with: pawgate channel set %s %s --secret env://NAME", a.AgentID, a.Channel, a.AgentID, a.Channel)
	}
	return channelChanged{AgentID: a.AgentID, Channel: a.Channel, Chat: string(a.Chat), Changed: true}, nil
}

type channelDenyArgs struct {
	channelArgs
	Chat tool.ID `json:"chat" doc:"Id of the chat, or *" maxlen:"128"`
}

func (s *session) channelDeny(ctx context.Context, _ caller.Caller, a channelDenyArgs) (channelChanged, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return channelChanged{}, err
	}
	n, err := postgres.Exec(ctx, s.db, channelDenySQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "channel": a.Channel, "target": string(a.Chat)})
	if err != nil {
		return channelChanged{}, fmt.Errorf("remove chat: %w", err)
	}
	return channelChanged{AgentID: a.AgentID, Channel: a.Channel, Chat: string(a.Chat), Changed: n > 0}, nil
}

type channelListArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only this agent's" maxlen:"64"`
}

// channelShown is a channel without its secrets and where they lie.
type channelShown struct {
	AgentID    string     `json:"agent_id"`
	Channel    string     `json:"channel"`
	BaseURL    string     `json:"base_url,omitzero"`
	Account    string     `json:"account,omitzero"`
	Chats      []string   `json:"chats"`
	WorksSince *time.Time `json:"works_since,omitzero"`
	LastSentAt *time.Time `json:"last_sent_at,omitzero"`
	LastError  string     `json:"last_error,omitzero"`
	SetBy      string     `json:"set_by"`
	SetAt      time.Time  `json:"set_at"`
}

type channelListed struct {
	Channels []channelShown `json:"channels"`
}

func (s *session) channelList(ctx context.Context, _ caller.Caller, a channelListArgs) (channelListed, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return channelListed{}, err
	}
	shown, err := postgres.All[channelShown](ctx, s.db, channelListSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID})
	if err != nil {
		return channelListed{}, fmt.Errorf("list channels: %w", err)
	}
	return channelListed{Channels: shown}, nil
}

type channelRemoved struct {
	AgentID string `json:"agent_id"`
	Channel string `json:"channel"`
	Changed bool   `json:"changed"`
}

func (s *session) channelRemove(ctx context.Context, _ caller.Caller, a channelArgs) (channelRemoved, error) {
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return channelRemoved{}, err
	}
	n, err := postgres.Exec(ctx, s.db, channelRemoveSQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "channel": a.Channel})
	if err != nil {
		return channelRemoved{}, fmt.Errorf("remove channel: %w", err)
	}
	return channelRemoved{AgentID: a.AgentID, Channel: a.Channel, Changed: n > 0}, nil
}
