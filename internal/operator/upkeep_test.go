package operator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"pawgate/internal/licence"
	"pawgate/internal/operator"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
)

type broken struct {
	Chains, Rows int
	Broken       []struct {
		AgentID string `json:"agent_id"`
		Seq     int64
		Problem string
	}
}

func TestAuditVerify(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		ok[noted](b, "agent create", fmt.Sprintf(`{"agent_id":"bot%d"}`, time.Now().UnixNano()))
	}
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	for _, role := range []string{"a", "b", "c", "d"} {
		ok[noted](b, "agent set", `{"agent_id":"bot","role":"`+role+`"}`)
	}
	if got := ok[broken](b, "audit verify", `{}`); len(got.Broken) != 0 || got.Rows != 8 || got.Chains != 4 {
		t.Errorf("an untouched trail: %+v", got)
	}
	b.exec(`alter table audit disable trigger audit_append_only`)
	b.exec(`update audit set reason = 'nothing happened' where agent_id = 'bot' and seq = 2`)
	b.exec(`delete from audit where agent_id = 'bot' and seq = 4`)
	b.exec(`alter table audit enable trigger audit_append_only`)
	got := ok[broken](b, "audit verify", `{"agent_id":"bot"}`)
	var places []string
	for _, p := range got.Broken {
		places = append(places, fmt.Sprintf("%s %d %s", p.AgentID, p.Seq, p.Problem))
	}
	if diff := cmp.Diff([]string{"bot 2 the row was edited", "bot 5 rows before it are missing"}, places); diff != "" {
		t.Errorf("broken places (-want +got):\n%s", diff)
	}
}

func TestAuditPrune(t *testing.T) {
	t.Parallel()
	b := bench{t: t, Operator: operator.Operator{DB: postgrestest.Clone(t), Catalog: tools(t), Env: "test", By: "x", Now: time.Now}}
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.exec(`select audit_partition('2026-01-01')`)
	b.exec(`select audit_partition('2026-02-01')`)
	b.fails("audit prune", `{"before":"2999-01-01"}`, "before")
	b.fails("audit prune", `{"before":"soon"}`, "before")
	b.fails("audit prune", `{}`, "before")
	type pruned struct {
		Dropped []string
		Note    string
	}
	if got := ok[pruned](b, "audit prune", `{"before":"2026-02-28"}`); len(got.Dropped) != 1 || got.Dropped[0] != "audit_2026_01" {
		t.Errorf("a month that goes on stays: %+v", got)
	}
	if got := ok[pruned](b, "audit prune", `{"before":"2026-02-28"}`); len(got.Dropped) != 0 || got.Note == "" {
		t.Errorf("again: %+v", got)
	}
	if got := ok[broken](b, "audit verify", `{}`); len(got.Broken) != 0 {
		t.Errorf("what is left cannot be verified: %+v", got)
	}
}

