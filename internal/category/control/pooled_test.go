package control_test

import (
	"testing"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
)

// LAM-01: behind a transaction pooler the types of parameters are guessed from
// Go's, so every statement is run that way once.
func TestLAM_01_pooled(t *testing.T) {
	t.Parallel()
	db := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), Pooled: true})
	setup(t, db)
	cat := shopOn(db)
	exec(t, db, `update agents set allowed_tools = '{*}', scoped_tools = '{shop_order}', approval_required_tools = '{shop_send}' where id = 'coder'`)
	choice := offer(t, db, "coder", "m")
	coder := tooltest.Who("coder")
	asked := tooltest.OK[requested](t, cat, coder, "capability_request", order)
	for _, c := range []struct{ name, args string }{
		{"tool_preflight", `{"tools":["shop_send","shop_order"],"arguments":{"shop_send":{"to":["x"]}}}`},
		{"audit_trail_query", `{"since":"2026-01-01T00:00:00Z","until":"2999-01-01T00:00:00Z","outcome":"failure","event_type":"shop_send","skill_id":"x","offset":1}`},
		{"audit_trail_query", `{"cursor":"2026-11-01T10:00:00Z/00000000-0000-0000-0000-000000000000"}`},
		{"decision_list", `{}`},
		{"decision_resolve", `{"decision_id":"` + choice + `","chosen_key":"a"}`},
		{"submit_feedback", `{"signal_type":"positive","detail":"x"}`},
		{"schedule_task", `{"cron":"0 9 * * *","task":"x","name":"n","notify_channel":"line","notify_chat_id":"8"}`},
		{"list_cron_tasks", `{"enabled_only":true,"limit":2}`},
		{"update_cron_task", `{"name":"n","task":"y"}`},
		{"run_cron_task", `{"name":"n"}`},
		{"pause_cron_task", `{"name":"n"}`},
		{"delete_cron_task", `{"name":"n"}`},
		{"create_reminder", `{"time":"5m","message":"m","channel":"line","chat_id":"8"}`},
		{"list_reminders", `{}`},
		{"emergency_stop", `{"action":"status"}`},
	} {
		tooltest.OK[map[string]any](t, cat, coder, c.name, c.args)
	}
	id := remind(t, cat, coder, "1h")
	tooltest.OK[map[string]any](t, cat, coder, "cancel_reminder", `{"id":"`+id+`"}`)
	tooltest.OK[decided](t, cat, approver(), "tool_approve", `{"approval_id":"`+asked.ApprovalID+`","decision":"approve","for_minutes":5}`)
	tooltest.OK[result](t, cat, operator(), "emergency_stop", `{"action":"stop","agent_id":"coder"}`)
}
