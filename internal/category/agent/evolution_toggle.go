package agent

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/roster"
)

//go:embed evolution_toggle.sql
var evolutionToggleSQL string

type toggleArgs struct {
	AgentID string `json:"agent_id" doc:"-" maxlen:"64"`
	Field   string `json:"field" doc:"See evolution_status" maxlen:"64"`
	Value   scalar `json:"value" doc:"-"`
}

type toggleResult struct {
	AgentID string          `json:"agent_id"`
	Field   string          `json:"field"`
	Before  json.RawMessage `json:"before"` // null: nobody had set it
	Value   json.RawMessage `json:"value"`
	Changed bool            `json:"changed"`
	Note    string          `json:"note"`
}

// alwaysOn is a switch of the predecessor for what here cannot be switched off.
const alwaysOn = "cognitive_memory"

// evolutionToggle sets one field; the others stay. It fails with
// fault.NotFound for an agent that the caller may not see, and with
// fault.Denied for a field that only an operator sets.
func (c agent) evolutionToggle(ctx context.Context, who caller.Caller, a toggleArgs) (toggleResult, error) {
	if a.Field == alwaysOn {
		_, err := findLive(ctx, c.db, who, a.AgentID)
		on := json.RawMessage("true")
		return toggleResult{AgentID: a.AgentID, Field: a.Field, Before: on, Value: on,
			Note: "episodes and knowledge are always kept apart here; there is nothing to set"}, err
	}
	s, err := roster.FindSetting(a.Field)
	if err != nil {
		return toggleResult{}, err
	}
	if s.Operator && !who.Operator() {
		return toggleResult{}, fault.New(fault.Denied, "only an operator can set %s; ask a person", s.Name)
	}
	r := toggleResult{AgentID: a.AgentID, Field: s.Name, Note: roster.EvolutionNote}
	if r.Value, err = s.Read(a.Value.word()); err != nil {
		return toggleResult{}, err
	}
	err = postgres.InTx(ctx, c.db, func(tx pgx.Tx) error {
		if err := roster.Lock(ctx, tx); err != nil {
			return err
		}
		t, err := findLive(ctx, tx, who, a.AgentID)
		if err != nil {
			return err
		}
		if r.Before, err = s.Current(t.Evolution); err != nil {
			return err
		}
		if r.Changed = !bytes.Equal(r.Before, r.Value); !r.Changed {
			return nil
		}
		_, err = postgres.Exec(ctx, tx, evolutionToggleSQL, pgx.StrictNamedArgs{
			"agent": who.Agent, "operator": who.Operator(), "agent_id": a.AgentID, "field": s.Name, "value": string(r.Value), "now": c.now(),
		})
		if err != nil {
			return fmt.Errorf("set evolution: %w", err)
		}
		return nil
	})
	return r, err
}
