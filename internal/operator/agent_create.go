package operator

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/agentfile"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/outbox"
	"pawgate/internal/postgres"
	"pawgate/internal/roster"
)

type createArgs struct {
	AgentID     string   `json:"agent_id" doc:"Its id: a-z, 0-9, - and _" maxlen:"64"`
	DisplayName string   `json:"display_name,omitempty" doc:"Its name for people"`
	Role        string   `json:"role,omitempty" doc:"What it is, such as main, worker, planner; specialist if left out"`
	ReportsTo   string   `json:"reports_to,omitempty" doc:"The agent above it" maxlen:"64"`
	Model       string   `json:"model,omitempty" doc:"The model it runs on"`
	Icon        string   `json:"icon,omitempty" doc:"An icon"`
	Trigger     string   `json:"trigger,omitempty" doc:"How it is addressed in a chat"`
	Allow       []string `json:"allow,omitempty" doc:"What it may call: a tool, memory_*, or *"`
	Deny        []string `json:"deny,omitempty" doc:"What it may not call; wins over allow"`
}

type changed struct {
	agentRow
	Changed bool     `json:"changed"`
	Notes   []string `json:"notes"`
}

func (s *session) agentCreate(ctx context.Context, _ caller.Caller, a createArgs) (changed, error) {
	if err := s.lock(ctx); err != nil {
		return changed{}, err
	}
	if _, err := s.read(ctx, a.AgentID); err == nil {
		return changed{}, fault.New(fault.Conflict, "agent %s exists; change it with pawgate agent set, allow and deny", a.AgentID)
	} else if f, ok := fault.Of(err); !ok || f.Reason != fault.NotFound {
		return changed{}, err
	}
	allow, notes, err := s.patterns("allow", a.Allow)
	if err != nil {
		return changed{}, err
	}
	deny, more, err := s.patterns("deny", a.Deny)
	if err != nil {
		return changed{}, err
	}
	if err := s.checkAgentLimit(ctx); err != nil {
		return changed{}, err
	}
	made := blank()
	made.AgentID, made.DisplayName, made.Role = a.AgentID, cmp.Or(a.DisplayName, a.AgentID), cmp.Or(a.Role, "specialist")
	made.Model, made.ReportsTo, made.Icon, made.Trigger = a.Model, a.ReportsTo, a.Icon, a.Trigger
	made.AllowedTools, made.DeniedTools = allow, deny
	row, err := s.write(ctx, made)
	notes = append(notes, more...)
	if len(allow) == 0 {
		notes = append(notes, "it may call no tool yet; see pawgate agent allow")
	}
	return changed{agentRow: row, Changed: true, Notes: notes}, err
}

type setArgs struct {
	AgentID     string  `json:"agent_id" doc:"Which agent" maxlen:"64"`
	DisplayName *string `json:"display_name,omitempty" doc:"Its name for people"`
	Role        *string `json:"role,omitempty" doc:"What it is"`
	ReportsTo   *string `json:"reports_to,omitempty" doc:"The agent above it; empty for none" maxlen:"64"`
	Model       *string `json:"model,omitempty" doc:"The model it runs on"`
	Icon        *string `json:"icon,omitempty" doc:"An icon"`
	Trigger     *string `json:"trigger,omitempty" doc:"How it is addressed in a chat"`
	State       string  `json:"state,omitempty" doc:"active; paused or archived agents call nothing" enum:"active,paused,archived"`
	Approver    string  `json:"approver,omitempty" doc:"Who may approve its calls: an operator, also the person at the client, or nobody" enum:"operator,client,none"`
	// A week at most: nobody remembers an older request.
	ApprovalMinutes int `json:"approval_minutes,omitempty" doc:"How long a request for approval waits; 15 at first" min:"1" max:"10080"`
	GrantMinutes    int `json:"grant_minutes,omitempty" doc:"How long a grant lives; 60 at first" min:"1" max:"10080"`

	ApprovalCard *string `json:"approval_card,omitempty" doc:"Where its requests for approval are told, as channel:destination, or agent/channel:destination through the channel of another; empty for nowhere" maxlen:"200"`

	FallbackModel    *string `json:"fallback_model,omitempty" doc:"Kept for what runs the agent"`
	APIMode          *string `json:"api_mode,omitempty" doc:"Kept for what runs the agent" enum:"cli,direct,auto"`
	BudgetCents      *int64  `json:"budget_cents,omitempty" doc:"What it may spend in a month, in cents" min:"0"`
	MaxConcurrent    *int    `json:"max_concurrent,omitempty" doc:"How many prompts it answers at once" min:"1" max:"100"`
	HeartbeatEnabled *bool   `json:"heartbeat_enabled,omitempty" doc:"Kept for what runs the agent"`
	HeartbeatCron    *string `json:"heartbeat_cron,omitempty" doc:"Kept for what runs the agent" maxlen:"200"`
}

// isCardDestination reports whether cards can go there: through one of the
// channels that messages are sent to, the agent's own or another's, to a chat,
// channel or user of it.
func isCardDestination(text string) bool {
	channel, destination, found := strings.Cut(text, ":")
	if through, of, another := strings.Cut(channel, "/"); another {
		if !agentfile.IsID(through) {
			return false
		}
		channel = of
	}
	return found && outbox.Known(channel) == nil && visible(destination, 180)
}

