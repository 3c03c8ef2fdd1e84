package operator_test

import (
	"testing"

	"pawgate/internal/operator"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
)

// LAM-01: behind a transaction pooler the types of parameters are guessed from
// Go's, so every statement is run that way once.
func TestLAM_01_pooled(t *testing.T) {
	t.Parallel()
	db := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), Pooled: true})
	b := bench{t: t, Operator: operator.Operator{DB: db, Catalog: tools(t), Env: "test", By: "x", Now: clock}}
	ok[noted](b, "agent create", `{"agent_id":"bot","allow":["*"]}`)
	b.waits("aone23", "bot", "call", `{"query":"a"}`)
	b.waits("atwo23", "bot", "call", `{"query":"b"}`)
	b.exec(`insert into work (id, kind, source, agent_id, from_agent, payload, root_id, state, finished_at)
		select id, 'prompt', 'x', 'bot', 'bot', '{}', id, 'dead', now() from cast('00000000-0000-7000-8000-000000000001' as uuid) id`)
	for _, c := range []struct{ command, args string }{
		{"agent set", `{"agent_id":"bot","approver":"client","approval_minutes":30,"grant_minutes":5}`},
		{"agent rules", encode(t, map[string]any{"agent_id": "bot", "source": twoRules})},
		{"agent rules", `{"agent_id":"bot"}`},
		{"agent limits", `{"agent_id":"bot","class":"read","burst":5}`},
		{"agent show", `{"agent_id":"bot"}`},
		{"agent explain", `{"agent_id":"bot","tool":"memory_store","arguments":{"query":"x"}}`},
		{"approval list", `{"state":"all","agent_id":"bot","after":"aone23"}`},
		{"approve", `{"approval_id":"aone","for_minutes":5,"same":["query"]}`},
		{"deny", `{"approval_id":"atwo"}`},
		{"grant list", `{}`},
		{"grant revoke", `{"approval_id":"aone"}`},
		{"audit list", `{}`},
		{"audit verify", `{"agent_id":"bot"}`},
		{"audit prune", `{"before":"30d"}`},
		{"oauth map", `{"issuer":"https://login.example.com","subject":"a","agent_id":"bot"}`},
		{"oauth list", `{}`},
		{"oauth unmap", `{"issuer":"https://login.example.com","subject":"a"}`},
		{"maintain", `{}`},
		{"skill import", encode(t, map[string]any{"agent_id": "bot", "folder": "pdf", "archive": archived(t, "# PDF\n\nFills forms.\n")})},
		{"skill list", `{"agent_id":"bot","after":"a"}`},
		{"skill export", `{"agent_id":"bot","skill_name":"pdf"}`},
		{"skill remove", `{"agent_id":"bot","skill_name":"pdf"}`},
		{"schedule list", `{"agent_id":"bot"}`},
		{"queue list", `{"agent_id":"bot","after":"00000000-0000-7000-8000-000000000001"}`},
		{"queue retry", `{"id":"00000000-0000-7000-8000-000000000001"}`},
		{"stop", `{"agent_id":"bot"}`},
	} {
		ok[map[string]any](b, c.command, c.args)
	}
}
