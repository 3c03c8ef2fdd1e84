package agent_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/catalog"
	"pawgate/internal/category/agent"
	"pawgate/internal/fault"
	"pawgate/internal/licence"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/standing"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
	"pawgate/internal/usage"
)

type made struct {
	AgentID     string `json:"agent_id"`
	DisplayName string `json:"display_name"`
	Role        string `json:"role"`
	State       string `json:"state"`
	ReportsTo   string `json:"reports_to"`
	Model       string `json:"model"`
	Trigger     string `json:"trigger"`
	Icon        string `json:"icon"`
	SoulVersion int    `json:"soul_version"`
	Note        string `json:"note"`
}

func TestCreateAgent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := tooltest.OK[made](t, b.cat, tooltest.Who("ceo"), "create_agent",
		`{"name":"buyer","display_name":"Buyer","role":"worker","soul":"# Buyer\nYou buy.\n","icon":"🧾"}`)
	note := got.Note
	got.Note = ""
	want := made{AgentID: "buyer", DisplayName: "Buyer", Role: "worker", State: "active", ReportsTo: "ceo",
		Model: "claude-sonnet-4-6", Trigger: "@Buyer", Icon: "🧾", SoulVersion: 1}
	if got != want {
		t.Errorf("made %+v, want %+v", got, want)
	}
	if !strings.Contains(note, "pawgate key create buyer") {
		t.Errorf("the note does not say how it gets a key: %s", note)
	}
	if n := b.number(t, `select count(*) from api_keys where agent_id = 'buyer'`); n != 0 {
		t.Errorf("a new agent has %d keys: nobody gave it scopes", n)
	}
	if twin := tooltest.OK[made](t, b.cat, tooltest.Who("ceo"), "create_agent", `{"name":"shopper","display_name":"Buyer"}`); twin.Trigger != "@shopper" {
		t.Errorf("the usual trigger is another agent's, and the new one has %s", twin.Trigger)
	}
	below := tooltest.OK[made](t, b.cat, tooltest.Who("ceo"), "create_agent", `{"name":"tester","display_name":"Tester","reports_to":"lead"}`)
	if below.ReportsTo != "lead" || below.Role != "specialist" {
		t.Errorf("made %+v, want a specialist that reports to lead", below)
	}
}

func TestCreateAgent_refusals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ceo := tooltest.Who("ceo")
	for _, c := range []struct{ name, args, parameter string }{
		{"no_display_name", `{"name":"x","display_name":"  "}`, "display_name"},
		{"path", `{"name":"../etc/passwd","display_name":"X"}`, "name"},
		{"path_of_windows", `{"name":"..\\x","display_name":"X"}`, "name"},
		{"dots", `{"name":"..","display_name":"X"}`, "name"},
		{"upper_case", `{"name":"Clerk","display_name":"X"}`, "name"},
		{"homoglyph", `{"name":"сео","display_name":"X"}`, "name"},
		{"trailing_space", `{"name":"clerk ","display_name":"X"}`, "name"},
		{"reserved", `{"name":"all","display_name":"X"}`, "name"},
		{"MCP-17_nul", `{"name":"x","display_name":"a\u0000b"}`, "display_name"},
		{"MCP-17_nul_in_the_soul", `{"name":"x","display_name":"X","soul":"a\u0000b"}`, "soul"},
		{"bidi", `{"name":"x","display_name":"ceo\u202etxt"}`, "display_name"},
		{"zero_width", `{"name":"x","display_name":"ce\u200bo"}`, "display_name"},
		{"two_lines", `{"name":"x","display_name":"a\nb"}`, "display_name"},
		{"role_that_there_is_not", `{"name":"x","display_name":"X","role":"emperor"}`, "role"},
		{"soul_of_10_MB", `{"name":"x","display_name":"X","soul":"` + strings.Repeat("a", 10<<20) + `"}`, "soul"},
		{"soul_of_64_KB_in_characters", `{"name":"x","display_name":"X","soul":"` + strings.Repeat("漢", 64<<10) + `"}`, "soul"},
		{"empty_soul", `{"name":"x","display_name":"X","soul":" \n"}`, "soul"},
		{"a_capability_list_of_its_own", `{"name":"x","display_name":"X","denied_tools":[]}`, "denied_tools"},
	} {
		t.Run(c.name, func(t *testing.T) { tooltest.Invalid(t, b.cat, ceo, "create_agent", c.args, c.parameter) })
	}
	for _, c := range []struct {
		name, args string
		want       fault.Reason
	}{
		{"taken", `{"name":"coder","display_name":"X"}`, fault.Conflict},
		{"taken_by_an_archived_one", `{"name":"old","display_name":"X"}`, fault.Conflict},
		{"taken_by_one_unseen", `{"name":"stranger","display_name":"X"}`, fault.Conflict},
		{"look_alike_digit", `{"name":"c1erk","display_name":"X"}`, fault.Conflict},
		{"look_alike_letters", `{"name":"c0der","display_name":"X"}`, fault.Conflict},
		{"superior_unseen", `{"name":"x","display_name":"X","reports_to":"stranger"}`, fault.NotFound},
		{"superior_unknown", `{"name":"x","display_name":"X","reports_to":"nobody"}`, fault.NotFound},
		{"superior_archived", `{"name":"x","display_name":"X","reports_to":"old"}`, fault.Conflict},
		{"trigger_of_another", `{"name":"x","display_name":"X","trigger":"@BOSS"}`, fault.Conflict},
		{"role_main", `{"name":"x","display_name":"X","role":"main"}`, fault.Denied},
	} {
		t.Run(c.name, func(t *testing.T) { tooltest.Fault(t, b.cat, ceo, "create_agent", c.args, c.want) })
	}
	if n := b.number(t, `select count(*) from agents where id not in ('ceo', 'lead', 'clerk', 'coder', 'old', 'stranger')`); n != 0 {
		t.Errorf("%d agents were made all the same", n)
	}
}

