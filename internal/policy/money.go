package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/plural"
)

// Money is what the gate knows of the money for one call.
type Money struct {
	// Price is what one call of the tool costs, in micro-dollars; nil: nothing
	// that is known here.
	Price *int64 `json:"price"`
	// Covered says that a budget covers the agent and the tool.
	Covered bool `json:"covered"`
	// Stop is a hard budget that is used up.
	Stop *Budget `json:"stop"`
}

// Budget is how a budget stands in its current period. Money is in
// micro-dollars.
type Budget struct {
	ID       string    `json:"id"`
	AgentID  string    `json:"agent_id"` // "": all of them together
	UserID   string    `json:"user_id"`
	Tool     string    `json:"tool"`
	Period   string    `json:"period"` // hour, day, week or month
	Zone     string    `json:"zone"`
	Limit    int64     `json:"limit"`
	Settled  int64     `json:"settled"`  // spent
	Held     int64     `json:"held"`     // held back for calls under way
	Unpriced int64     `json:"unpriced"` // requests whose cost nobody knows
	Hard     bool      `json:"hard"`
	ResetsAt time.Time `json:"resets_at"`
	ResetsMS int64     `json:"resets_ms"` // until then
}

// free are the categories whose tools are never stopped for money: an agent
// that is out of it must be able to find out why, and to ask for help.
func free(category string) bool { return category == "cost" || category == "control" }

// Broke is the refusal of a call for which a budget has no room. wanted is what
// it may cost at most; nil where that is nothing or not known.
func Broke(b Budget, wanted *int64) Decision {
	d := refused(StepLimit, string(fault.BudgetExceeded), "%s is used up: %s of %s", b.words(), Dollars(b.Settled+b.Held), Dollars(b.Limit))
	var why string
	switch {
	case b.Unpriced > 0 && b.Settled < b.Limit:
		why = plural.Of(b.Unpriced, "request") + " in it cost nobody knows how much, so it is taken for used up; an operator imports prices (pawgate cost prices import FILE) or lets it pass (pawgate budget set … --unpriced warn)"
	case wanted != nil && b.Settled < b.Limit:
		why = fmt.Sprintf("%s of %s are spent and %s held for calls under way, and this call may cost %s", Dollars(b.Settled), Dollars(b.Limit), Dollars(b.Held), Dollars(*wanted))
	case b.Settled < b.Limit:
		why = "what this call may cost is not known; an operator imports prices (pawgate cost prices import FILE)"
	default:
		why = fmt.Sprintf("%s of %s are spent", Dollars(b.Settled), Dollars(b.Limit))
	}
	resets := b.ResetsAt.UTC().Format(time.RFC3339)
	d.Fault = fault.Retry(fault.BudgetExceeded, time.Duration(max(0, b.ResetsMS))*time.Millisecond,
		"%s has no room for this call: %s. It begins anew at %s; until then only an operator can raise it (pawgate budget set)", b.words(), why, resets).
		With("budget_id", b.ID).With("limit_micro_usd", b.Limit).With("used_micro_usd", b.Settled).With("held_micro_usd", b.Held).With("resets_at", b.ResetsAt.UTC())
	return d
}

func (b Budget) words() string {
	text := "the " + map[string]string{"hour": "hourly", "day": "daily", "week": "weekly", "month": "monthly"}[b.Period] + " budget"
	for _, part := range []struct{ kind, name string }{{"agent", b.AgentID}, {"user", b.UserID}, {"tool", b.Tool}} {
		if part.name != "" {
			text += " of " + part.kind + " " + part.name
		}
	}
	return text
}

// Dollars writes micro-dollars with two to six decimals: $0.40, $0.000125.
func Dollars(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	cents := fmt.Sprintf("%06d", micros%1_000_000)
	for len(cents) > 2 && strings.HasSuffix(cents, "0") {
		cents = cents[:len(cents)-1]
	}
	return sign + "$" + strconv.FormatInt(micros/1_000_000, 10) + "." + cents
}
