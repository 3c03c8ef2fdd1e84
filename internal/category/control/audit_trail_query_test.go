package control_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

type trailRow struct {
	Timestamp time.Time
	EventType string `json:"event_type"`
	AgentID   string `json:"agent_id"`
	Tool      string
	Outcome   string
	Reason    string
	Arguments json.RawMessage
}

type trail struct {
	Events     []trailRow
	NextCursor string `json:"next_cursor"`
}

func query(t *testing.T, cat tool.Category, who caller.Caller, args string) trail {
	t.Helper()
	return tooltest.OK[trail](t, cat, who, "audit_trail_query", args)
}

// record appends rows, one a second from 10:00 UTC on, oldest first.
func record(t *testing.T, db postgres.DB, rows ...string) {
	t.Helper()
	for i, row := range rows {
		exec(t, db, `insert into audit (agent_id, seq, at, id, kind, request_id, door, method, tool, decision, reason, outcome, arguments, prev, hash)
			select coalesce(r.agent_id, ''), 1000 + $2, timestamptz '2026-11-01T10:00:00Z' + $2 * interval '1 second', gen_random_uuid(), r.kind, 'r', coalesce(r.door, 'http'),
				coalesce(r.method, 'tools/call'), coalesce(r.tool, ''), coalesce(r.decision, 'allowed'), coalesce(r.reason, ''), coalesce(r.outcome, ''), r.arguments, '', ''
			from jsonb_populate_record(null::audit, $1::jsonb) r`, row, i)
	}
}

func sample(t *testing.T) tool.Category {
	t.Helper()
	db := postgrestest.New(t)
	cat := setup(t, db)
	record(t, db,
		`{"agent_id":"coder","kind":"decision","tool":"memory_store"}`, // the outcome says it all
		`{"agent_id":"coder","kind":"outcome","tool":"memory_store","outcome":"ok","arguments":{"content":"x"}}`,
		`{"agent_id":"coder","kind":"outcome","tool":"skill_pin","outcome":"fault","reason":"not_found","arguments":{"skill_name":"deploy"}}`,
		`{"agent_id":"coder","kind":"decision","decision":"refused","tool":"shop_close","reason":"denied"}`,
		`{"agent_id":"coder","kind":"decision","decision":"refused","tool":"shop_serch","reason":"unknown_tool"}`,
		`{"agent_id":"coder","kind":"decision","decision":"refused","tool":"odoo_search","reason":"rate_limited"}`,
		`{"agent_id":"coder","kind":"outcome","door":"operator","method":"agent.deny","outcome":"ok","arguments":{"patterns":["shop_close"]}}`,
		`{"agent_id":"lead","kind":"outcome","tool":"memory_search","outcome":"invalid","reason":"limit"}`,
		`{"agent_id":"stranger","kind":"outcome","tool":"memory_search","outcome":"replayed"}`,
		`{"kind":"decision","decision":"refused","reason":"bad_key"}`,
	)
	return cat
}

func words(tr trail) []string {
	got := []string{}
	for _, r := range tr.Events {
		got = append(got, strings.TrimRight(fmt.Sprintf("%s %s %s %s %s", r.AgentID, r.EventType, r.Tool, r.Outcome, r.Reason), " "))
	}
	return got
}

func TestAuditTrailQuery_ownership(t *testing.T) {
	t.Parallel()
	cat := sample(t)
	coder := []string{
		"coder refusal odoo_search refused rate_limited",
		"coder refusal shop_serch refused unknown_tool",
		"coder refusal shop_close refused unknown_tool", // denied, but it must not learn that the tool exists
		"coder call skill_pin fault not_found",
		"coder call memory_store ok",
	}
	lead := append([]string{"lead call memory_search invalid limit"}, coder...)
	if diff := cmp.Diff(coder, words(query(t, cat, tooltest.Who("coder"), `{}`))); diff != "" {
		t.Errorf("its own (-want +got):\n%s", diff)
	}
	for _, superior := range []string{"lead", "ceo"} {
		if diff := cmp.Diff(lead, words(query(t, cat, tooltest.Who(superior), `{}`))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", superior, diff)
		}
	}
	all := query(t, cat, operator(), `{}`)
	if got := words(all); len(got) != 9 || got[0] != " login  refused bad_key" || got[3] != "coder command agent.deny ok" || got[6] != "coder refusal shop_close refused denied" {
		t.Errorf("operator: %q", got)
	}
	if diff := cmp.Diff(coder, words(query(t, cat, tooltest.Who("lead"), `{"agent_id":"coder"}`))); diff != "" {
		t.Errorf("lead about coder (-want +got):\n%s", diff)
	}
	for _, c := range []struct{ who, about string }{{"coder", "lead"}, {"lead", "stranger"}, {"stranger", "coder"}, {"coder", "nobody"}} {
		tooltest.Fault(t, cat, tooltest.Who(c.who), "audit_trail_query", `{"agent_id":"`+c.about+`"}`, fault.NotFound)
	}
}

