package skill_test

import (
	"fmt"
	"testing"
	"time"

	"pawgate/internal/fault"
	format "pawgate/internal/skill"
	"pawgate/internal/skill/store"
	"pawgate/internal/tool/tooltest"
)

type copied struct {
	SkillID string `json:"skill_id"`
	Version int
	Outcome string
	AgentID string `json:"agent_id"`
	Trials  int
}

type sharedList struct {
	Skills []struct {
		SkillID   string `json:"skill_id"`
		Name      string
		Tags      []string
		SharedBy  string `json:"shared_by"`
		Adoptions int
		Adopted   bool
	}
}

func TestSharedSkills(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.keep(t, store.Agent, "clerk", text("pdf", "Fills forms.", "v1"), format.File{Path: "run.sh", Content: []byte("echo"), Executable: true})
	share := func(args string) copied {
		return tooltest.OK[copied](t, b.cat, tooltest.Who("clerk"), "shared_skill_share", args)
	}
	first := share(`{"skill_name":"pdf"}`)
	if first.Outcome != "installed" || share(`{"skill_name":"pdf"}`).Outcome != "unchanged" {
		t.Errorf("shared: %+v", first)
	}
	// Predecessor: a share overwrote another agent's and its counters; the tag filter never matched.
	b.keep(t, store.Agent, "stranger", text("pdf", "Other.", "other"))
	tooltest.Fault(t, b.cat, tooltest.Who("stranger"), "shared_skill_share", `{"skill_name":"pdf","update":true}`, fault.Conflict)
	for tag, want := range map[string]int{"": 1, "DOC": 1, "none": 0} {
		if got := tooltest.OK[sharedList](t, b.cat, tooltest.Who("stranger"), "shared_skill_list", map[string]string{"tag": tag}); len(got.Skills) != want {
			t.Errorf("tag %q: %+v", tag, got)
		}
	}
	// Predecessor: a skill could be pushed into any agent, and over another skill.
	tooltest.Fault(t, b.cat, tooltest.Who("stranger"), "shared_skill_adopt", `{"skill_name":"pdf","target_agent":"clerk"}`, fault.NotFound)
	tooltest.Fault(t, b.cat, tooltest.Who("stranger"), "shared_skill_adopt", `{"skill_name":"pdf","update":true}`, fault.Conflict)
	adopted := tooltest.OK[copied](t, b.cat, tooltest.Who("boss"), "shared_skill_adopt", `{"skill_name":"pdf"}`)
	tooltest.OK[copied](t, b.cat, tooltest.Who("boss"), "shared_skill_adopt", `{"skill_name":"pdf"}`)
	if adopted.AgentID != "boss" || adopted.Outcome != "installed" || b.count(t, `select count(*) from skill_files f join skills s on s.id = f.skill_id where s.agent_id = 'boss' and f.executable`) != 1 {
		t.Errorf("adopted: %+v", adopted)
	}
	got := tooltest.OK[sharedList](t, b.cat, tooltest.Who("boss"), "shared_skill_list", `{}`)
	if s := got.Skills[0]; s.Adoptions != 1 || !s.Adopted || s.SharedBy != "clerk" || len(s.Tags) != 1 {
		t.Errorf("listed: %+v", s)
	}
	// A new version is taken when asked, not behind one's back.
	b.keep(t, store.Agent, "clerk", text("pdf", "Fills forms.", "v2"))
	tooltest.Fault(t, b.cat, tooltest.Who("clerk"), "shared_skill_share", `{"skill_name":"pdf"}`, fault.Conflict)
	share(`{"skill_name":"pdf","update":true}`)
	tooltest.Fault(t, b.cat, tooltest.Who("boss"), "shared_skill_adopt", `{"skill_name":"pdf"}`, fault.Conflict)
	if up := tooltest.OK[copied](t, b.cat, tooltest.Who("boss"), "shared_skill_adopt", `{"skill_name":"pdf","update":true}`); up.Version != 2 {
		t.Errorf("updated: %+v", up)
	}
	for _, tool := range []string{"shared_skill_share", "shared_skill_adopt"} {
		if tool == "shared_skill_share" {
			tooltest.Fault(t, b.cat, tooltest.Who("clerk"), "shared_skill_share", `{"skill_name":"none"}`, fault.NotFound)
			tooltest.Invalid(t, b.cat, tooltest.Who("clerk"), "shared_skill_share", `{"skill_name":"../../etc"}`, "skill_name")
			continue
		}
		tooltest.Fault(t, b.cat, tooltest.Who("clerk"), "shared_skill_adopt", `{"skill_name":"none"}`, fault.NotFound)
		tooltest.Invalid(t, b.cat, tooltest.Who("clerk"), "shared_skill_adopt", `{"skill_name":"../x"}`, "skill_name")
	}
}

