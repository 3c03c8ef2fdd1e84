package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/category/agent"
	"pawgate/internal/category/control"
	"pawgate/internal/fault"
	"pawgate/internal/operator"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/migrate"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon }

type toolArgs struct {
	Query string `json:"query,omitempty" doc:"What"`
}

type toolResult struct{}

func never(context.Context, caller.Caller, toolArgs) (toolResult, error) {
	return toolResult{}, errors.New("not called")
}

// tools is a catalogue with the real agent and control categories beside two
// made up ones.
func tools(t *testing.T) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Of(agent.New(nil, clock), control.New(nil, clock),
		tool.Category{Name: "memory", Tools: []tool.Tool{tool.Read("memory_search", "Find.", never), tool.Write("memory_store", "Keep.", never)}},
		tool.Category{Name: "odoo", Tools: []tool.Tool{
			tool.Write("odoo_execute", "Run.", never, tool.Rate(tool.ClassExecute), tool.NeedsScope(caller.ScopeOperator)),
			tool.Read("odoo_report", "Report.", never, tool.In(tool.Enterprise)),
		}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bench runs commands on a database of its own.
type bench struct {
	operator.Operator
	t *testing.T
}

func setup(t *testing.T) bench {
	t.Helper()
	return bench{t: t, Operator: operator.Operator{DB: postgrestest.Clone(t), Catalog: tools(t), Env: "test", By: "local:tester", Now: clock}}
}

// A list of one agent's things refuses an agent that is not there, which would
// look like one that has none.
func TestListsOfNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, list := range []string{"key list", "approval list", "grant list", "pairing list", "memory shares", "odoo list", "odoo writes",
		"schedule list", "queue list", "channel list", "cost recent", "budget list", "agent status"} {
		b.fails(list, `{"agent_id":"nobody"}`, "not_found")
	}
}

// ok runs a command that must succeed and decodes its result.
func ok[R any](b bench, command, args string) R {
	b.t.Helper()
	var r R
	result, err := b.Run(b.t.Context(), "", command, []byte(args))
	if err != nil {
		b.t.Fatalf("%s %s: %v", command, args, err)
	}
	if err := json.Unmarshal(result, &r); err != nil {
		b.t.Fatalf("%s: decode %s: %v", command, result, err)
	}
	return r
}

// fails runs a command that must fail with this reason, or with this broken
// parameter, and returns the sentence.
func (b bench) fails(command, args, want string) string {
	b.t.Helper()
	result, err := b.Run(b.t.Context(), "", command, []byte(args))
	if err == nil {
		b.t.Fatalf("%s %s: want it refused, got %s", command, args, result)
	}
	f := operator.AsFault(err)
	if string(f.Reason) != want && f.Fields["parameter"] != want {
		b.t.Fatalf("%s %s: want %s, got %s %v: %s", command, args, want, f.Reason, f.Fields, f.Message)
	}
	return f.Message
}

type agentShown struct {
	AgentID               string   `json:"agent_id"`
	DisplayName           string   `json:"display_name"`
	Role                  string   `json:"role"`
	State                 string   `json:"state"`
	ReportsTo             string   `json:"reports_to"`
	AllowedTools          []string `json:"allowed_tools"`
	DeniedTools           []string `json:"denied_tools"`
	ApprovalRequiredTools []string `json:"approval_required_tools"`
	Changed               bool     `json:"changed"`
}

type noted struct {
	agentShown
	Notes []string `json:"notes"`
}

type row struct {
	Door         string
	AgentID      string `json:"agent_id"`
	CredentialID string `json:"credential_id"`
	Method       string
	Decision     string
	Outcome      string
	Reason       string
	Arguments    json.RawMessage
}

type rows struct {
	Rows       []row
	NextCursor string `json:"next_cursor"`
}

// AUTH-24: what an operator does is on record, refused or not, and only an
// operator can do it: no command is a tool of the catalogue.
func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("AUTH-24_every_command_is_recorded", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		ok[noted](b, "agent create", `{"agent_id":"bot","allow":["memory_*"]}`)
		b.fails("agent create", `{"agent_id":"bot"}`, "conflict")
		b.fails("agent allow", `{"agent_id":"bot","patterns":["memory_serch"]}`, "patterns")
		b.fails("agent frobnicate", `{}`, "not_found")
		got := ok[rows](b, "audit list", `{}`)
		args := func(text string) json.RawMessage { return json.RawMessage(text) }
		op := row{Door: "operator", CredentialID: "local:tester"}
		want := map[string]row{}
		for _, r := range []row{
			{Method: "agent.create", Decision: "allowed", Outcome: "ok", AgentID: "bot", Arguments: args(`{"allow": ["memory_*"], "agent_id": "bot"}`)},
			{Method: "agent.create", Decision: "allowed", Outcome: "fault", Reason: "conflict", AgentID: "bot", Arguments: args(`{"agent_id": "bot"}`)},
			{Method: "agent.allow", Decision: "allowed", Outcome: "invalid", Reason: "patterns", AgentID: "bot", Arguments: args(`{"agent_id": "bot", "patterns": ["memory_serch"]}`)},
			{Method: "unknown", Decision: "refused", Reason: "unknown_command"},
		} {
			r.Door, r.CredentialID = op.Door, op.CredentialID
			want[r.Method+r.Outcome] = r
		}
		seen := map[string]row{}
		for _, r := range got.Rows {
			r.Arguments = compact(t, r.Arguments)
			seen[r.Method+r.Outcome] = r
		}
		for k, r := range want {
			r.Arguments = compact(t, r.Arguments)
			want[k] = r
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	})
	t.Run("AUTH-24_no_command_is_a_tool", func(t *testing.T) {
		t.Parallel()
		// A tool of that name shows an agent what it may see of others.
		other := map[string]bool{"agent_status": true}
		for _, c := range operator.Commands() {
			if name := strings.ReplaceAll(c.Name, " ", "_"); tools(t).Find(name) != nil && !other[name] {
				t.Errorf("an agent can call %s", name)
			}
		}
	})
	t.Run("failed_command_leaves_nothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.fails("agent create", `{"agent_id":"bot","reports_to":"nobody"}`, "missing_superior")
		b.fails("agent show", `{"agent_id":"bot"}`, "not_found")
	})
	t.Run("broken_arguments", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.fails("agent create", `{}`, "agent_id")
		b.fails("agent create", `[]`, "arguments")
		b.fails("agent create", `{"agent_id":"bot","nme":"x"}`, "nme")
		b.fails("agent create", `{"agent_id":"Bot!"}`, "agent_id")
		b.fails("agent create", `{"agent_id":"bot","role":"a\nb"}`, "role")
	})
	t.Run("unknown_command_is_suggested", func(t *testing.T) {
		t.Parallel()
		if got := setup(t).fails("agent crate", `{}`, "not_found"); !strings.Contains(got, "did you mean agent create?") {
			t.Errorf("no suggestion: %s", got)
		}
	})
	t.Run("broken_environment_name", func(t *testing.T) {
		t.Parallel()
		b := setup(t)
		b.Env = "my_env"
		if _, err := b.Run(t.Context(), "", "agent list", nil); err == nil || !strings.Contains(err.Error(), "PAWGATE_ENV") {
			t.Errorf("got %v", err)
		}
	})
}

