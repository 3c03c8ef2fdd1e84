package operator_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// waits files a request of an agent.
func (b bench) waits(id, agent, kind, arguments string) {
	b.t.Helper()
	b.exec(`insert into approvals (id, kind, agent_id, credential_id, tool, definition, arguments_hash, arguments, because, expires_at)
		values ($1, $2, $3, 'k1', 'odoo_execute', '', '', $4, 'rule 1', clock_timestamp() + interval '15 minutes')`, id, kind, agent, arguments)
}

type decided struct {
	ApprovalID string `json:"approval_id"`
	State      string
	DecidedBy  string `json:"decided_by"`
	Reason     string
	Covers     json.RawMessage
	Changed    bool
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	ok[noted](b, "agent create", `{"agent_id":"cat"}`)
	b.waits("aone23", "bot", "call", `{"query":"a","limit":1}`)
	b.waits("atwo23", "bot", "call", `{"query":"b"}`)
	b.waits("athree", "cat", "call", `{}`)
	b.exec(`update approvals set expires_at = clock_timestamp() where id = 'athree'`)
	list := func(args string) []string {
		var ids []string
		for _, a := range ok[struct{ Approvals []decided }](b, "approval list", args).Approvals {
			ids = append(ids, a.ApprovalID+" "+a.State)
		}
		return ids
	}
	if diff := cmp.Diff([]string{"aone23 pending", "atwo23 pending"}, list(`{}`)); diff != "" {
		t.Errorf("what waits (-want +got):\n%s", diff)
	}
	got := ok[decided](b, "approve", `{"approval_id":"aone","for_minutes":5,"same":["query"],"reason":"fine"}`)
	if got.State != "approved" || got.DecidedBy != "local:tester" || got.Reason != "fine" || !got.Changed || string(got.Covers) != `{"query":"a"}` {
		t.Errorf("approve: %+v", got)
	}
	if got := ok[decided](b, "deny", `{"approval_id":"atwo23","reason":"no"}`); got.State != "denied" || !got.Changed {
		t.Errorf("deny: %+v", got)
	}
	if got := ok[decided](b, "deny", `{"approval_id":"atwo23"}`); got.Changed {
		t.Errorf("a second time: %+v", got)
	}
	b.fails("approve", `{"approval_id":"atwo23"}`, "conflict")
	b.fails("approve", `{"approval_id":"athree"}`, "expired")
	b.fails("approve", `{"approval_id":"nothing"}`, "not_found")
	b.fails("approve", `{"approval_id":"aone23","for_minutes":5}`, "same")
	b.fails("approve", `{"approval_id":"aone23","for_minutes":5,"any":true,"same":["query"]}`, "any")
	if diff := cmp.Diff([]string{"atwo23 denied", "aone23 approved", "athree expired"}, list(`{"state":"all"}`)); diff != "" {
		t.Errorf("everything (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"athree expired"}, list(`{"agent_id":"cat","state":"expired"}`)); diff != "" {
		t.Errorf("of one agent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"aone23 approved"}, list(`{"state":"all","limit":1,"after":"atwo23"}`)); diff != "" {
		t.Errorf("the next page (-want +got):\n%s", diff)
	}
	if n := b.text(`select count(*) from audit where agent_id = 'bot' and method in ('approve', 'deny') and outcome = 'ok'`); n != "3" {
		t.Errorf("AUTH-24: %s of 3 decisions are on record", n)
	}
}

func TestApprove_any_arguments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.waits("aone23", "bot", "call", `{"query":"a"}`)
	if got := ok[decided](b, "approve", `{"approval_id":"aone23","for_minutes":60,"any":true}`); string(got.Covers) != `{}` {
		t.Errorf("covers %s", got.Covers)
	}
}

func TestGrants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot","allow":["*"]}`)
	ok[noted](b, "agent scoped", `{"agent_id":"bot","patterns":["odoo_execute"]}`)
	b.waits("ggrant", "bot", "grant", `{"reason":"x"}`)
	b.waits("acall1", "bot", "call", `{"query":"a"}`)
	b.waits("acall2", "bot", "call", `{"query":"b"}`)
	b.waits("aopen1", "bot", "call", `{"query":"c"}`)
	ok[decided](b, "approve", `{"approval_id":"ggrant"}`)
	ok[decided](b, "approve", `{"approval_id":"acall1"}`)
	ok[decided](b, "approve", `{"approval_id":"acall2","for_minutes":5,"same":["query"]}`)
	type grants struct {
		Grants []struct {
			ApprovalID string `json:"approval_id"`
			Kind       string
			Covers     string
		}
	}
	var got []string
	for _, g := range ok[grants](b, "grant list", `{"agent_id":"bot"}`).Grants {
		got = append(got, g.ApprovalID+" "+g.Kind+" "+g.Covers)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"acall1 call one call", `acall2 call {"query": "b"}`, "ggrant grant any arguments"}, got); diff != "" {
		t.Errorf("alive (-want +got):\n%s", diff)
	}
	b.fails("grant revoke", `{"approval_id":"acall"}`, "ambiguous")
	b.fails("grant revoke", `{"approval_id":"aopen1"}`, "not_found")
	b.fails("grant revoke", `{"approval_id":" "}`, "approval_id")
	granted := func() string {
		return ok[explained](b, "agent explain", `{"agent_id":"bot","tool":"odoo_execute"}`).Step("scoped_tools")
	}
	if v := granted(); v != "passes a grant is alive" {
		t.Errorf("before: %s", v)
	}
	for _, id := range []string{"gg", "acall2", "acall1"} {
		if got := ok[decided](b, "grant revoke", `{"approval_id":"`+id+`","reason":"done"}`); got.State != "revoked" || !got.Changed {
			t.Errorf("revoke %s: %+v", id, got)
		}
	}
	if v := granted(); !strings.HasPrefix(v, "refuses") {
		t.Errorf("after: %s", v)
	}
	b.fails("grant revoke", `{"approval_id":"ggrant"}`, "not_found")
	if got := b.text(`select reason from approvals where id = 'ggrant'`); got != "revoked by local:tester: done" {
		t.Errorf("the record says %s", got)
	}
}