type feedback struct {
	FeedbackID  int    `json:"feedback_id"`
	SkillID     string `json:"skill_id"`
	Trials      int
	SuccessRate *float64 `json:"success_rate"`
	SuccessLow  *float64 `json:"success_low"`
}

func (b *bench) feedback(t *testing.T, id string, success ...bool) feedback {
	t.Helper()
	var got feedback
	for _, s := range success {
		got = tooltest.OK[feedback](t, b.cat, tooltest.Who("clerk"), "skill_bank_feedback", map[string]any{"skill_id": id, "success": s, "note": "n"})
	}
	return got
}

func TestSkillGraduate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kept := b.keep(t, store.Agent, "clerk", text("pdf", "Fills forms.", "x"))
	tooltest.Fault(t, b.cat, operator(), "skill_graduate", `{"agent_id":"clerk","skill_name":"pdf"}`, "not_proven")
	b.feedback(t, kept.ID, true, false, false)
	tooltest.Fault(t, b.cat, operator(), "skill_graduate", `{"agent_id":"clerk","skill_name":"pdf"}`, "not_proven")
	b.feedback(t, kept.ID, true, true, true)
	got := tooltest.OK[copied](t, b.cat, operator(), "skill_graduate", `{"agent_id":"clerk","skill_name":"pdf"}`)
	if got.Outcome != "installed" || got.Trials != 6 {
		t.Errorf("got %+v", got)
	}
	if l := tooltest.OK[listResult](t, b.cat, tooltest.Who("stranger"), "skill_list", `{}`); len(l.Skills) != 1 || l.Skills[0].Scope != "global" {
		t.Errorf("not every agent's: %v", l.names())
	}
	// Predecessor: an existing global skill was overwritten in silence.
	b.keep(t, store.Agent, "stranger", text("pdf", "Other.", "other"))
	tooltest.Fault(t, b.cat, operator(), "skill_graduate", `{"agent_id":"stranger","skill_name":"pdf","unproven":true,"update":true}`, fault.Conflict)
	tooltest.Invalid(t, b.cat, operator(), "skill_graduate", `{"agent_id":"clerk","skill_name":"../x"}`, "skill_name")
	if c := b.cat; true {
		for _, tool := range c.Tools {
			if tool.Name == "skill_graduate" && tool.Scope != "operator" {
				t.Error("an agent may make skills every agent's")
			}
		}
	}
}

