package agent

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/agentfile"
	"pawgate/internal/budget"
	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/roster"
)

var (
	//go:embed create.sql
	createSQL string
	//go:embed creator.sql
	creatorSQL string
)

// maxMade is how many live agents one agent may have made, against a loop that
// makes them without end.
const maxMade = 50

type createArgs struct {
	Name         string   `json:"name" doc:"Id: a-z, 0-9, - and _" maxlen:"64"`
	DisplayName  string   `json:"display_name" doc:"-" maxlen:"200"`
	Role         string   `json:"role,omitempty" doc:"specialist, if left out" enum:"main,specialist,worker,developer,qa,planner,team-leader,product-manager"`
	ReportsTo    string   `json:"reports_to,omitempty" doc:"You, if left out" maxlen:"64"`
	Soul         string   `json:"soul,omitempty" doc:"-" maxlen:"65536"`
	Model        string   `json:"model,omitempty" doc:"Yours, if left out" maxlen:"200"`
	Trigger      string   `json:"trigger,omitempty" doc:"Chat name" maxlen:"200"`
	Icon         string   `json:"icon,omitempty" doc:"-" maxlen:"200"`
	AllowedTools []string `json:"allowed_tools,omitempty" doc:"Part of your own; all, if left out"`
}

// Validate checks what needs no database.
func (a createArgs) Validate() error {
	if err := roster.CheckName("display_name", a.DisplayName); err != nil {
		return err
	}
	for _, text := range [][2]string{{"model", a.Model}, {"trigger", a.Trigger}, {"icon", a.Icon}} {
		if err := roster.CheckText(text[0], text[1]); err != nil {
			return err
		}
	}
	if a.Soul == "" {
		return nil
	}
	return roster.CheckSoul("soul", a.Soul)
}

type createResult struct {
	AgentID     string `json:"agent_id"`
	DisplayName string `json:"display_name"`
	Role        string `json:"role"`
	State       string `json:"state"`
	ReportsTo   string `json:"reports_to,omitzero"`
	Model       string `json:"model,omitzero"`
	Trigger     string `json:"trigger"`
	Icon        string `json:"icon,omitzero"`
	SoulVersion int    `json:"soul_version,omitzero"`
	Note        string `json:"note"`
}

// creator is what a new agent takes over from the one that makes it.
type creator struct {
	AllowedTools []string
	BudgetCents  *int64
	Ephemeral    bool
	Made         int // live agents that it made
}

// create makes an agent with its maker's restrictions and no key. It fails
// with fault.Conflict for an id that is taken or reads like another, with
// fault.Edition when the licence has no room, and with fault.NotFound for a
// superior that the caller may not see.
func (c agent) create(ctx context.Context, who caller.Caller, a createArgs) (createResult, error) {
	var made createResult
	err := postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		if err := roster.Lock(ctx, tx); err != nil {
			return err
		}
		maker, err := c.mayCreate(ctx, tx, who, a)
		if err != nil {
			return err
		}
		if a.Trigger, err = newTrigger(ctx, tx, a); err != nil {
			return err
		}
		allowed, err := part(maker.AllowedTools, a.AllowedTools)
		if err != nil {
			return err
		}
		made, err = c.insert(ctx, tx, who, a, maker, allowed)
		return err
	})
	return made, err
}

// mayCreate asks everything that can speak against a new agent.
func (c agent) mayCreate(ctx context.Context, tx pgx.Tx, who caller.Caller, a createArgs) (creator, error) {
	if err := roster.CheckNewID(ctx, tx, "name", a.Name); err != nil {
		return creator{}, err
	}
	if _, err := findLive(ctx, tx, who, cmp.Or(a.ReportsTo, who.Agent)); err != nil {
		return creator{}, err
	}
	if a.Role == mainRole && !who.Operator() {
		return creator{}, fault.New(fault.Denied, "only an operator can make an agent with the role main; choose another role")
	}
	if err := roster.CheckLimit(ctx, tx, c.Licence, c.LicenceError, c.now()); err != nil {
		return creator{}, err
	}
	maker, err := postgres.One[creator](ctx, tx, creatorSQL, pgx.StrictNamedArgs{"agent": who.Agent})
	switch {
	case err != nil:
		return creator{}, fmt.Errorf("read maker: %w", err)
	case maker.Ephemeral:
		return creator{}, fault.New(fault.Denied, "an agent made for one piece of work makes no agents; tell whoever asked you that one is needed")
	case maker.Made >= maxMade:
		return creator{}, fault.New("too_many_agents", "you made %d agents that are still there, which is the most; remove one with agent_remove", maker.Made)
	}
	return maker, nil
}

// newTrigger is the one wished for, if no other agent has it, or else one that
// is free: the id always is.
func newTrigger(ctx context.Context, tx pgx.Tx, a createArgs) (string, error) {
	usual := "@" + a.DisplayName
	taken, err := roster.TriggerTaken(ctx, tx, a.Name, cmp.Or(a.Trigger, usual))
	switch {
	case err != nil:
		return "", err
	case !taken:
		return cmp.Or(a.Trigger, usual), nil
	case a.Trigger != "":
		return "", triggerTaken(a.Trigger)
	}
	return "@" + a.Name, nil
}

// part is the wanted part of the maker's list, or all of it. A pattern that
// reaches further than the maker's is refused with one sentence for every
// tool, so that a guess does not tell which tools there are.
func part(makers, wanted []string) ([]string, error) {
	if wanted == nil {
		return makers, nil
	}
	allowed := []string{}
	for _, pattern := range wanted {
		if !agentfile.IsPattern(pattern) || !roster.Covered(makers, pattern) {
			return nil, fault.Invalid("allowed_tools", "%q is not within what you may call; name your own tools, or leave allowed_tools out", pattern)
		}
		if !slices.Contains(allowed, pattern) {
			allowed = append(allowed, pattern)
		}
	}
	return allowed, nil
}

func (c agent) insert(ctx context.Context, tx pgx.Tx, who caller.Caller, a createArgs, maker creator, allowed []string) (createResult, error) {
	made, err := postgres.One[createResult](ctx, tx, createSQL, pgx.StrictNamedArgs{
		"agent": who.Agent, "id": a.Name, "display_name": a.DisplayName, "role": cmp.Or(a.Role, "specialist"),
		"reports_to": cmp.Or(a.ReportsTo, who.Agent), "model": a.Model, "trigger": a.Trigger, "icon": a.Icon,
		"allowed": allowed, "never": []string{"create_agent"}, "now": c.now(),
	})
	if err != nil {
		return createResult{}, fmt.Errorf("write agent: %w", err)
	}
	if maker.BudgetCents != nil {
		if err := budget.SetMonth(ctx, tx, budget.Month{AgentID: a.Name, Cents: *maker.BudgetCents, By: author(who)}); err != nil {
			return createResult{}, err
		}
	}
	made.Note = "it has your restrictions, may not make agents, and has no key; an operator gives it one: pawgate key create " + made.AgentID
	if a.Soul == "" {
		return made, nil
	}
	soul, err := roster.WriteSoul(ctx, tx, roster.SoulChange{AgentID: a.Name, Content: a.Soul, By: author(who), Now: c.now()})
	made.SoulVersion = soul.After.Version
	return made, err
}
