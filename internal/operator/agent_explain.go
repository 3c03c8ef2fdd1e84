package operator

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/fault"
	"pawgate/internal/near"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/standing"
	"pawgate/internal/tool"
)

var (
	//go:embed explain_key.sql
	explainKeySQL string
	//go:embed explain_approval.sql
	explainApprovalSQL string
)

type explainArgs struct {
	AgentID   string      `json:"agent_id" doc:"Which agent" maxlen:"64"`
	Tool      string      `json:"tool" doc:"Which tool" maxlen:"128"`
	Arguments tool.Object `json:"arguments,omitempty" doc:"The arguments of the call, as a JSON object; left out: rules that look at them are not weighed"`
	KeyID     string      `json:"key_id,omitempty" doc:"With the scopes of this key; left out: as the user of this computer, who has them all" maxlen:"64"`
}

type explanation struct {
	AgentID string `json:"agent_id"`
	Tool    string `json:"tool"`
	Allowed bool   `json:"allowed"`
	// Of the step that decides; none when the call is allowed.
	Step    int      `json:"step,omitzero"`
	Reason  string   `json:"reason,omitzero"`
	Rule    string   `json:"rule"`
	Steps   []step   `json:"steps"`   // all of the gate's
	Changes []string `json:"changes"` // commands that would allow it, all of them needed
	Notes   []string `json:"notes"`
}

// step is what one step of the gate makes of the call, taken by itself.
type step struct {
	Step    int    `json:"step"`
	Check   string `json:"check"`
	Verdict string `json:"verdict"` // passes, refuses, asks, or - when it could not be looked at
	Rule    string `json:"rule"`
}

// agentExplain asks the gate's own decision, so it cannot tell another story.
// It takes nothing from any limit.
func (s *session) agentExplain(ctx context.Context, _ caller.Caller, a explainArgs) (explanation, error) {
	agent, err := s.read(ctx, a.AgentID)
	if err != nil {
		return explanation{}, err
	}
	name := policy.BaseName(a.Tool)
	entry := s.Catalog.Find(name)
	if entry == nil {
		d := policy.Unknown(name)
		return explanation{AgentID: a.AgentID, Tool: name, Step: int(d.Step), Reason: d.Reason, Rule: d.Rule + near.DidYouMean(name, s.toolNames()),
			Steps: []step{}, Changes: []string{}, Notes: []string{}}, nil
	}
	w := &walk{agent: a.AgentID, entry: entry, key: localKey, refusals: map[policy.Step]policy.Decision{}}
	if err := s.readKey(ctx, a, w); err != nil {
		return explanation{}, err
	}
	if err := s.readStanding(ctx, agent, w); err != nil {
		return explanation{}, err
	}
	if w.given = len(a.Arguments) > 0; w.given {
		w.arguments, w.broken = entry.Schema().Normalize(a.Arguments)
	}
	if err := s.readApproval(ctx, w); err != nil {
		return explanation{}, err
	}
	w.run()
	return w.explain(), nil
}

// localKey is the credential of whoever needs none.
var localKey = explainedKey{KeyID: "local", Scopes: []string{caller.ScopeAll}, State: "active"}

type explainedKey struct {
	KeyID  string
	Scopes []string
	State  string
}

func (s *session) readKey(ctx context.Context, a explainArgs, w *walk) error {
	if a.KeyID == "" {
		return nil
	}
	key, err := postgres.One[explainedKey](ctx, s.db, explainKeySQL, pgx.StrictNamedArgs{"agent_id": a.AgentID, "key_id": a.KeyID})
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.NotFound, "agent %s has no key %s", a.AgentID, short(a.KeyID))
	}
	if err != nil {
		return fmt.Errorf("read key: %w", err)
	}
	w.key = key
	return nil
}

// readStanding reads what the gate would read. An archived agent has no
// standing at all, so its row must do.
func (s *session) readStanding(ctx context.Context, agent stored, w *walk) error {
	who := standing.Who{Agent: agent.AgentID, Credential: w.key.KeyID, Scopes: w.key.Scopes}
	snapshot, err := standing.NewReader(s.db).Peek(ctx, who, &w.entry.Definition)
	if errors.Is(err, pgx.ErrNoRows) {
		rules, err := agent.rules()
		if err != nil {
			return err
		}
		snapshot = policy.Snapshot{Caller: caller.Caller{Agent: agent.AgentID, Credential: w.key.KeyID, Scopes: w.key.Scopes},
			Agent: policy.Agent{ID: agent.AgentID, State: agent.State, Allowed: agent.AllowedTools, Denied: agent.DeniedTools,
				ApprovalRequired: agent.ApprovalRequiredTools, Scoped: agent.ScopedTools, Rules: rules,
				Approver: policy.Approver(agent.Approver), ApprovalLife: time.Duration(agent.ApprovalMinutes) * time.Minute}}
	} else if err != nil {
		return fmt.Errorf("read standing: %w", err)
	}
	snapshot.Edition = s.Licence.EditionAt(s.Now())
	w.snapshot = snapshot
	for i := range snapshot.Agent.Rules {
		w.numbers = append(w.numbers, i+1)
	}
	stops, err := s.emergencyStop(ctx, caller.Caller{Credential: s.By, Scopes: []string{caller.ScopeOperator}}, "status", stopArgs{AgentID: agent.AgentID})
	if err != nil {
		return err
	}
	w.stops = stops.Stops
	return nil
}

// readApproval looks for a request that is pending or approved already.
func (s *session) readApproval(ctx context.Context, w *walk) error {
	if w.broken != nil {
		return nil
	}
	hash := sha256.Sum256([]byte(cmp.Or(string(w.arguments), "{}")))
	for _, kind := range []string{"grant", "call"} {
		found, err := postgres.All[waiting](ctx, s.db, explainApprovalSQL, pgx.StrictNamedArgs{
			"agent_id": w.agent, "tool": w.entry.Name, "definition": w.entry.Fingerprint(), "hash": hash[:], "kind": kind,
		})
		if err != nil {
			return fmt.Errorf("look for approval: %w", err)
		}
		for _, f := range found {
			if f.Kind == kind {
				w.asked = append(w.asked, f)
			}
		}
	}
	return nil
}

// waiting is a request that a person has before them.
type waiting struct{ ID, Kind, State string }

// walk is one call on its way through the gate's steps. Whatever refuses is
// noted and mended in the snapshot, so that the steps behind it are seen too.
type walk struct {
	agent     string
	entry     *catalog.Entry
	key       explainedKey
	snapshot  policy.Snapshot
	numbers   []int // of the rules that are left in the snapshot, from 1
	stops     []stopInForce
	asked     []waiting
	arguments []byte
	given     bool
	broken    error

	refusals map[policy.Step]policy.Decision
	order    []policy.Step // in which they came
	because  string        // why a person must approve
	removed  []int         // rules
	changes  []string
	notes    []string
}
