package skill_test

import (
	"testing"
	"time"

	"pawgate/internal/category/skill"
	"pawgate/internal/client/chat"
	"pawgate/internal/client/github"
	"pawgate/internal/client/github/githubtest"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
)

// Behind a transaction pooler the types of parameters are guessed from Go's.
func TestSkill_behind_a_pooler(t *testing.T) {
	t.Parallel()
	pool := postgrestest.Pool(t, postgres.Config{URL: postgrestest.CloneURL(t), Pooled: true})
	if _, err := pool.Exec(t.Context(), `insert into agents (id) values ('solo')`); err != nil {
		t.Fatal(err)
	}
	hub := githubtest.New(t)
	hub.Push("acme/skills", map[string]githubtest.File{"pdf/SKILL.md": {Content: text("pdf", "Fills forms.", "# Fill\n\nDo it.")}})
	m := &scribe{answers: []string{text("written", "Does forms.", "x")}}
	cat := skill.NewWith(pool, skill.Settings{GitHub: github.Config{URL: hub.URL}, Hubs: []string{"acme=acme/skills"}, Chat: chat.Config{Model: "m"}}, m, time.Now)
	who := operator()
	who.Agent = "solo"
	for _, call := range []struct{ tool, args string }{
		{"skill_search", `{"query":"fills forms"}`},
		{"skill_search", `{"query":"fills forms"}`}, // asked twice, a gap
		{"skill_hub_install", `{"hub":"acme","skill_name":"pdf","dry_run":true}`},
		{"skill_gaps", `{}`},
		{"skill_synthesis_run", `{"dry_run":false}`},
		{"skill_synthesis_status", `{}`},
		{"skill_hub_install", `{"hub":"acme","skill_name":"pdf"}`},
		{"skill_list", `{}`},
		{"skill_list", `{"skill_name":"pdf"}`},
		{"skill_security_scan", `{"agent_id":"solo","skill_name":"pdf"}`},
		{"skill_pin", `{"skill_name":"pdf"}`},
		{"skill_curator_status", `{"run":true}`},
		{"skill_extract", `{"skill_name":"pdf"}`},
		{"skill_bank_search", `{"query":"forms"}`},
		{"skill_graduate", `{"agent_id":"solo","skill_name":"pdf","unproven":true}`},
		{"shared_skill_share", `{"skill_name":"pdf"}`},
		{"shared_skill_list", `{"tag":"docs"}`},
	} {
		tooltest.OK[map[string]any](t, cat, who, call.tool, call.args)
	}
	found := tooltest.OK[bankResult](t, cat, who, "skill_bank_search", `{"query":"forms"}`)
	tooltest.OK[feedback](t, cat, who, "skill_bank_feedback", map[string]any{"skill_id": found.Results[0].SkillID, "success": true})
	if _, err := pool.Exec(t.Context(), `delete from skills where scope = 'agent' and name = 'pdf'`); err != nil {
		t.Fatal(err)
	}
	tooltest.OK[copied](t, cat, who, "shared_skill_adopt", `{"skill_name":"pdf"}`)
}
