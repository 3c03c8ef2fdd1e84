package operator_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/licence"
	"pawgate/internal/people"
	"pawgate/internal/tool"
)

type archive struct {
	State     string
	MovedTo   string   `json:"reports_moved_to"`
	Moved     []string `json:"reports_moved"`
	Suspended int      `json:"keys_suspended"`
	Active    int      `json:"keys_active"`
}

// What is archived comes back: with its lists and keys, and to nobody's place.
func TestAgentArchive_and_restore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"ceo"}`)
	ok[noted](b, "agent create", `{"agent_id":"bot","reports_to":"ceo","allow":["memory_*"]}`)
	ok[noted](b, "agent create", `{"agent_id":"kid","reports_to":"bot"}`)
	ok[map[string]any](b, "key create", `{"agent_id":"bot"}`)
	got := ok[archive](b, "agent archive", `{"agent_id":"bot"}`)
	if diff := cmp.Diff(archive{State: "archived", MovedTo: "ceo", Moved: []string{"kid"}, Suspended: 1}, got); diff != "" {
		t.Errorf("archive (-want +got):\n%s", diff)
	}
	b.fails("agent archive", `{"agent_id":"bot"}`, "conflict")
	b.fails("pairing approve", `{"agent_id":"bot","channel":"line","subject":"U1"}`, "conflict")
	if got := ok[archive](b, "agent restore", `{"agent_id":"bot"}`); got.State != "active" || got.Active != 1 {
		t.Errorf("restore: %+v", got)
	}
	if row := ok[agentShown](b, "agent show", `{"agent_id":"bot"}`); row.ReportsTo != "ceo" || row.AllowedTools[0] != "memory_*" {
		t.Errorf("restored: %+v", row)
	}
	b.fails("agent restore", `{"agent_id":"bot"}`, "conflict")
	b.fails("agent restore", `{"agent_id":"nobody"}`, "not_found")
}

// B-55: nor does the way through the archive lead past the licence.
func TestAgentRestore_B_55_licence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Licence = licence.Licence{Customer: "c", Edition: tool.Pro, Agents: 1, Issued: noon, NotBefore: noon, Expires: noon.AddDate(1, 0, 0)}
	ok[noted](b, "agent create", `{"agent_id":"one"}`)
	ok[noted](b, "agent set", `{"agent_id":"one","state":"archived"}`)
	ok[noted](b, "agent create", `{"agent_id":"two"}`)
	for _, c := range [][2]string{
		{"agent restore", `{"agent_id":"one"}`},
		{"agent set", `{"agent_id":"one","state":"active"}`},
		{"agent set", `{"agent_id":"one","state":"paused"}`},
		{"agent import", `{"source":"[agent]\nname='one'\n","replace":true}`},
	} {
		b.fails(c[0], c[1], "edition")
	}
	ok[noted](b, "agent set", `{"agent_id":"two","state":"archived"}`)
	ok[archive](b, "agent restore", `{"agent_id":"one"}`)
}

// Archived by whichever command, an agent leaves nothing that waits.
func TestAgentSet_archived_ends_what_waits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, id := range []string{"set", "imported"} {
		ok[noted](b, "agent create", `{"agent_id":"`+id+`"}`)
		b.exec(`insert into approvals (id, agent_id, credential_id, tool, definition, arguments_hash, expires_at) values ($1, $1, '', 'x', '', '', now() + interval '1 hour')`, id)
	}
	if got := ok[agentShown](b, "agent set", `{"agent_id":"set","state":"archived","role":"gone"}`); got.State != "archived" || got.Role != "gone" {
		t.Errorf("set: %+v", got)
	}
	if got := ok[agentShown](b, "agent import", `{"source":"[agent]\nname='imported'\nstatus='archived'\n","replace":true}`); got.State != "archived" {
		t.Errorf("import: %+v", got)
	}
	if states := b.text(`select string_agg(state, ',') from approvals`); states != "cancelled,cancelled" {
		t.Errorf("approvals are %s", states)
	}
}

type exported struct {
	Source string
	Soul   string
	Notes  []string
}

// agent.toml and SOUL.md come out as they went in; after a change, with that
// change and the rest as it was; and an import of what came out changes nothing.
func TestAgentExport_round_trip(t *testing.T) {
	t.Parallel()
	b := setup(t)
	source := "\ufeff# 店員\r\n[agent]\r\nname = 'clerk'   # kept\r\nshift = \"night\"\r\n\r\n[evolution]\r\ngvu_enabled = true # yes\r\nmax_silence_hours = 168.0\r\nmax_gvu_generations = -1\r\n" +
		"[heartbeat]\r\ncron = \"0 9 * * 2-6\"\r\n[budget]\r\nmonthly_limit_cents = 2000\r\n[capabilities]\r\nallowed_tools = [ \"memory_search\" ,]\r\n"
	soul := "# Clerk\r\n\r\nYou are  \ta clerk.\r\n\n"
	args := func(replace bool) string {
		return encode(t, map[string]any{"source": source, "soul": soul, "replace": replace})
	}
	type imported struct {
		SoulVersion int `json:"soul_version"`
		Notes       []struct{ Key, Text string }
	}
	got := ok[imported](b, "agent import", args(false))
	notes := map[string]string{}
	for _, n := range got.Notes {
		notes[n.Key] = n.Text
	}
	if got.SoulVersion != 1 || !strings.Contains(notes["evolution.max_gvu_generations"], "from 0 to 100") || !strings.Contains(notes["heartbeat.cron"], "1-5") {
		t.Errorf("import: version %d, notes %v", got.SoulVersion, notes)
	}
	want := exported{source, soul, []string{}}
	if diff := cmp.Diff(want, ok[exported](b, "agent export", `{"agent_id":"clerk"}`)); diff != "" {
		t.Errorf("unchanged (-want +got):\n%s", diff)
	}
	if set := b.text(`select evolution::text from agents`); set != `{"gvu_enabled": true, "max_silence_hours": 168}` {
		t.Errorf("evolution is %s", set)
	}

	ok[noted](b, "agent set", `{"agent_id":"clerk","budget_cents":5,"icon":"🧾"}`)
	ok[noted](b, "agent allow", `{"agent_id":"clerk","patterns":["memory_store"]}`)
	ok[map[string]any](b, "soul set", `{"agent_id":"clerk","content":"# New\n"}`)
	source = strings.NewReplacer("2000", "5", "[ \"memory_search\" ,]", "[\"memory_search\", \"memory_store\"]", "\"night\"\r\n", "\"night\"\r\nicon = \"🧾\"\r\n").Replace(source)
	soul = "# New\n"
	want = exported{source, soul, []string{}}
	if diff := cmp.Diff(want, ok[exported](b, "agent export", `{"agent_id":"clerk"}`)); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if again := ok[imported](b, "agent import", args(true)); again.SoulVersion != 2 {
		t.Errorf("the same soul became version %d", again.SoulVersion)
	}
	if diff := cmp.Diff(want, ok[exported](b, "agent export", `{"agent_id":"clerk"}`)); diff != "" {
		t.Errorf("after another import (-want +got):\n%s", diff)
	}
	if got := b.text(`select concat_ws(' ', period, limit_micros, hard, set_by) from budgets`); got != "month 50000 t local:tester" {
		t.Errorf("its budget is %s", got)
	}
	ok[imported](b, "agent import", encode(t, map[string]any{"source": "[agent]\nname = 'soft'\n[budget]\nmonthly_limit_cents = 7\nhard_stop = false\n"}))
	if got := b.text(`select concat_ws(' ', period, limit_micros, hard) from budgets where agent_id = 'soft'`); got != "month 70000 f" {
		t.Errorf("a budget that only warns became %s", got)
	}
	// To shut no longer what nothing allows changes nothing; to allow it is said by the flag.
	ok[noted](b, "agent deny", `{"agent_id":"clerk","patterns":["computer_*"],"remove":true}`)
	if diff := cmp.Diff(want, ok[exported](b, "agent export", `{"agent_id":"clerk"}`)); diff != "" {
		t.Errorf("neither denied nor allowed (-want +got):\n%s", diff)
	}
	ok[noted](b, "agent allow", `{"agent_id":"clerk","patterns":["computer_*"]}`)
	if got := ok[exported](b, "agent export", `{"agent_id":"clerk"}`); len(got.Notes) != 0 || !strings.Contains(got.Source, "computer_use = true") || strings.Contains(got.Source, "os_native = true") {
		t.Errorf("notes %q:\n%s", got.Notes, got.Source)
	}
	b.fails("agent import", encode(t, map[string]any{"source": source, "soul": strings.Repeat("x", 65<<10), "replace": true}), "soul")
}

func TestSoul(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	b.fails("soul show", `{"agent_id":"bot"}`, "not_found")
	b.fails("soul diff", `{"agent_id":"bot"}`, "not_found")
	type written struct {
		Version int
		Changed bool
		Diff    string
	}
	ok[written](b, "soul set", `{"agent_id":"bot","content":"a\n"}`)
	b.fails("soul diff", `{"agent_id":"bot"}`, "not_found")
	if got := ok[written](b, "soul set", `{"agent_id":"bot","content":"b\n","if_version":1}`); got.Version != 2 || !strings.Contains(got.Diff, "-a\n+b\n") {
		t.Errorf("set: %+v", got)
	}
	b.fails("soul set", `{"agent_id":"bot","content":"c\n","if_version":1}`, "conflict")
	b.fails("soul set", `{"agent_id":"bot","content":" "}`, "content")
	b.fails("soul rollback", `{"agent_id":"bot","version":7}`, "not_found")
	if got := ok[written](b, "soul rollback", `{"agent_id":"bot","version":1,"reason":"better"}`); got.Version != 3 {
		t.Errorf("rollback: %+v", got)
	}
	type shown struct {
		Version   int
		Content   string
		Note      string
		WrittenBy string `json:"written_by"`
	}
	if got := ok[shown](b, "soul show", `{"agent_id":"bot"}`); got != (shown{3, "a\n", "back to version 1. better", "local:tester"}) {
		t.Errorf("show: %+v", got)
	}
	type log struct {
		Versions []struct{ Version, Bytes int }
	}
	if got := ok[log](b, "soul log", `{"agent_id":"bot"}`); len(got.Versions) != 3 || got.Versions[0].Version != 3 || got.Versions[0].Bytes != 2 {
		t.Errorf("log: %+v", got)
	}
	if got := ok[written](b, "soul diff", `{"agent_id":"bot","from":1,"to":3}`); got.Diff != "" {
		t.Errorf("diff of two that are alike: %q", got.Diff)
	}
}

func TestAgentStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, id := range []string{"quiet", "busy", "gone"} {
		ok[noted](b, "agent create", `{"agent_id":"`+id+`"}`)
	}
	ok[archive](b, "agent archive", `{"agent_id":"gone"}`)
	ok[map[string]any](b, "stop", `{"agent_id":"quiet"}`)
	b.exec(`insert into audit (seq, prev, hash, kind, id, at, request_id, door, agent_id, method, tool, decision, outcome, reason) values
		(101, '', '', 'outcome', gen_random_uuid(), $1, 'r', 'http', 'busy', 'tools/call', 'memory_search', 'allowed', 'ok', ''),
		(102, '', '', 'outcome', gen_random_uuid(), $1, 'r', 'http', 'busy', 'tools/call', 'memory_store', 'refused', '', 'denied'),
		(103, '', '', 'outcome', gen_random_uuid(), $1, 'r', 'http', 'busy', 'tools/call', 'odoo_search', 'allowed', 'invalid', ''),
		(105, '', '', 'outcome', gen_random_uuid(), $1, 'r', 'http', 'busy', 'tools/call', 'send_message', 'allowed', 'fault', 'denied'),
		(104, '', '', 'outcome', gen_random_uuid(), $2, 'r', 'http', 'busy', 'tools/call', 'odoo_search', 'allowed', 'fault', 'old')`, noon.Add(-1), noon.AddDate(0, 0, -2))
	b.exec(`insert into work (id, kind, source, agent_id, from_agent, payload, root_id) values (gen_random_uuid(), 'prompt', 'x', 'busy', 'quiet', '{}', gen_random_uuid())`)
	b.exec(`insert into usage (at, agent_id, cost_micros, source, source_id) values ($1, 'busy', 1500, 'loop', '1'), ($1, 'busy', null, 'loop', '2'), ($2, 'busy', 9, 'loop', '3')`, noon.Add(-1), noon.AddDate(0, 0, -1))
	type health struct {
		AgentID   string `json:"agent_id"`
		State     string
		Calls     int    `json:"calls_24h"`
		Refused   int    `json:"refused_24h"`
		Failed    int    `json:"failed_24h"`
		LastError string `json:"last_error"`
		Queued    int
		Cost      string `json:"cost_today"`
	}
	type status struct{ Agents []health }
	want := status{[]health{
		{AgentID: "busy", State: "active", Calls: 4, Refused: 2, Failed: 1, LastError: "send_message: denied", Queued: 1, Cost: "$0.0015 and 1 unknown"},
		{AgentID: "quiet", State: "stopped", Cost: "$0.0000"},
	}}
	if diff := cmp.Diff(want, ok[status](b, "agent status", `{}`)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if got := ok[status](b, "agent status", `{"agent_id":"gone"}`); len(got.Agents) != 1 || got.Agents[0].State != "archived" {
		t.Errorf("of an archived one: %+v", got)
	}
	b.exec(`update usage set cost_micros = null`)
	if got := ok[status](b, "agent status", `{"agent_id":"busy"}`); got.Agents[0].Cost != "unknown" {
		t.Errorf("what nobody knows: %+v", got)
	}
	b.fails("agent status", `{"agent_id":"nobody"}`, "not_found")
}

func TestPeople(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ok[noted](b, "agent create", `{"agent_id":"bot"}`)
	ok[people.Person](b, "person set", `{"person_id":"mei","display_name":"Mei","account":["telegram:1","email:Mei@Example.com"],"role":["owner"]}`)
	b.fails("person set", `{"person_id":"max","display_name":"Max","account":["email:mei@example.com"]}`, "conflict")
	for _, c := range [][2]string{
		{`{"person_id":"../x","display_name":"X"}`, "person_id"},
		{`{"person_id":"x","display_name":"a\u202eb"}`, "display_name"},
		{`{"person_id":"x","display_name":"X","account":["1234"]}`, "accounts"},
		{`{"person_id":"x","display_name":"X","account":["fax:1"]}`, "channel"},
		{`{"person_id":"x","display_name":"X","role":["a\nb"]}`, "roles"},
	} {
		b.fails("person set", c[0], c[1])
	}
	ok[people.Person](b, "person set", `{"person_id":"mei","display_name":"Mei Lin","account":["email:mei@example.com","line:U1"]}`)
	type found struct{ People []people.Person }
	got := ok[found](b, "person list", `{}`)
	if diff := cmp.Diff([]string{"email:mei@example.com", "line:U1"}, got.People[0].Accounts); diff != "" || got.People[0].DisplayName != "Mei Lin" || len(got.People[0].Roles) != 0 {
		t.Errorf("replaced: %+v (-want +got):\n%s", got.People[0], diff)
	}
	type gone struct{ Changed bool }
	if !ok[gone](b, "person remove", `{"person_id":"mei"}`).Changed || ok[gone](b, "person remove", `{"person_id":"mei"}`).Changed {
		t.Error("a person is removed once")
	}
	type pairing struct {
		State   string
		Changed bool
		Code    string
	}
	if got := ok[pairing](b, "pairing invite", `{"agent_id":"bot","channel":"LINE","subject":"U1"}`); got.State != "invited" || len(got.Code) != 9 {
		t.Errorf("invite: %+v", got)
	}
	if got := ok[pairing](b, "pairing approve", `{"agent_id":"bot","channel":"line","subject":"U1"}`); got.State != "approved" || !got.Changed {
		t.Errorf("approve: %+v", got)
	}
	if got := ok[pairing](b, "pairing invite", `{"agent_id":"bot","channel":"line","subject":"U1"}`); got.State != "approved" || got.Code != "" {
		t.Errorf("an invitation of one that may come in: %+v", got)
	}
	type listed struct{ Pairings []people.Pairing }
	if got := ok[listed](b, "pairing list", `{}`); len(got.Pairings) != 1 || got.Pairings[0].AgentID != "bot" {
		t.Errorf("list: %+v", got)
	}
	if trail := b.text(`select string_agg(arguments::text, ' ') from audit`); strings.Contains(trail, "-") && strings.Contains(trail, "code") {
		t.Errorf("the trail holds a code: %s", trail)
	}
	b.fails("pairing approve", `{"agent_id":"nobody","channel":"line","subject":"U1"}`, "not_found")
}
