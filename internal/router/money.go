package router

import (
	"crypto/rand"

	"pawgate/internal/policy"
	"pawgate/internal/tool"
	"pawgate/internal/usage"
)

// hold is the argument of budget_reserve.
type hold struct {
	ID      string  `json:"id"`
	AgentID string  `json:"agent_id"`
	Tool    string  `json:"tool"`
	Micros  int64   `json:"micros"`
	Seconds float64 `json:"seconds"`
}

// refusal is its answer when a budget has no room.
type refusal struct {
	Budget policy.Budget `json:"budget"`
	Wanted *int64        `json:"wanted"`
}

// holdSeconds is how long money is held for a call that nobody settles. It is
// longer than a call and its record can take.
const holdSeconds = 20 * 60

func (h *hold) id() string {
	if h == nil {
		return ""
	}
	return h.ID
}

// price is what this call costs, in micro-dollars; nil: nothing that is known.
func (c *call) price() *int64 {
	if c.snapshot.Money == nil {
		return nil
	}
	return c.snapshot.Money.Price
}

// hold is what must be held back for this call; nil where it costs nothing or no
// budget covers it.
func (c *call) hold() *hold {
	price := c.price()
	if price == nil || *price == 0 || !c.snapshot.Money.Covered {
		return nil
	}
	return &hold{ID: rand.Text(), AgentID: c.snapshot.Agent.ID, Tool: c.entry.Name, Micros: *price, Seconds: holdSeconds}
}

// cost is the row of a call of a tool that has a price, unless it certainly did
// nothing. The request's id makes it count once.
func (c *call) cost(out tool.Outcome) *usage.Row {
	price := c.price()
	if price == nil || untouched(out) {
		return nil
	}
	return &usage.Row{At: c.started, Agent: c.snapshot.Agent.ID, RequestType: usage.Tool, Tool: c.entry.Name, Units: 1,
		Source: usage.SourceGate, ID: c.requestID}
}