func compact(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	if raw == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A database without tables, and one that is away, are told in words.
func TestRun_without_schema(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	o := operator.Operator{DB: postgrestest.Pool(t, postgres.Config{URL: url, MaxConns: 2}), Catalog: tools(t), Env: "test", By: "x", Now: clock}
	o.Migrate = func(ctx context.Context) ([]migrate.Applied, error) { return migrate.Up(ctx, url) }
	b := bench{t: t, Operator: o}
	if got := b.fails("agent list", `{}`, "not_configured"); !strings.Contains(got, "pawgate migrate") {
		t.Errorf("the sentence does not say what to do: %s", got)
	}
	type applied struct{ Applied []migrate.Applied }
	if first := ok[applied](b, "migrate", `{}`); len(first.Applied) == 0 {
		t.Error("nothing was applied to an empty database")
	}
	if second := ok[applied](b, "migrate", `{}`); len(second.Applied) != 0 {
		t.Errorf("applied twice: %v", second.Applied)
	}
	if got := ok[rows](b, "audit list", `{}`); len(got.Rows) != 2 || got.Rows[0].Method != "migrate" {
		t.Errorf("the migrations are not on record: %+v", got.Rows)
	}
}

func emptyDatabase(t *testing.T) string {
	t.Helper()
	url := postgrestest.CloneURL(t)
	pool := postgrestest.Pool(t, postgres.Config{URL: url})
	if _, err := pool.Exec(t.Context(), `drop schema public cascade; create schema public`); err != nil {
		t.Fatal(err)
	}
	return url
}

// Behind a transaction pooler no statement is prepared and the types of
// parameters are guessed from Go's: every command must work like that too.
func TestRun_behind_a_pooler(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), Pooled: true})
	b := bench{t: t, Operator: operator.Operator{DB: pool, Catalog: tools(t), Env: "test", By: "x", Now: clock}}
	if _, err := operator.EnsureDefault(t.Context(), pool, "test"); err != nil {
		t.Error(err)
	}
	for _, c := range [][2]string{
		{"agent create", `{"agent_id":"boss"}`},
		{"agent create", `{"agent_id":"bot","reports_to":"boss","allow":["memory_*"]}`},
		{"agent import", `{"source":"[agent]\nname='imported'\nreports_to='boss'\n"}`},
		{"agent export", `{"agent_id":"imported"}`},
		{"agent status", `{"agent_id":"imported"}`},
		{"agent set", `{"agent_id":"imported","budget_cents":5,"api_mode":"cli","max_concurrent":2,"heartbeat_enabled":true,"fallback_model":"m","heartbeat_cron":"@daily"}`},
		{"soul set", `{"agent_id":"imported","content":"# A","if_version":0}`},
		{"soul set", `{"agent_id":"imported","content":"# B","reason":"r"}`},
		{"soul show", `{"agent_id":"imported","version":1}`},
		{"soul log", `{"agent_id":"imported"}`},
		{"soul diff", `{"agent_id":"imported","from":1,"to":2}`},
		{"soul rollback", `{"agent_id":"imported","version":1}`},
		{"pairing invite", `{"agent_id":"imported","channel":"line","subject":"U1"}`},
		{"pairing approve", `{"agent_id":"imported","channel":"line","subject":"U1"}`},
		{"pairing list", `{"agent_id":"imported","channel":"line"}`},
		{"pairing revoke", `{"agent_id":"imported","channel":"line","subject":"U1"}`},
		{"person set", `{"person_id":"mei","display_name":"Mei","account":["line:U1"],"role":["owner"],"project":["p"]}`},
		{"person list", `{"person_id":"mei"}`},
		{"person remove", `{"person_id":"mei"}`},
		{"agent archive", `{"agent_id":"imported"}`},
		{"agent restore", `{"agent_id":"imported"}`},
		{"agent set", `{"agent_id":"bot","role":"worker"}`},
		{"agent deny", `{"agent_id":"bot","patterns":["memory_store"]}`},
		{"agent list", `{}`},
		{"key create", `{"agent_id":"bot","expires":"1d"}`},
		{"key list", `{}`},
		{"stop", `{"agent_id":"bot"}`},
		{"agent show", `{"agent_id":"bot"}`},
		{"agent explain", `{"agent_id":"bot","tool":"memory_store"}`},
		{"resume", `{"agent_id":"bot"}`},
		{"status", `{}`},
		{"audit list", `{"since":"24h","tool":"memory_*"}`},
	} {
		ok[map[string]any](b, c[0], c[1])
	}
	b.fails("key revoke", `{"key_id":"k_none"}`, "not_found")
}

func TestRun_database_away(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Pool(t, postgres.Config{URL: "postgres://nobody@127.0.0.1:1/none?connect_timeout=1"})
	b := bench{t: t, Operator: operator.Operator{DB: pool, Catalog: tools(t), Env: "test", By: "x", Now: clock}}
	b.fails("agent list", `{}`, string(fault.Unavailable))
}

func TestHandle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct{ name, request, want string }{
		{"result", `{"command":"status"}`, `{"result":{"state":"running","target":"all","changed":false,"stops":[]}}`},
		{"fault", `{"command":"agent show","args":{"agent_id":"x"}}`, `{"fault":{"error":"no agent x; pawgate agent list shows those there are","reason":"not_found"}}`},
		{"broken_argument", `{"command":"agent show","args":{}}`, `{"fault":{"error":"Missing required parameter: agent_id","parameter":"agent_id","reason":"invalid_argument"}}`},
		{"no_command", `{}`, `{"fault":{"error":"unknown command \"\"","reason":"not_found"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r operator.Request
			if err := json.Unmarshal([]byte(c.request), &r); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(b.Handle(t.Context(), "id", r))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}