// The licence's number of agents holds also when many are made at once.
func TestCreateAgent_licence(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), MaxConns: 8})
	if _, err := pool.Exec(t.Context(), `insert into agents (id, allowed_tools) values ('boss', '{*}')`); err != nil {
		t.Fatal(err)
	}
	paid := licence.Licence{Customer: "c", Edition: tool.Pro, Agents: 3, Issued: noon, NotBefore: noon.AddDate(0, 0, -1), Expires: noon.AddDate(1, 0, 0)}
	cat := agent.With(pool, clock, agent.Options{Licence: paid})
	outcomes := together(8, func(i int) tool.Outcome {
		return tooltest.Call(t, cat, tooltest.Who("boss"), "create_agent", fmt.Sprintf(`{"name":"bot%d","display_name":"Bot"}`, i))
	})
	good := 0
	for _, out := range outcomes {
		switch {
		case out.OK != nil:
			good++
		case out.Fault == nil || out.Fault.Reason != fault.Edition:
			t.Errorf("want a fault edition, got %+v", out)
		}
	}
	if good != 2 {
		t.Errorf("%d agents were made beside the boss under a licence for 3", good)
	}
	broken := agent.With(pool, clock, agent.Options{LicenceError: licence.ErrLicence})
	tooltest.Fault(t, broken, tooltest.Who("boss"), "create_agent", `{"name":"more","display_name":"More"}`, fault.NotConfigured)
}

func TestCreateAgent_has_an_end(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `insert into agents (id, created_by, state) select 'made' || n, 'ceo', case when n > 50 then 'archived' else 'active' end from generate_series(1, 60) n`)
	tooltest.Fault(t, b.cat, tooltest.Who("ceo"), "create_agent", `{"name":"x","display_name":"X"}`, "too_many_agents")
	b.exec(t, `update agents set state = 'archived' where id = 'made1'`)
	tooltest.OK[made](t, b.cat, tooltest.Who("ceo"), "create_agent", `{"name":"x","display_name":"X"}`)
}

func TestCreateAgent_not_by_one_made_for_a_task(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `update agents set ephemeral = true where id = 'coder'`)
	tooltest.Fault(t, b.cat, tooltest.Who("coder"), "create_agent", `{"name":"x","display_name":"X"}`, fault.Denied)
}

// Whatever the maker's lists, rules and scopes are and whatever part it asks
// for: no tool is freer for the agent it makes than for itself, with any
// arguments that the rules look at.
func TestCreateAgent_at_most_its_makers_rights(t *testing.T) {
	t.Parallel()
	b := setup(t)
	loaded, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	made := 0
	for n := range 45 { // a maker has 50 at most
		b.exec(t, `update agents set allowed_tools = $1, denied_tools = $2, approval_required_tools = $3, scoped_tools = $4, rules = $5, approver = $6,
			approval_life = $7 * interval '1 minute', budget_cents = $8, limits = $9 where id = 'ceo'`,
			patterns(r, loaded), patterns(r, loaded), patterns(r, loaded), patterns(r, loaded), rules(r, loaded), pick(r, "operator", "client", "none"),
			1+r.IntN(99), r.IntN(1000), pick(r, `{}`, `{"write": {"burst": 1, "per_minute": 2}}`))
		id := fmt.Sprintf("child%d-%c", n, 'a'+n%26)
		args := map[string]any{"name": id, "display_name": "Child"}
		if r.IntN(2) == 0 {
			args["allowed_tools"] = patterns(r, loaded)
		}
		out := tooltest.Call(t, b.cat, tooltest.Who("ceo"), "create_agent", args)
		if out.OK == nil {
			if out.Invalid == nil || out.Invalid.Parameter != "allowed_tools" {
				t.Fatalf("seed %d: create_agent %v: %+v", seed, args, out)
			}
			continue
		}
		made++
		maker, child := b.snapshot(t, "ceo"), b.snapshot(t, id)
		for _, e := range loaded.All() {
			for _, arguments := range []string{`{}`, `{"agent_id":"x"}`, `{"query":"drop"}`} {
				if freer(child, maker, e.Tool, []byte(arguments)) {
					t.Fatalf("seed %d: %s may do more with %s %s than its maker:\nmaker %+v\nchild %+v", seed, id, e.Name, arguments, maker.Agent, child.Agent)
				}
			}
		}
		if n := b.number(t, `select count(*) from agents c, agents m where c.id = $1 and m.id = 'ceo'
			and (c.limits, c.approval_life, c.grant_life, c.approver) is not distinct from (m.limits, m.approval_life, m.grant_life, m.approver)
			and c.budget_cents <= m.budget_cents and 'create_agent' = any (c.denied_tools)`, id); n != 1 {
			t.Errorf("seed %d: %s has other limits, approvers or a larger budget than its maker", seed, id)
		}
	}
	if made < 10 {
		t.Errorf("seed %d: only %d agents were made: the property was hardly looked at", seed, made)
	}
}

