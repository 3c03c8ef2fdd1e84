package memory_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pawgate/internal/category/memory"
	"pawgate/internal/tool/tooltest"
)

func TestSearchByLayer(t *testing.T) {
	_, c, who := begin(t, "a")
	store(t, c, "a", "deployed the service at noon")
	store(t, c, "a", "always deploy the service from main")
	store(t, c, "a", "how to deploy the service: run make deploy")
	for layer, want := range map[string]string{
		"episodic": "deployed the service at noon", "semantic": "always deploy the service from main", "procedural": "how to deploy the service: run make deploy",
	} {
		got := tooltest.OK[results](t, c, who, "memory_search_by_layer", map[string]any{"query": "deploy", "layer": layer})
		if len(got.Memories) != 1 || got.Memories[0].Content != want || got.Memories[0].ID == "" || got.Memories[0].Layer != layer {
			t.Errorf("%s: %+v", layer, got.Memories)
		}
	}
	tooltest.Invalid(t, c, who, "memory_search_by_layer", `{"query":"x","layer":"Episodic"}`, "layer")
}

func TestSuccessfulConversations(t *testing.T) {
	_, c, who := begin(t, "a")
	store(t, c, "a", "billing migration failed with an error")
	store(t, c, "a", "the fix of the billing migration failed again, not solved")
	store(t, c, "a", "billing migration solved by adding an index")
	store(t, c, "a", "帳單系統遷移成功")
	store(t, c, "a", "billing migration talk", "success")
	store(t, c, "a", "billing migration talk without an end")
	got := tooltest.OK[results](t, c, who, "memory_successful_conversations", `{"topic":"billing migration"}`)
	var found []string
	for _, m := range got.Memories {
		found = append(found, m.Content)
	}
	slices.Sort(found)
	if want := []string{"billing migration solved by adding an index", "billing migration talk"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if got := tooltest.OK[results](t, c, who, "memory_successful_conversations", `{"topic":"帳單"}`); len(got.Memories) != 1 {
		t.Errorf("found %+v", got.Memories)
	}
}

func TestEpisodicPressure(t *testing.T) {
	db, c, who := begin(t, "a", "b")
	type pressure struct {
		Pressure float64
		Episodes int
		High     bool
		Advice   string
	}
	if got := tooltest.OK[pressure](t, c, who, "memory_episodic_pressure", `{}`); got != (pressure{}) {
		t.Errorf("nothing happened: %+v", got)
	}
	old := memory.New(db, func() time.Time { return noon.Add(-30 * time.Hour) })
	store(t, old, "a", "long ago")
	for _, n := range strings.Fields("one two three four five six seven eight nine ten eleven") {
		tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": "event " + n, "importance": 10})
	}
	store(t, c, "b", "of another")
	got := tooltest.OK[pressure](t, c, who, "memory_episodic_pressure", `{}`)
	if got.Pressure != 11 || got.Episodes != 11 || !got.High || got.Advice == "" {
		t.Errorf("got %+v", got)
	}
	if got := tooltest.OK[pressure](t, c, who, "memory_episodic_pressure", `{"hours_ago":"48"}`); got.Episodes != 12 {
		t.Errorf("two days: %+v", got)
	}
	tooltest.Invalid(t, c, who, "memory_episodic_pressure", `{"hours_ago":1e18}`, "hours_ago")
}

func TestImprove(t *testing.T) {
	_, c, who := begin(t, "a")
	store(t, c, "a", "deploy one "+strings.Repeat("很", 500), "ci")
	store(t, c, "a", "deploy two was slow", "ci", "speed")
	store(t, c, "a", "deploy three")
	got := tooltest.OK[struct {
		Examined int `json:"memories_examined"`
		Clusters []struct {
			Tag     string
			Count   int
			Samples []struct{ ID, Content string }
		}
		Proposal string
	}](t, c, who, "memory_improve", `{"topic":"deploy"}`)
	var tags []string
	for _, cl := range got.Clusters {
		tags = append(tags, cl.Tag)
		for _, s := range cl.Samples {
			if s.ID == "" || utf8.RuneCountInString(s.Content) > 240 || !utf8.ValidString(s.Content) {
				t.Errorf("sample %+v", s)
			}
		}
	}
	if got.Examined != 3 || !slices.Equal(tags, []string{"ci", "", "speed"}) || got.Proposal == "" {
		t.Errorf("got %+v", got)
	}
}

func TestLogMood(t *testing.T) {
	db, c, who := begin(t, "a")
	tooltest.OK[stored](t, c, who, "log_mood", `{"mood":" calm ","note":"after lunch"}`)
	tooltest.OK[stored](t, memory.New(db, func() time.Time { return noon.Add(time.Hour) }), who, "log_mood", `{"mood":"calm","note":"after lunch"}`)
	got := tooltest.OK[results](t, c, who, "memory_search", `{"query":"calm","tags":["mood"]}`)
	total := 0
	for _, m := range got.Memories {
		total += 1 + len(m.SimilarIDs)
	}
	if total != 2 || got.Memories[0].Layer != "episodic" || !slices.Contains(got.Memories[0].Tags, "calm") {
		t.Errorf("got %+v", got.Memories)
	}
	for name, tc := range map[string]struct{ args, parameter string }{
		"no mood":     {`{"note":"x"}`, "mood"},
		"blank":       {`{"mood":" "}`, "mood"},
		"a long mood": {`{"mood":"` + strings.Repeat("x", 41) + `"}`, "mood"},
		"a long note": {`{"mood":"x","note":"` + strings.Repeat("x", 1001) + `"}`, "note"},
		"for another": {`{"mood":"x","agent_id":"b"}`, "agent_id"},
	} {
		t.Run(name, func(t *testing.T) { tooltest.Invalid(t, c, who, "log_mood", tc.args, tc.parameter) })
	}
}

type restored struct {
	Doing, Decisions, Relevant []struct{ ID, Content string }
	OpenItems                  []struct{ ID, Content string } `json:"open_items"`
	Characters                 int
	Truncated                  bool
}

func TestSessionRestoreContext(t *testing.T) {
	_, c, who := begin(t, "a")
	if got := tooltest.OK[restored](t, c, who, "session_restore_context", `{"query":""}`); got.Characters != 0 || got.Truncated {
		t.Errorf("of nothing: %+v", got)
	}
	store(t, c, "a", "The billing service runs on port 8443")
	open := store(t, c, "a", "TODO: rotate the billing certificate")
	store(t, c, "a", "We decided to keep PostgreSQL for billing")
	store(t, c, "a", "待辦：聯絡銀行")
	for _, n := range []string{"first", "second", "third"} {
		store(t, c, "a", "worked on the "+n+" report")
	}
	restore := func(args map[string]any) restored {
		return tooltest.OK[restored](t, c, who, "session_restore_context", args)
	}
	got := restore(map[string]any{"query": "port of the billing service"})
	switch {
	case len(got.OpenItems) != 2 || got.OpenItems[0].Content != "待辦：聯絡銀行":
		t.Errorf("open items %+v", got.OpenItems)
	case len(got.Decisions) != 1:
		t.Errorf("decisions %+v", got.Decisions)
	case len(got.Relevant) == 0 || got.Relevant[0].Content != "The billing service runs on port 8443":
		t.Errorf("relevant %+v", got.Relevant)
	case len(got.Doing) != 3 || got.Doing[0].Content != "worked on the third report":
		t.Errorf("doing %+v", got.Doing)
	}
	t.Run("asked nothing, it still tells what the agent was doing", func(t *testing.T) {
		for _, query := range []string{"", " ?! "} {
			if got := restore(map[string]any{"query": query}); len(got.Relevant) != 0 || len(got.Doing) != 4 || got.Doing[0].Content != "worked on the third report" {
				t.Errorf("%q: relevant %+v, doing %+v", query, got.Relevant, got.Doing)
			}
		}
	})
	t.Run("what is known of a user is nothing it was doing", func(t *testing.T) {
		trait := record(t, c, who, "u1", "timezone", "Asia/Taipei")
		for _, p := range restore(map[string]any{"query": ""}).Doing {
			if p.ID == trait {
				t.Errorf("doing %q", p.Content)
			}
		}
	})
	t.Run("what is done is not open", func(t *testing.T) {
		tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": "rotated the billing certificate", "supersedes": open})
		if got := restore(map[string]any{"query": ""}); len(got.OpenItems) != 1 {
			t.Errorf("open items %+v", got.OpenItems)
		}
	})
	t.Run("within its size", func(t *testing.T) {
		for i := range 20 {
			store(t, c, "a", strings.Repeat("長", 550)+string(rune('a'+i)))
		}
		got := restore(map[string]any{"query": "長", "max_characters": 1500})
		if got.Characters > 1500 || got.Characters < 900 || !got.Truncated {
			t.Errorf("%d characters, truncated %v", got.Characters, got.Truncated)
		}
	})
}

func TestConsolidate(t *testing.T) {
	db, c, who := begin(t, "a", "b")
	faded := store(t, c, "a", "had a sandwich")
	for content, args := range map[string]string{
		"important": `,"importance":9`, "semantic": `,"layer":"semantic"`, "todo: still open": ``,
	} {
		tooltest.OK[stored](t, c, who, "memory_store", `{"content":"`+content+`"`+args+`}`)
	}
	storeFact(t, c, "Ann", "on leave", fact{"yes", "2026-12-01", "2026-12-24"})
	store(t, c, "b", "of another")
	run := func(at time.Time) memory.Consolidated {
		done, err := memory.Consolidate(t.Context(), db, "a", at)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	if got := run(noon.Add(time.Hour)); got != (memory.Consolidated{}) {
		t.Errorf("too soon: %+v", got)
	}
	if got := run(noon.AddDate(0, 1, 0)); got != (memory.Consolidated{Retired: 1}) {
		t.Errorf("after a month: %+v", got)
	}
	if got := run(noon.AddDate(2, 0, 0)); got != (memory.Consolidated{Archived: 1}) {
		t.Errorf("after two years: %+v", got)
	}
	if got := run(noon.AddDate(2, 0, 0)); got != (memory.Consolidated{}) {
		t.Errorf("again: %+v", got)
	}
	if got := contents(t, c, "a", "sandwich"); len(got) != 0 {
		t.Errorf("the archived memory is found: %q", got)
	}
	if got := tooltest.OK[memoryRead](t, c, who, "memory_read", map[string]any{"memory_id": faded}); got.Content != "had a sandwich" {
		t.Errorf("the archived memory is lost: %+v", got)
	}
	if got := contents(t, c, "b", ""); len(got) != 1 {
		t.Errorf("another agent's memories: %q", got)
	}
	t.Run("links what was stored at the same moment", func(t *testing.T) {
		later := memory.New(db, func() time.Time { return noon.AddDate(2, 0, 1) })
		first := store(t, later, "a", "Ann moved to Rome in March 2024")
		second := store(t, later, "a", "In March 2024 Ann moved to Rome")
		if _, err := db.Exec(t.Context(), `update memories set same_as = null`); err != nil {
			t.Fatal(err)
		}
		if got := run(noon.AddDate(2, 0, 1)); got.Linked != 1 {
			t.Errorf("linked %d", got.Linked)
		}
		got := search(t, later, "a", "Ann Rome")
		if len(got.Memories) != 1 || len(got.Memories[0].SimilarIDs) != 1 {
			t.Errorf("%s and %s are shown as %+v", first, second, got.Memories)
		}
	})
	t.Run("indexes anew", func(t *testing.T) {
		if _, err := db.Exec(t.Context(), `update memories set terms = '{}', weights = '{}', terms_version = 0 where content = 'important'`); err != nil {
			t.Fatal(err)
		}
		if got := run(noon.AddDate(2, 0, 1)); got.Reindexed != 1 {
			t.Errorf("reindexed %d", got.Reindexed)
		}
		if got := contents(t, c, "a", "important"); len(got) != 1 {
			t.Errorf("found %q", got)
		}
	})
}

func TestConsolidationStatus(t *testing.T) {
	db, c, who := begin(t, "a")
	type status struct {
		Waiting  int
		Semantic int `json:"semantic_memories"`
		LastRun  *struct {
			RanAt   time.Time `json:"ran_at"`
			Retired int
		} `json:"last_run"`
	}
	get := func() status { return tooltest.OK[status](t, c, who, "memory_consolidation_status", `{}`) }
	event := tooltest.OK[stored](t, c, who, "memory_store", `{"content":"a big event","importance":8}`).MemoryID
	if got := get(); got.Waiting != 1 || got.Semantic != 0 || got.LastRun != nil {
		t.Errorf("before: %+v", got)
	}
	lesson := tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": "what it taught", "layer": "semantic", "derived_from": []string{event}}).MemoryID
	if _, err := memory.Consolidate(t.Context(), db, "a", noon); err != nil {
		t.Fatal(err)
	}
	if got := get(); got.Waiting != 0 || got.Semantic != 1 || got.LastRun == nil || !got.LastRun.RanAt.Equal(noon) {
		t.Errorf("after: %+v", got)
	}
	// A lesson that was taken back taught nothing, and an event that was corrected waits no more.
	tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": "it taught nothing", "layer": "semantic", "supersedes": lesson})
	if got := get(); got.Waiting != 1 {
		t.Errorf("after the lesson was taken back: %+v", got)
	}
	tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": "a small event", "importance": 2, "supersedes": event})
	if got := get(); got.Waiting != 0 {
		t.Errorf("after the event was corrected: %+v", got)
	}
}

func TestConsolidateAll(t *testing.T) {
	db, c, _ := begin(t, "a", "b", "idle")
	store(t, c, "a", "one")
	store(t, c, "b", "two")
	run := func(after time.Duration, want ...string) {
		t.Helper()
		done, err := memory.ConsolidateAll(t.Context(), db, noon.Add(after), time.Now().Add(time.Hour))
		if got := slices.Sorted(maps.Keys(done)); err != nil || !slices.Equal(got, want) {
			t.Errorf("after %v: consolidated %q, want %q, error %v", after, got, want, err)
		}
	}
	run(0, "a", "b")
	run(time.Minute)
	run(24*time.Hour, "a", "b")
}
