package agent

import (
	"cmp"
	"context"
	"strings"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/people"
	"pawgate/internal/tool"
)

type pairingArgs struct {
	Action  string  `json:"action" doc:"-" enum:"generate,redeem,approve,revoke,list"`
	Subject tool.ID `json:"subject,omitempty" doc:"User or group id" maxlen:"200"`
	Channel string  `json:"channel,omitempty" doc:"Such as telegram" maxlen:"32"`
	Code    string  `json:"code,omitempty" doc:"-" maxlen:"40"`
	AgentID string  `json:"agent_id,omitempty" doc:"You, if left out" maxlen:"64"`
}

// Validate asks for what the action needs.
func (a pairingArgs) Validate() error {
	switch {
	case a.Action == "list":
		return nil
	case a.Subject == "":
		return fault.Invalid("subject", "subject must name the user or group")
	case a.Action == "redeem" && strings.TrimSpace(a.Code) == "":
		return fault.Invalid("code", "code must be the code that the person was given")
	}
	return nil
}

type pairingResult struct {
	AgentID  string           `json:"agent_id"`
	Changed  bool             `json:"changed"`
	Code     string           `json:"code,omitzero"` // shown this once
	Pairings []people.Pairing `json:"pairings"`      // those the action was about
	Note     string           `json:"note,omitzero"`
}

// pairingManage says who may reach an agent by a chat. An agent can ask, redeem
// a code that a person gave away, revoke and list; to let somebody in, or to
// make a code, takes the scope approve or operator, so a message that talks an
// agent into it changes nothing. It fails with fault.NotFound for an agent that
// the caller may not see, with fault.Denied for what takes a person, and with
// people.WrongCode for a code that is not good.
func (c agent) pairingManage(ctx context.Context, who caller.Caller, a pairingArgs) (pairingResult, error) {
	r := pairingResult{AgentID: cmp.Or(a.AgentID, who.Agent), Pairings: []people.Pairing{}}
	look := findLive
	if a.Action == "list" || a.Action == "revoke" { // to shut out is never too late
		look = find
	}
	if _, err := look(ctx, c.db, who, r.AgentID); err != nil {
		return pairingResult{}, err
	}
	if a.Action == "list" {
		var err error
		r.Pairings, err = people.Pairings(ctx, c.db, r.AgentID, strings.ToLower(a.Channel), string(a.Subject), c.now())
		return r, err
	}
	channel, subject := splitSubject(a)
	channel, subject, err := people.Account(channel, subject, "subject")
	if err != nil {
		return pairingResult{}, err
	}
	ask := people.Ask{AgentID: r.AgentID, Channel: channel, Subject: subject, By: author(who), Now: c.now()}
	done, err := c.pair(ctx, who, a, ask)
	if err != nil {
		return pairingResult{}, err
	}
	r.Changed, r.Code, r.Note, r.Pairings = done.Changed, done.Code, done.Note, []people.Pairing{done.Pairing}
	return r, nil
}

func (c agent) pair(ctx context.Context, who caller.Caller, a pairingArgs, ask people.Ask) (people.Paired, error) {
	// As with calls, nobody approves what it asks for itself.
	person := who.Operator() || who.HasScope(caller.ScopeApprove) && who.Agent != ask.AgentID
	switch a.Action {
	case "generate":
		if !person {
			return people.Paired{}, fault.New(fault.Denied, "only a person can make a code: pawgate pairing invite %s %s %s; or ask with action approve", ask.AgentID, ask.Channel, ask.Subject)
		}
		return people.Invite(ctx, c.db, ask)
	case "redeem":
		return people.Redeem(ctx, c.db, ask, a.Code)
	case "revoke":
		return people.Revoke(ctx, c.db, ask)
	}
	if person {
		return people.Approve(ctx, c.db, ask)
	}
	return people.Request(ctx, c.db, ask)
}

// splitSubject takes the predecessor's form too, in which channel and subject
// are one argument: "telegram:12345".
func splitSubject(a pairingArgs) (channel, subject string) {
	if before, after, ok := strings.Cut(string(a.Subject), ":"); ok && a.Channel == "" {
		return before, after
	}
	return a.Channel, string(a.Subject)
}
