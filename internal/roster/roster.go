// Package roster keeps what must hold of all agents together, whoever changes
// them, a tool or an operator's command: nobody reports to himself through
// others, ids do not pass for one another, the licence has room, an agent that
// is put away leaves nothing running, no version of a persona gets lost.
//
// It decides nothing about who may change whom; its callers do. It never
// touches a capability list, a rule or a key.
package roster

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/agentfile"
	"pawgate/internal/fault"
	"pawgate/internal/licence"
	"pawgate/internal/plural"
	"pawgate/internal/postgres"
)

var (
	//go:embed lock.sql
	lockSQL string
	//go:embed above.sql
	aboveSQL string
	//go:embed count.sql
	countSQL string
	//go:embed twin.sql
	twinSQL string
	//go:embed trigger.sql
	triggerSQL string
)

// MissingSuperior is the reason of a fault that goes away once another agent
// is there; an import of several files waits for it.
const MissingSuperior fault.Reason = "missing_superior"

// Roles are what an agent can be where an agent makes or changes it. An
// operator may write others.
var Roles = []string{"main", "specialist", "worker", "developer", "qa", "planner", "team-leader", "product-manager"}

// IsRole reports whether a text is one of Roles.
func IsRole(text string) bool { return slices.Contains(Roles, text) }

// Lock keeps others from changing agents until the transaction ends: two
// changes at once could otherwise close a circle of superiors, take the last
// place of a licence twice, or lose one another's words. Reading goes on.
func Lock(ctx context.Context, tx postgres.DB) error {
	if _, err := tx.Exec(ctx, lockSQL); err != nil {
		return fmt.Errorf("lock agents: %w", postgres.Classify(err))
	}
	return nil
}

// CheckSuperior refuses a superior that does not exist, and circles: whoever
// reports to himself through others could be stopped by everyone in between.
// The caller holds the lock.
func CheckSuperior(ctx context.Context, tx postgres.DB, agentID, superior string) error {
	if superior == "" {
		return nil
	}
	above, err := postgres.All[struct{ ID string }](ctx, tx, aboveSQL, pgx.StrictNamedArgs{"agent_id": superior})
	switch {
	case err != nil:
		return fmt.Errorf("read superiors: %w", err)
	case len(above) == 0:
		return fault.New(MissingSuperior, "reports_to: no agent %s; pawgate agent list shows those there are", short(superior))
	}
	for _, a := range above {
		if a.ID == agentID {
			return fault.Invalid("reports_to", "%s reports to %s already, directly or through others, so it cannot be its superior", superior, agentID)
		}
	}
	return nil
}

// CheckLimit refuses another agent when the licence has no room for it, or is
// broken. The caller holds the lock, so two of them cannot both be the last.
func CheckLimit(ctx context.Context, tx postgres.DB, paid licence.Licence, broken error, now time.Time) error {
	if broken != nil {
		return fault.New(fault.NotConfigured, "no agent can be made while the licence is broken: %s", broken.Error())
	}
	most := paid.AgentLimit(now)
	if most == 0 {
		return nil
	}
	have, err := postgres.One[struct{ N int }](ctx, tx, countSQL, nil)
	if err != nil {
		return fmt.Errorf("count agents: %w", err)
	}
	if have.N >= most {
		return fault.New(fault.Edition, "the licence is for %s and there are %d; archive one (pawgate agent archive AGENT) or get a larger licence", plural.Of(most, "agent"), have.N)
	}
	return nil
}

// reserved are ids that stand for something else in commands, records and the
// predecessor's messages.
var reserved = map[string]bool{
	"all": true, "none": true, "operator": true, "system": true, "dashboard": true, "webhook": true, "cron": true, "heartbeat": true,
	"autopilot": true, "goal-loop-driver": true, "a2a-client": true, "doctor-probe": true, "pawgate": true,
}

// CheckNewID refuses an id that is malformed or reserved, and one that reads
// like another agent's, such as c1erk beside clerk or sales_bot beside
// sales-bot: people approve and stop agents by their ids. parameter names the
// argument in the error.
func CheckNewID(ctx context.Context, tx postgres.DB, parameter, id string) error {
	switch {
	case !agentfile.IsID(id):
		return fault.Invalid(parameter, "%s must start with a letter or digit and have only a-z, 0-9, - and _, at most 64 of them", parameter)
	case reserved[id]:
		return fault.Invalid(parameter, "%s is reserved; choose another %s", id, parameter)
	}
	twins, err := postgres.All[struct{ ID string }](ctx, tx, twinSQL, pgx.StrictNamedArgs{"id": id})
	switch {
	case err != nil:
		return fmt.Errorf("look for similar ids: %w", err)
	case len(twins) == 0:
		return nil
	case twins[0].ID == id:
		return fault.New(fault.Conflict, "the id %s is taken, perhaps by an archived agent; choose another %s", id, parameter)
	}
	return fault.New(fault.Conflict, "%s reads like the id of another agent; choose an id that nobody takes for another", id)
}

// TriggerTaken reports whether another agent is addressed by a trigger: two that
// answer to one name would pass for each other in a chat. The caller holds the
// lock.
func TriggerTaken(ctx context.Context, tx postgres.DB, agentID, trigger string) (bool, error) {
	if trigger == "" {
		return false, nil
	}
	r, err := postgres.One[struct{ Taken bool }](ctx, tx, triggerSQL, pgx.StrictNamedArgs{"agent_id": agentID, "trigger": trigger})
	if err != nil {
		return false, fmt.Errorf("look for triggers: %w", err)
	}
	return r.Taken, nil
}

// CheckText refuses what cannot be shown on one line as it is: a name must not
// hide or reorder what stands around it.
func CheckText(parameter, text string) error {
	if !agentfile.IsText(text) {
		return fault.Invalid(parameter, "%s must be one line of at most 200 characters, without invisible ones", parameter)
	}
	return nil
}

// CheckName is CheckText for a name that must say something.
func CheckName(parameter, text string) error {
	if !strings.ContainsFunc(text, unicode.IsPrint) || strings.TrimSpace(text) == "" {
		return fault.Invalid(parameter, "%s must not be empty", parameter)
	}
	return CheckText(parameter, text)
}

func short(text string) string {
	if runes := []rune(text); len(runes) > 64 {
		return string(runes[:64]) + "…"
	}
	return text
}

// Covered reports whether a pattern reaches no further than one of others: a
// part of a capability list must be within the list.
func Covered(others []string, pattern string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return slices.ContainsFunc(others, func(other string) bool {
		if whole, star := strings.CutSuffix(other, "*"); star {
			return strings.HasPrefix(prefix, whole)
		}
		return !open && other == pattern
	})
}