func TestSkillPin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.keep(t, store.Agent, "clerk", text("pdf", "Fills forms.", "v1"))
	b.keep(t, store.Agent, "clerk", text("pdf", "Fills forms.", "v2"))
	b.keep(t, store.Global, "", text("mail", "Mails.", "x"))
	type pinned struct {
		Pinned  bool
		Version int
		State   string
	}
	pin := func(args string) pinned {
		return tooltest.OK[pinned](t, b.cat, tooltest.Who("clerk"), "skill_pin", args)
	}
	if got := pin(`{"skill_name":"pdf","version":1}`); got != (pinned{true, 1, "active"}) {
		t.Errorf("pinned: %+v", got)
	}
	if got := tooltest.OK[listResult](t, b.cat, tooltest.Who("clerk"), "skill_list", `{"skill_name":"pdf"}`); got.Skill.Instructions != "v1" {
		t.Errorf("in use: %+v", got.Skill)
	}
	if got := pin(`{"skill_name":"pdf","pinned":false}`); got.Pinned {
		t.Errorf("unpinned: %+v", got)
	}
	b.exec(t, `update skills set state = 'archived'`)
	if got := pin(`{"skill_name":"pdf"}`); got.State != "active" {
		t.Errorf("not taken back: %+v", got)
	}
	tooltest.Fault(t, b.cat, tooltest.Who("clerk"), "skill_pin", `{"skill_name":"pdf","version":9}`, fault.NotFound)
	tooltest.Fault(t, b.cat, tooltest.Who("stranger"), "skill_pin", `{"skill_name":"pdf"}`, fault.NotFound)
	tooltest.Fault(t, b.cat, tooltest.Who("clerk"), "skill_pin", `{"skill_name":"mail","scope":"global"}`, fault.Denied)
	tooltest.OK[pinned](t, b.cat, operator(), "skill_pin", `{"skill_name":"mail","scope":"global"}`)
	tooltest.Invalid(t, b.cat, tooltest.Who("clerk"), "skill_pin", `{"skill_name":"a/b"}`, "skill_name")
}

type curatorResult struct {
	Ran                             bool
	Changed                         []struct{ SkillName, Was, State string }
	Active, Stale, Archived, Drafts int
	Skills                          []struct {
		IdleDays int `json:"idle_days"`
	}
}

func TestSkillCuratorStatus(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := func(days int) string {
		return fmt.Sprintf("timestamptz '%s'", noon.AddDate(0, 0, -days).Format(time.RFC3339))
	}
	for _, s := range []struct {
		name, set string
	}{
		{"fresh", "last_used_at = " + at(5)}, {"idle", "last_used_at = " + at(31) + ", uses = 3"}, {"old", "last_used_at = " + at(91) + ", uses = 3"},
		{"pinned", "pinned = true, last_used_at = " + at(91) + ", uses = 3"}, {"never-used", "created_at = " + at(91)}, {"draft", "state = 'draft', created_at = " + at(91)}, {"proven", "state = 'draft'"},
	} {
		kept := b.keep(t, store.Agent, "clerk", text(s.name, "x", "x"))
		b.exec(t, `update skills set `+s.set+` where id = $1`, kept.ID)
		if s.name == "proven" {
			b.feedback(t, kept.ID, true, true, true)
		}
	}
	status := func(args string) curatorResult {
		return tooltest.OK[curatorResult](t, b.cat, tooltest.Who("clerk"), "skill_curator_status", args)
	}
	if got := status(`{}`); got.Ran || got.Active != 5 || got.Drafts != 2 || len(got.Skills) != 7 || got.Skills[0].IdleDays != 91 {
		t.Errorf("looked at: %+v", got)
	}
	got := status(`{"run":true}`)
	if got.Active != 3 || got.Stale != 2 || got.Archived != 1 || got.Drafts != 1 || len(got.Changed) != 4 {
		t.Errorf("run: %+v", got)
	}
	if again := status(`{"run":true}`); len(again.Changed) != 0 {
		t.Errorf("again: %+v", again)
	}
	tooltest.OK[listResult](t, b.cat, tooltest.Who("clerk"), "skill_list", `{"skill_name":"idle"}`)
	if got := status(`{}`); got.Active != 4 {
		t.Errorf("a stale skill that is used is active: %+v", got)
	}
	if got := tooltest.OK[curatorResult](t, b.cat, tooltest.Who("stranger"), "skill_curator_status", `{"run":true}`); len(got.Skills) != 0 || len(got.Changed) != 0 {
		t.Errorf("a stranger: %+v", got)
	}
}

type bankResult struct {
	Results []struct {
		SkillID     string `json:"skill_id"`
		SectionID   string `json:"section_id"`
		SkillName   string `json:"skill_name"`
		Heading     string
		Text        string
		Trials      int
		SuccessRate *float64 `json:"success_rate"`
		Score       float64
	}
}

