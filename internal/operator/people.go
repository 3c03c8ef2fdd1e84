package operator

import (
	"context"
	"strings"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/people"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

// peopleCommands are about persons and whom agents let in.
func (s *session) peopleCommands() []tool.Tool {
	return []tool.Tool{
		tool.Write("person_set", "Make a person with accounts, or replace what is known of one.", s.personSet, tool.Idempotent),
		tool.Read("person_list", "List the people that identity_resolve finds.", s.personList),
		tool.Destroy("person_remove", "Forget a person with all accounts.", s.personRemove, tool.Idempotent),

		tool.Read("pairing_list", "List who may reach agents by a chat, and who waits for that.", s.pairingList),
		tool.Write("pairing_approve", "Let an account of a channel reach an agent.", s.pairing(people.Approve), tool.Idempotent),
		tool.Write("pairing_invite", "Make a code that lets an account in. It is shown once.", s.pairing(people.Invite)),
		tool.Destroy("pairing_revoke", "Let an account in no longer.", s.pairing(people.Revoke), tool.Idempotent),
	}
}

type personSetArgs struct {
	PersonID    string   `json:"person_id" doc:"A short id: a-z, 0-9, - and _" maxlen:"64"`
	DisplayName string   `json:"display_name" doc:"The name"`
	Account     []string `json:"account,omitempty" doc:"channel:account, such as telegram:12345 or email:mei@example.com"`
	Role        []string `json:"role,omitempty" doc:"What the person is"`
	Project     []string `json:"project,omitempty" doc:"What the person works on"`
}

func (s *session) personSet(ctx context.Context, _ caller.Caller, a personSetArgs) (people.Person, error) {
	return people.Write(ctx, s.db, people.Person{PersonID: a.PersonID, DisplayName: a.DisplayName, Accounts: list(a.Account),
		Roles: list(a.Role), ProjectIDs: list(a.Project)}, s.Now())
}

type personArgs struct {
	PersonID string `json:"person_id,omitempty" doc:"Only this one" maxlen:"64"`
}

type personListResult struct {
	People []people.Person `json:"people"`
}

func (s *session) personList(ctx context.Context, _ caller.Caller, a personArgs) (personListResult, error) {
	found, err := people.List(ctx, s.db, a.PersonID)
	return personListResult{found}, err
}

type personRemoveArgs struct {
	PersonID string `json:"person_id" doc:"Which person" maxlen:"64"`
}

type personRemoved struct {
	PersonID string `json:"person_id"`
	Changed  bool   `json:"changed"` // false: there was no such person
}

func (s *session) personRemove(ctx context.Context, _ caller.Caller, a personRemoveArgs) (personRemoved, error) {
	gone, err := people.Remove(ctx, s.db, a.PersonID)
	return personRemoved{a.PersonID, gone}, err
}

type pairingListArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only of this agent" maxlen:"64"`
	Channel string `json:"channel,omitempty" doc:"Only of this channel" maxlen:"32"`
}

type pairingListResult struct {
	Pairings []people.Pairing `json:"pairings"`
}

func (s *session) pairingList(ctx context.Context, _ caller.Caller, a pairingListArgs) (pairingListResult, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return pairingListResult{}, err
	}
	found, err := people.Pairings(ctx, s.db, a.AgentID, strings.ToLower(a.Channel), "", s.Now())
	return pairingListResult{found}, err
}

type pairingArgs struct {
	AgentID string `json:"agent_id" doc:"Which agent" maxlen:"64"`
	Channel string `json:"channel" doc:"telegram, line, discord, slack …" maxlen:"32"`
	Subject string `json:"subject" doc:"The user or group, as the channel names it" maxlen:"200"`
}

type pairingResult struct {
	people.Pairing
	Changed bool   `json:"changed"`
	Code    string `json:"code,omitzero"` // the only time it is shown
	Note    string `json:"note,omitzero"`
}

// pairing is a command that changes one pairing.
func (s *session) pairing(change func(context.Context, postgres.DB, people.Ask) (people.Paired, error)) func(context.Context, caller.Caller, pairingArgs) (pairingResult, error) {
	return func(ctx context.Context, _ caller.Caller, a pairingArgs) (pairingResult, error) {
		row, err := s.read(ctx, a.AgentID)
		if err != nil {
			return pairingResult{}, err
		}
		if row.State == archived {
			return pairingResult{}, fault.New(fault.Conflict, "agent %s is archived; pawgate agent restore %s brings it back", a.AgentID, a.AgentID)
		}
		channel, subject, err := people.Account(a.Channel, a.Subject, "subject")
		if err != nil {
			return pairingResult{}, err
		}
		done, err := change(ctx, s.db, people.Ask{AgentID: a.AgentID, Channel: channel, Subject: subject, By: s.By, Now: s.Now()})
		return pairingResult{done.Pairing, done.Changed, done.Code, done.Note}, err
	}
}
