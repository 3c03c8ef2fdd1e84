package agent_test

import (
	"fmt"
	"testing"

	"pawgate/internal/category/agent"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
)

// LAM-01: behind a transaction pooler the types of parameters are guessed from
// Go's, so every statement is run that way once.
func TestLAM_01_pooled(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), Pooled: true})
	if _, err := pool.Exec(t.Context(), `insert into agents (id, allowed_tools) values ('boss', '{*}')`); err != nil {
		t.Fatal(err)
	}
	cat := agent.New(pool, clock)
	boss := operatorAs("boss")
	call := func(name, args string) map[string]any {
		t.Helper()
		return tooltest.OK[map[string]any](t, cat, boss, name, args)
	}
	call("create_agent", `{"name":"bot","display_name":"Bot","soul":"# Bot"}`)
	call("list_agents", `{"cursor":"a","limit":2}`)
	call("agent_update", `{"agent_id":"bot","icon":"x","if_version":1}`)
	call("agent_update", `{"agent_id":"bot","budget_cents":1,"max_concurrent":2,"heartbeat_enabled":true,"heartbeat_cron":"0 9 * * *","reports_to":"","api_mode":"cli"}`)
	call("agent_update_soul", `{"agent_id":"bot","content":"# Bot 2","if_version":1}`)
	call("agent_update_soul", `{"agent_id":"bot","rollback_to":1}`)
	call("agent_status", `{"agent_id":"bot","include_soul":true}`)
	call("evolution_toggle", `{"agent_id":"bot","field":"max_silence_hours","value":1.5}`)
	call("evolution_status", `{"agent_id":"bot"}`)
	code := call("pairing_manage", `{"action":"generate","agent_id":"bot","channel":"line","subject":"U1"}`)["code"]
	call("pairing_manage", fmt.Sprintf(`{"action":"redeem","agent_id":"bot","channel":"line","subject":"U1","code":%q}`, code))
	tooltest.OK[paired](t, cat, tooltest.Who("bot"), "pairing_manage", `{"action":"approve","channel":"line","subject":"U2"}`)
	call("pairing_manage", `{"action":"list","agent_id":"bot","channel":"line","subject":"U1"}`)
	call("identity_resolve", `{"channel":"line","external_id":"U1","fields":["emails","handles"]}`)
	call("agent_remove", `{"agent_id":"bot"}`)
}