func TestSkillBank(t *testing.T) {
	t.Parallel()
	b := setup(t)
	deploy := b.keep(t, store.Agent, "clerk", text("deploy", "Deploys services.", "# Deploy\n\nIntro.\n\n## Rollback\n\nUse the previous tag when the probe fails.\n\n```sh\n# not a heading\n```\n\n## 回復備份\n\n先停止服務，再還原資料。"),
		format.File{Path: "references/extra.md", Content: []byte("# Canary\n\nShift five percent.")})
	other := b.keep(t, store.Global, "", text("release", "Deploys releases.", "Rollback by hand."))
	b.keep(t, store.Agent, "boss", text("private", "Deploys in private.", "Rollback of the boss."))
	type extracted struct {
		Sections []struct {
			SectionID string `json:"section_id"`
			Heading   string
		}
	}
	cutUp := tooltest.OK[extracted](t, b.cat, tooltest.Who("clerk"), "skill_extract", `{"skill_name":"deploy"}`)
	if len(cutUp.Sections) != 4 || cutUp.Sections[1].Heading != "Deploy › Rollback" || cutUp.Sections[3].Heading != "Canary" {
		t.Fatalf("sections %+v", cutUp)
	}
	again := tooltest.OK[extracted](t, b.cat, tooltest.Who("boss"), "skill_extract", `{"skill_name":"deploy","agent_id":"clerk"}`)
	if again.Sections[1].SectionID != cutUp.Sections[1].SectionID {
		t.Error("a section got another id")
	}
	search := func(q string) bankResult {
		return tooltest.OK[bankResult](t, b.cat, tooltest.Who("clerk"), "skill_bank_search", map[string]any{"query": q})
	}
	// Predecessor: the search was always empty, feedback always 90 or 10 percent.
	got := search("rollback")
	if len(got.Results) < 2 || got.Results[0].SuccessRate != nil {
		t.Fatalf("got %+v", got)
	}
	for _, r := range got.Results {
		if r.SkillName == "private" {
			t.Error("another agent's skill is shown")
		}
	}
	if got := search("還原"); len(got.Results) == 0 || got.Results[0].SkillName != "deploy" {
		t.Errorf("Chinese: %+v", got)
	}
	if got := search("zebra"); len(got.Results) != 0 {
		t.Errorf("nothing: %+v", got)
	}
	b.feedback(t, other.ID, false, false, false)
	f := b.feedback(t, cutUp.Sections[1].SectionID, true, true, true, false)
	if f.SkillID != deploy.ID || f.Trials != 4 || *f.SuccessRate != 0.75 || *f.SuccessLow <= 0.2 || *f.SuccessLow >= 0.5 {
		t.Errorf("feedback %+v", f)
	}
	got = search("deploys rollback")
	if got.Results[0].SkillName != "deploy" || got.Results[len(got.Results)-1].SkillName != "release" {
		t.Errorf("the trials do not count: %+v", got)
	}
	boss := tooltest.OK[listResult](t, b.cat, tooltest.Who("boss"), "skill_list", `{}`)
	for _, id := range []string{"none", "", boss.Skills[1].SkillID} {
		tooltest.Fault(t, b.cat, tooltest.Who("clerk"), "skill_bank_feedback", map[string]any{"skill_id": id, "success": true}, fault.NotFound)
	}
	tooltest.Invalid(t, b.cat, tooltest.Who("clerk"), "skill_bank_search", `{"query":"…"}`, "query")
	tooltest.Fault(t, b.cat, tooltest.Who("clerk"), "skill_extract", `{"skill_name":"release"}`, fault.Denied)
	tooltest.Fault(t, b.cat, tooltest.Who("clerk"), "skill_extract", `{"skill_name":"none"}`, fault.NotFound)
	b.keep(t, store.Agent, "clerk", text("bare", "x", "x"))
	b.keep(t, store.Agent, "clerk", text("deploy", "Deploys services.", "# Deploy\n\nNew."))
	tooltest.OK[extracted](t, b.cat, tooltest.Who("clerk"), "skill_extract", `{"skill_name":"deploy"}`)
	if n := b.count(t, `select count(*) from skill_sections where skill_id = $1`, deploy.ID); n != 1 {
		t.Errorf("%d sections of two versions, want those of the new one", n)
	}
}