func TestOAuth(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	ok[noted](b, "agent create", `{"agent_id":"cat"}`)
	type mapped struct {
		Subject string
		AgentID string `json:"agent_id"`
		Scopes  []string
		Before  string `json:"agent_before"`
	}
	const alice = `"issuer":"https://login.example.com/","subject":"alice"`
	if diff := cmp.Diff(mapped{"alice", "bot", []string{"*:read"}, ""}, ok[mapped](b, "oauth map", `{`+alice+`,"agent_id":"bot"}`)); diff != "" {
		t.Errorf("map (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(mapped{"alice", "cat", []string{"approve", "memory:write"}, "bot"},
		ok[mapped](b, "oauth map", `{`+alice+`,"agent_id":"cat","scope":["memory:write","approve"]}`)); diff != "" {
		t.Errorf("map again (-want +got):\n%s", diff)
	}
	type listed struct{ Subjects []mapped }
	if got := ok[listed](b, "oauth list", `{}`).Subjects; len(got) != 1 || got[0].AgentID != "cat" {
		t.Errorf("list: %+v", got)
	}
	if got := ok[listed](b, "oauth list", `{"agent_id":"bot"}`).Subjects; len(got) != 0 {
		t.Errorf("of another agent: %+v", got)
	}
	for args, want := range map[string]string{
		`{"issuer":"login.example.com","subject":"a","agent_id":"bot"}`:                   "issuer",
		`{"issuer":"http://login.example.com","subject":"a","agent_id":"bot"}`:            "issuer",
		`{"issuer":"https://u:p@login.example.com","subject":"a","agent_id":"bot"}`:       "issuer",
		`{"issuer":"https://login.example.com?x=1","subject":"a","agent_id":"bot"}`:       "issuer",
		`{"issuer":"https://login.example.com","subject":"","agent_id":"bot"}`:            "subject",
		`{"issuer":"https://login.example.com","subject":"a","agent_id":"nobody"}`:        "not_found",
		`{"issuer":"https://l.example.com","subject":"a","agent_id":"bot","scope":["x"]}`: "scope",
	} {
		b.fails("oauth map", args, want)
	}
	ok[mapped](b, "oauth map", `{"issuer":"http://127.0.0.1:9000","subject":"a","agent_id":"bot"}`)
	ok[noted](b, "agent set", `{"agent_id":"bot","state":"archived"}`)
	b.fails("oauth map", `{`+alice+`,"agent_id":"bot"}`, "conflict")
	if got := ok[mapped](b, "oauth unmap", `{`+alice+`}`); got.AgentID != "cat" {
		t.Errorf("unmap: %+v", got)
	}
	b.fails("oauth unmap", `{`+alice+`}`, "not_found")
}

func TestMaintain(t *testing.T) {
	t.Parallel()
	b := bench{t: t, Operator: operator.Operator{DB: postgrestest.Clone(t), Catalog: tools(t), Env: "test", By: "x", Now: time.Now}}
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.exec(`insert into idempotency (agent_id, credential_id, key, tool, arguments_hash, started_at, deadline)
		select 'bot', 'k', n::text, 't', '', now() - n * interval '1 hour', now() from generate_series(20, 30) n`)
	b.exec(`insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, state, decided_at, created_at, expires_at, covers_until)
		values ('old', 'bot', 'k', 't', '', '', 'denied', now() - interval '31 days', now() - interval '32 days', now() - interval '31 days', null),
		       ('undecided', 'bot', 'k', 't', '', '', 'pending', null, now() - interval '32 days', now() - interval '31 days', null),
		       ('recent', 'bot', 'k', 't', '', '', 'denied', now() - interval '29 days', now() - interval '32 days', now() - interval '31 days', null),
		       ('alive', 'bot', 'k', 't', '', '', 'approved', now() - interval '31 days', now() - interval '32 days', now() - interval '31 days', now() + interval '1 day'),
		       ('waits', 'bot', 'k', 't', '', '', 'pending', null, now(), now() + interval '1 hour', null)`)
	b.exec(`insert into decisions (id, agent_id, question, options, state, expires_at)
		values ('gone', 'bot', 'q', '[]', 'open', now() - interval '31 days'), ('made', 'bot', 'q', '[]', 'resolved', now() - interval '31 days'), ('open', 'bot', 'q', '[]', 'open', now())`)
	b.exec(`insert into buckets values ('full', 1, true, now() - interval '25 hours'), ('used', 1, true, now())`)
	// The database may be a copy of one that was made last month.
	b.exec(`select audit_partition((date_trunc('month', now()) + n * interval '1 month')::date) from generate_series(0, 3) n`)
	b.exec(`do $$ begin execute format('drop table %I', 'audit_' || to_char(now() + interval '2 months', 'YYYY_MM')); end $$`)
	want := operator.Maintained{Outcomes: 7, Approvals: 2, Decisions: 1, Buckets: 1, Partitions: 1}
	got, err := operator.Maintain(t.Context(), b.DB, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if left := b.text(`select string_agg(id, ' ' order by id) from approvals`); left != "alive recent waits" {
		t.Errorf("left: %s", left)
	}
	if diff := cmp.Diff(operator.Maintained{}, ok[operator.Maintained](b, "maintain", `{}`)); diff != "" {
		t.Errorf("a second time (-want +got):\n%s", diff)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := operator.Maintain(t.Context(), b.DB, time.Now()); err != nil {
				t.Errorf("side by side: %v", err)
			}
		})
	}
	wg.Wait()
}

// A call that draws on buckets nobody used for a day holds one of them while
// the upkeep has another: neither waits for the other.
func TestMaintainWaitsForNoBucket(t *testing.T) {
	t.Parallel()
	b := bench{t: t, Operator: operator.Operator{DB: postgrestest.Clone(t), Catalog: tools(t), Env: "test", By: "x", Now: time.Now}}
	b.exec(`insert into buckets select 'class bot ' || n, 1, true, now() - interval '25 hours' from generate_series(1, 3) n`)
	var done operator.Maintained
	err := postgres.InTx(t.Context(), b.DB, func(call pgx.Tx) error {
		if _, err := call.Exec(t.Context(), `select from buckets where key = 'class bot 2' for update`); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var err error
		done, err = operator.Maintain(ctx, b.DB, time.Now())
		return err
	})
	if err != nil || done.Buckets != 2 {
		t.Errorf("%d buckets removed, want the 2 that are free (%v)", done.Buckets, err)
	}
}

// B-55: the licence's number of agents holds whichever way one is made.
func TestAgentCreate_B_55_licence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Licence = licence.Licence{Customer: "c", Edition: tool.Pro, Agents: 2, Issued: noon, NotBefore: noon, Expires: noon.AddDate(1, 0, 0)}
	ok[noted](b, "agent create", `{"agent_id":"a"}`)
	ok[noted](b, "agent create", `{"agent_id":"b"}`)
	b.fails("agent create", `{"agent_id":"c"}`, "edition")
	source := func(name string) string {
		return encode(t, map[string]any{"replace": true, "source": "[agent]\nname = '" + name + "'\n"})
	}
	b.fails("agent import", source("c"), "edition")
	ok[noted2](b, "agent import", source("b")) // it is there already
	ok[noted](b, "agent set", `{"agent_id":"a","state":"archived"}`)
	ok[noted](b, "agent create", `{"agent_id":"c"}`)
	b.Licence, b.LicenceError = licence.Licence{}, licence.ErrLicence
	b.fails("agent create", `{"agent_id":"d"}`, "not_configured")
	ok[map[string]any](b, "stop", `{}`)
}

type noted2 struct{ Created bool }

func TestEnsureDefault_asks_the_client(t *testing.T) {
	t.Parallel()
	tx := postgrestest.New(t)
	if _, err := operator.EnsureDefault(t.Context(), tx, "test"); err != nil {
		t.Fatal(err)
	}
	var approver string
	if err := tx.QueryRow(t.Context(), `select approver from agents where id = 'default'`).Scan(&approver); err != nil || approver != "client" {
		t.Errorf("approver %s, %v", approver, err)
	}
}