func TestAuditTrailQuery_filters(t *testing.T) {
	t.Parallel()
	cat := sample(t)
	for args, want := range map[string][]string{
		`{"event_type":"call"}`:                      {"memory_search", "memory_search", "skill_pin", "memory_store"},
		`{"event_type":"refusal"}`:                   {"odoo_search", "shop_serch", "shop_close"},
		`{"event_type":"command"}`:                   {"agent.deny"},
		`{"event_type":"login"}`:                     {""},
		`{"event_type":"memory_search"}`:             {"memory_search", "memory_search"},
		`{"outcome":"ok"}`:                           {"agent.deny", "memory_store"},
		`{"outcome":"success"}`:                      {"memory_search", "agent.deny", "memory_store"},
		`{"outcome":"failure"}`:                      {"memory_search", "skill_pin"},
		`{"outcome":"refused","event_type":"login"}`: {""},
		`{"skill_id":"deploy"}`:                      {"skill_pin"},
		`{"skill_id":"deplo"}`:                       {},
		`{"since":"2026-11-01T10:00:08Z"}`:           {"", "memory_search"},
		`{"since":"2026-11-01T18:00:08+08:00"}`:      {"", "memory_search"}, // the same moment elsewhere
		`{"until":"2026-11-01T10:00:02Z"}`:           {"memory_store"},
		`{"since":"2026-11-01T10:00:02Z","until":"2026-11-01T18:00:03+08:00"}`: {"skill_pin"},
		`{"limit":"1"}`:            {""},
		`{"limit":2,"offset":"3"}`: {"agent.deny", "odoo_search"},
	} {
		got := []string{}
		for _, r := range query(t, cat, operator(), args).Events {
			got = append(got, r.Tool)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

// Defect 27 there: times were compared as text, and what was invalid ignored.
func TestAuditTrailQuery_refuses(t *testing.T) {
	t.Parallel()
	cat := sample(t)
	for args, parameter := range map[string]string{
		`{"since":"yesterday"}`:                                           "since",
		`{"since":"2026-11-01"}`:                                          "since",
		`{"until":"2026-11-01T10:00:00"}`:                                 "until", // no zone
		`{"since":"2026-11-01T10:00:00Z","until":"2026-11-01T10:00:00Z"}`: "until",
		`{"limit":0}`:                   "limit",
		`{"limit":1001}`:                "limit",
		`{"limit":"many"}`:              "limit",
		`{"offset":-1}`:                 "offset",
		`{"outcome":"good"}`:            "outcome",
		`{"event_type":"Memory Store"}`: "event_type",
		`{"cursor":"x"}`:                "cursor",
		`{"offset":1,"cursor":"2026-11-01T10:00:00Z/00000000-0000-0000-0000-000000000000"}`: "offset",
		`{"agent":"coder"}`: "agent",
	} {
		tooltest.Invalid(t, cat, tooltest.Who("coder"), "audit_trail_query", args, parameter)
	}
}

func TestAuditTrailQuery_pages(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	cat := setup(t, db)
	exec(t, db, `insert into audit (agent_id, seq, at, id, kind, request_id, door, method, tool, decision, outcome, prev, hash, arguments)
		select 'coder', n, timestamptz '2026-11-01' + (n / 3) * interval '1 microsecond', gen_random_uuid(), 'outcome', 'r', 'http', 'tools/call', 't' || n, 'allowed', 'ok', '', '',
			jsonb_build_object('long', (select string_agg(md5((n * 200 + i)::text), '') from generate_series(1, 200) i))
		from generate_series(1, 10) n`)
	for _, by := range []string{"cursor", "offset"} {
		seen, cursor := map[string]bool{}, ""
		for offset := 0; offset < 30; offset += 3 {
			args := fmt.Sprintf(`{"limit":3,"cursor":%q}`, cursor)
			if by == "offset" {
				args = fmt.Sprintf(`{"limit":3,"offset":%d}`, offset)
			}
			page := query(t, cat, tooltest.Who("coder"), args)
			for _, r := range page.Events {
				if seen[r.Tool] {
					t.Errorf("by %s: %s came twice", by, r.Tool)
				}
				seen[r.Tool] = true
				if string(compact(t, r.Arguments)) != `{"omitted":true}` {
					t.Errorf("long arguments are not left out: %d bytes", len(r.Arguments))
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		if len(seen) != 10 {
			t.Errorf("by %s %d of 10 rows were seen", by, len(seen))
		}
	}
}
