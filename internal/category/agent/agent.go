// Package agent holds the tools about agents: who there is and how they are
// doing, making, changing and archiving them, their personas, and the people
// they deal with; and giving agents work, to be done later from the queue of
// package work.
//
// An agent sees itself and the agents that report to it, directly or through
// others, and changes those; of itself it changes only how it is called. A
// credential with the scope operator sees and changes every agent. An agent
// that may not be seen and one that does not exist get the same answer, so
// that a guess tells nothing. That an agent reports to somebody is shown,
// nothing else about a superior is.
//
// No tool here widens what an agent may do: none takes a capability list, a
// rule, an approver or a limit, save that create_agent takes a part of its
// caller's own list; a new agent has its maker's restrictions, all of them,
// and no key. A budget takes the scope operator. Who may come in by a chat
// (pairing_manage) is decided by a person.
//
// Agents give work to those below and ask those above them, never themselves. A
// spawned run may call what both agents may, one that answers an agent below
// calls nothing, and an ephemeral agent has all its maker's restrictions.
//
// Nothing is deleted: an agent is archived, and an operator can restore it; of
// a persona every version is kept. The tools never show a key, its hash or
// its first characters, the arguments of a call, the imported source of an
// agent, or its capability lists: a refused tool and an unknown one must stay
// alike.
package agent

import (
	"context"
	"fmt"
	"time"

	"pawgate/internal/client/sqs"
	"pawgate/internal/licence"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
	"pawgate/internal/work"
)

// Config is what the category reads from its environment.
type Config struct {
	postgres.Config
	Licence licence.Config
	Queue   sqs.Config
}

// Options are what the category needs besides the database, all optional.
type Options struct {
	// Licence says how many agents there may be; LicenceError is what is wrong
	// with the one that is configured, and keeps agents from being made.
	Licence      licence.Licence
	LicenceError error
	// Tell tells those who do the work that something was queued; nil: they
	// look for themselves.
	Tell func(context.Context)
}

// Open connects to what the tools need.
func Open(ctx context.Context, cfg Config) (tool.Category, error) {
	db, err := postgres.Open(ctx, cfg.Config)
	if err != nil {
		return tool.Category{}, fmt.Errorf("open agent: %w", err)
	}
	var o Options
	o.Licence, o.LicenceError = cfg.Licence.Check(time.Now())
	queue, told := sqs.New(cfg.Queue)
	o.Tell = work.Teller(db, queue, told)
	c := With(db, time.Now, o)
	c.Close = db.Close
	return c, nil
}

// New is the category over an open database. It does no I/O.
func New(db postgres.DB, now func() time.Time) tool.Category { return With(db, now, Options{}) }

// With is New with options.
func With(db postgres.DB, now func() time.Time, o Options) tool.Category {
	a := agent{db: db, now: now, Options: o}
	return tool.Category{Name: "agent", Tools: []tool.Tool{
		tool.Read("list_agents", "List yourself and the agents that report to you.", a.list),
		tool.Read("agent_status", "Tell how one agent is doing: state, emergency stop, last calls and errors.", a.status),
		tool.Write("create_agent", "Make an agent that may do at most what you may.", a.create),
		tool.Write("agent_update", "Change an agent below you, or your own name, icon, trigger.", a.update, tool.Idempotent),
		tool.Destroy("agent_remove", "Archive an agent below you; an operator can restore it.", a.remove),
		tool.Write("agent_update_soul", "Replace an agent's persona, or bring back a version.", a.updateSoul, tool.Idempotent),
		tool.Write("evolution_toggle", "Set how an agent may improve itself.", a.evolutionToggle, tool.Idempotent),
		tool.Read("evolution_status", "Show how an agent may improve itself.", a.evolutionStatus),
		tool.Write("pairing_manage", "Let users of a chat reach an agent; a person approves.", a.pairingManage, tool.Secret("code")),
		tool.Read("identity_resolve", "Find the person behind an account of a channel.", a.identityResolve),
		tool.Write("send_to_agent", "Tell or ask another agent something; it answers later.", a.sendToAgent),
		tool.Write("spawn_agent", "Give a report of yours a task; it may use no tool that you may not.", a.spawnAgent, tool.Rate(tool.ClassExecute)),
		tool.Write("spawn_ephemeral", "Make an agent for one task, with some of your tools.", a.spawnEphemeral, tool.Rate(tool.ClassExecute)),
		tool.Read("check_responses", "Show what agents answered you, newest first.", a.checkResponses),
	}}
}

type agent struct {
	db  postgres.DB
	now func() time.Time
	Options
}
