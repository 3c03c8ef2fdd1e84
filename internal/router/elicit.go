package router

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"
	"github.com/mark3labs/mcp-go/mcp"

	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
)

//go:embed deny.sql
var denySQL string

// question is the id of the one question that the gate asks a client.
const question = "approval"

// decided is what the person at the client answered.
type decided struct {
	approve, deny bool
	reason        string
}

// askClient asks the person at the client to approve a call, where the client
// can: a client of revision 2026-07-28 gets a result that asks and comes back
// with the answer, to whichever instance; an older one over stdio is asked
// while the call waits. Any other leaves the approval to an operator.
func (r *Router) askClient(ctx context.Context, c *call, v verdict) (decided, *answer, error) {
	var given jsontext.Value
	switch {
	case c.modern && c.message.elicits():
		if given = member(orEmpty(c.message.inputs), question); given == nil {
			a, err := r.questionFor(ctx, c, v)
			return decided{}, a, err
		}
		if err := r.checkState(ctx, c, v); err != nil {
			a := answer{rpc: rpcErrorf(codeInvalidParams, "requestState does not belong to this call, or its time is over; send the call again without it")}
			return decided{}, &a, nil
		}
	case c.local != nil && !c.modern && c.local.canAsk():
		params, err := tool.Marshal(r.form(c, v))
		if err != nil {
			return decided{}, nil, fmt.Errorf("encode question: %w", err)
		}
		ctx, cancel := context.WithDeadline(ctx, v.Until)
		defer cancel()
		if given, err = c.local.ask(ctx, c.push, "elicitation/create", params); err != nil {
			return decided{}, nil, nil // it stays pending, for an operator
		}
	default:
		return decided{}, nil, nil
	}
	d := readDecision(given)
	if d.deny {
		if _, err := r.DB.Exec(ctx, denySQL, v.ID, c.snapshot.Agent.ID, d.reason); err != nil {
			return decided{}, nil, postgres.Classify(err)
		}
	}
	return d, nil, nil
}

// form is the card that a person decides on: tool, arguments without secrets,
// agent, why it asks, and until when.
func (r *Router) form(c *call, v verdict) mcp.ElicitationParams {
	return mcp.ElicitationParams{
		Mode: mcp.ElicitationModeForm,
		Message: fmt.Sprintf("Agent %s wants to call %s with %s. It asks because %s. Approval %s, until %s.",
			c.snapshot.Agent.ID, c.entry.Name, shown(r.redactedArguments(c.entry, c.arguments)), c.because, v.ID, v.Until.UTC().Format(time.RFC3339)),
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"decision":{"type":"string","title":"Decision","enum":["approve","deny"]},` +
			`"reason":{"type":"string","title":"Reason, if denied"}},"required":["decision"]}`),
	}
}

// readDecision reads an elicitation result. Whoever dismisses the question
// leaves it open; whoever declines it denies.
func readDecision(result jsontext.Value) decided {
	var r struct {
		Action  string `json:"action"`
		Content struct {
			Decision string `json:"decision"`
			Reason   string `json:"reason"`
		} `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil {
		return decided{}
	}
	switch {
	case r.Action == "accept" && r.Content.Decision == "approve":
		return decided{approve: true}
	case r.Action == "accept" && r.Content.Decision == "deny" || r.Action == "decline":
		return decided{deny: true, reason: short(r.Content.Reason)}
	}
	return decided{}
}

// questionFor is the result that asks, with a state that only this very call
// of this very caller can come back with.
func (r *Router) questionFor(ctx context.Context, c *call, v verdict) (*answer, error) {
	key, err := r.stateKey(ctx)
	if err != nil {
		return nil, err
	}
	state, err := jwt.NewWithClaims(jwt.SigningMethodHS256, stateOf(c, v)).SignedString(key)
	if err != nil {
		return nil, fmt.Errorf("sign state: %w", err)
	}
	if refusal := r.refuse(ctx, c, policy.Decision{Step: policy.StepApproval, Reason: "approval_required", Fault: heldFault(c, v)}); !refusal.isError {
		return &refusal, nil
	}
	return &answer{input: &mcp.CallToolResult{
		Result: mcp.Result{ResultType: mcp.ResultTypeInputRequired},
		MultiRoundTripResult: mcp.MultiRoundTripResult{
			InputRequests: mcp.InputRequests{question: mcp.NewElicitationInputRequest(r.form(c, v))}, RequestState: state},
	}}, nil
}

// stateClaims bind a question to its call.
type stateClaims struct {
	Credential string `json:"cred"`
	Tool       string `json:"tool"`
	Definition string `json:"def"`
	Arguments  string `json:"args"`
	jwt.RegisteredClaims
}

func stateOf(c *call, v verdict) stateClaims {
	return stateClaims{
		Credential: c.snapshot.Caller.Credential, Tool: c.entry.Name, Definition: c.entry.Fingerprint(), Arguments: c.hash(),
		RegisteredClaims: jwt.RegisteredClaims{ID: v.ID, Subject: c.snapshot.Agent.ID, ExpiresAt: jwt.NewNumericDate(v.Until)},
	}
}

func (r *Router) checkState(ctx context.Context, c *call, v verdict) error {
	key, err := r.stateKey(ctx)
	if err != nil {
		return err
	}
	var given stateClaims
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired(), jwt.WithTimeFunc(r.Now))
	if _, err := parser.ParseWithClaims(c.message.state, &given, func(*jwt.Token) (any, error) { return key, nil }); err != nil {
		return err
	}
	want := stateOf(c, v)
	given.ExpiresAt, want.ExpiresAt = nil, nil
	if given.ID != want.ID || given.Subject != want.Subject || given.Credential != want.Credential ||
		given.Tool != want.Tool || given.Definition != want.Definition || given.Arguments != want.Arguments {
		return errors.New("the state is of another call")
	}
	return nil
}

// stateKey is shared by all routers through the database.
func (r *Router) stateKey(ctx context.Context) ([]byte, error) {
	row, err := postgres.First[struct{ Key []byte }](ctx, r.DB, "select key from gate_secret")
	return row.Key, err
}

// elicits reports whether a client of the stateless revision declared, with
// this very request, that it can ask its person.
func (m *message) elicits() bool {
	capabilities := member(orEmpty(m.meta), mcp.MetaKeyClientCapabilities)
	return capabilities != nil && capabilities.Kind() == '{' && member(capabilities, "elicitation") != nil
}

func orEmpty(v jsontext.Value) jsontext.Value {
	if v == nil || v.Kind() != '{' {
		return jsontext.Value(`{}`)
	}
	return v
}