// visible reports whether a text has 1 to so many code points, none of them a
// space or invisible. It is no regular expression: one with Unicode's classes
// repeated costs every start of the admin function some milliseconds.
func visible(text string, most int) bool {
	return text != "" && utf8.RuneCountInString(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
}

// Validate asks for something to change.
func (a setArgs) Validate() error {
	if a == (setArgs{AgentID: a.AgentID}) {
		return fault.Invalid("arguments", "nothing to change; --help lists what can be set")
	}
	if a.ApprovalCard != nil && *a.ApprovalCard != "" && !isCardDestination(*a.ApprovalCard) {
		return fault.Invalid("approval_card", "approval_card is not channel:destination or agent/channel:destination, such as telegram:-1001234567 (channels: %s)", strings.Join(outbox.Platforms(), ", "))
	}
	return nil
}

func (s *session) agentSet(ctx context.Context, _ caller.Caller, a setArgs) (changed, error) {
	if err := s.lock(ctx); err != nil {
		return changed{}, err
	}
	before, err := s.read(ctx, a.AgentID)
	if err != nil {
		return changed{}, err
	}
	after := before
	for _, field := range []struct {
		to   *string
		from *string
	}{
		{&after.DisplayName, a.DisplayName}, {&after.Role, a.Role}, {&after.ReportsTo, a.ReportsTo},
		{&after.Model, a.Model}, {&after.Icon, a.Icon}, {&after.Trigger, a.Trigger}, {&after.ApprovalCard, a.ApprovalCard},
	} {
		if field.from != nil {
			*field.to = *field.from
		}
	}
	after.State, after.Approver = cmp.Or(a.State, before.State), cmp.Or(a.Approver, before.Approver)
	after.ApprovalMinutes, after.GrantMinutes = cmp.Or(a.ApprovalMinutes, before.ApprovalMinutes), cmp.Or(a.GrantMinutes, before.GrantMinutes)
	after.FallbackModel, after.APIMode = cmp.Or(a.FallbackModel, before.FallbackModel), cmp.Or(a.APIMode, before.APIMode)
	after.BudgetCents, after.MaxConcurrent = cmp.Or(a.BudgetCents, before.BudgetCents), cmp.Or(a.MaxConcurrent, before.MaxConcurrent)
	after.HeartbeatEnabled, after.HeartbeatCron = cmp.Or(a.HeartbeatEnabled, before.HeartbeatEnabled), cmp.Or(a.HeartbeatCron, before.HeartbeatCron)
	notes := []string{}
	if a.ApprovalCard != nil {
		if notes, err = s.cardNotes(ctx, after); err != nil {
			return changed{}, err
		}
	}
	if reflect.DeepEqual(before, after) {
		return changed{agentRow: before.agentRow, Notes: notes}, nil
	}
	row, err := s.replace(ctx, before, after)
	return changed{agentRow: row, Changed: true, Notes: append(notes, a.notes()...)}, err
}

// cardNotes says what is missing before a card can be sent, which would be
// missed when nobody is asked.
func (s *session) cardNotes(ctx context.Context, a stored) ([]string, error) {
	way, destination, set := strings.Cut(a.ApprovalCard, ":")
	if !set {
		return []string{}, nil
	}
	through, channel, another := strings.Cut(way, "/")
	if !another {
		through, channel = a.AgentID, way
	} else if _, err := s.read(ctx, through); err != nil {
		return nil, err
	}
	s.about = a.AgentID
	open, err := postgres.All[channelShown](ctx, s.db, channelListSQL, pgx.StrictNamedArgs{"agent_id": through})
	if err != nil {
		return nil, fmt.Errorf("list channels: %w", err)
	}
	i := slices.IndexFunc(open, func(c channelShown) bool { return c.Channel == channel })
	if i < 0 {
		return []string{fmt.Sprintf("no card is sent before agent %s has the channel: pawgate channel set %s %s --secret env://NAME", through, through, channel)}, nil
	}
	if !slices.ContainsFunc(open[i].Chats, func(chat string) bool {
		name, target, named := strings.Cut(chat, "=")
		return chat == "*" || chat == destination || named && (name == destination || target == destination || target == "*")
	}) {
		return []string{fmt.Sprintf("no card is sent before the chat is open: pawgate channel allow %s %s %s", through, channel, quote(destination))}, nil
	}
	return []string{}, nil
}

// notes say of what was set that nothing here acts on it.
func (a setArgs) notes() []string {
	var set []string
	for name, given := range map[string]bool{"fallback_model": a.FallbackModel != nil, "api_mode": a.APIMode != nil,
		"heartbeat_enabled": a.HeartbeatEnabled != nil, "heartbeat_cron": a.HeartbeatCron != nil} {
		if given {
			set = append(set, name)
		}
	}
	slices.Sort(set)
	if note := roster.IdleNote(set...); note != "" {
		return []string{note}
	}
	return []string{}
}