// An agent that may spend so much in a day has not more of it by making agents,
// not even agents for one task, and removing them again.
func TestCreateAgent_is_no_way_to_more_money(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `insert into budgets (id, agent_id, period, limit_micros) values ('b1', 'ceo', 'day', 1000)`)
	child := tooltest.OK[made](t, b.cat, tooltest.Who("ceo"), "create_agent", `{"name":"child","display_name":"Child"}`).AgentID
	worker := tooltest.OK[made](t, b.cat, tooltest.Who("ceo"), "spawn_ephemeral", `{"instruction":"x","context":"y","tools":["memory_search"]}`).AgentID
	cost := int64(500)
	for _, id := range []string{child, worker} {
		if s := b.snapshotOf(t, id, "memory_search"); s.Money == nil || s.Money.Stop != nil {
			t.Errorf("%s before: %+v", id, s.Money)
		}
		row := usage.Row{At: time.Now(), Agent: id, Model: "m", Reported: &cost, Source: "loop", ID: id}
		if _, err := usage.Record(t.Context(), b.tx, row); err != nil {
			t.Fatal(err)
		}
	}
	tooltest.OK[made](t, b.cat, tooltest.Who("ceo"), "agent_remove", fmt.Sprintf(`{"agent_id":%q}`, child))
	again := tooltest.OK[made](t, b.cat, tooltest.Who("ceo"), "create_agent", `{"name":"again","display_name":"Again"}`).AgentID
	for _, id := range []string{"ceo", worker, again} {
		if s := b.snapshotOf(t, id, "memory_search"); s.Money == nil || s.Money.Stop == nil || s.Money.Stop.AgentID != "ceo" || s.Money.Stop.Settled != 1000 {
			t.Errorf("%s: %+v", id, s.Money)
		}
	}
	if s := b.snapshotOf(t, "lead", "memory_search"); s.Money != nil {
		t.Errorf("an operator made lead, which has no budget: %+v", s.Money)
	}
}

// snapshotOf is snapshot for a call of a tool.
func (b bench) snapshotOf(t *testing.T, id, name string) policy.Snapshot {
	t.Helper()
	loaded, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	s, err := standing.NewReader(b.tx).Peek(t.Context(), standing.Who{Agent: id, Credential: "test", Scopes: []string{caller.ScopeAll}}, &loaded.Find(name).Definition)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// snapshot is what the gate reads of an agent, for a caller with every scope.
func (b bench) snapshot(t *testing.T, id string) policy.Snapshot {
	t.Helper()
	s, err := standing.NewReader(b.tx).Peek(t.Context(), standing.Who{Agent: id, Credential: "test", Scopes: []string{caller.ScopeAll}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// freer reports whether the child passes a step of the gate that its maker does
// not pass.
func freer(child, maker policy.Snapshot, t policy.Tool, arguments []byte) bool {
	if policy.Lists(child, &t) && !policy.Lists(maker, &t) {
		return true
	}
	c, childAsks := policy.Weigh(child, t, arguments)
	m, makerAsks := policy.Weigh(maker, t, arguments)
	return c.Allowed && !m.Allowed || makerAsks != "" && m.Allowed && childAsks == ""
}

func pick(r *rand.Rand, among ...string) string { return among[r.IntN(len(among))] }

// patterns are some entries of a capability list.
func patterns(r *rand.Rand, c *catalog.Catalog) []string {
	list := []string{}
	for range r.IntN(4) {
		name := c.All()[r.IntN(len(c.All()))].Name
		family, _, _ := strings.Cut(name, "_")
		list = append(list, pick(r, name, family+"_*", name+"_*", "*"))
	}
	if !slices.Contains(list, "*") && r.IntN(3) == 0 {
		list = append(list, "*")
	}
	return list
}

func rules(r *rand.Rand, c *catalog.Catalog) string {
	list := []string{}
	for range r.IntN(3) {
		list = append(list, fmt.Sprintf(`{"tool": %q, "effect": %q%s}`, c.All()[r.IntN(len(c.All()))].Name, pick(r, "allow", "forbid", "ask"),
			pick(r, "", `, "when": [{"arg": "agent_id", "op": "eq", "value": "x"}]`)))
	}
	return "[" + strings.Join(list, ",") + "]"
}
