package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pawgate/internal/category/memory"
	"pawgate/internal/tool/tooltest"
)

// The tests here are each about a defect of DuDuClaw 1.56; those of its defects
// that are not here are named by the test of the tool that had them.

// Predecessor: every parameter was published as a string and most of those were
// ignored without a word.
func TestPredecessorIgnoredTypedValues(t *testing.T) {
	_, c, who := begin(t, "a")
	for _, n := range []string{"one", "two", "three"} {
		store(t, c, "a", "tea number "+n)
	}
	for _, limit := range []string{`2`, `"2"`} {
		if got := tooltest.OK[results](t, c, who, "memory_search", `{"query":"tea","limit":`+limit+`}`); len(got.Memories) != 2 {
			t.Errorf("limit %s gave %d", limit, len(got.Memories))
		}
	}
	tooltest.Invalid(t, c, who, "memory_search", `{"query":"tea","limit":"many"}`, "limit")
	tooltest.Invalid(t, c, who, "memory_episodic_pressure", `{"hours_ago":"soon"}`, "hours_ago")
	tooltest.Invalid(t, c, who, "user_profile_record", `{"user_id":"u","predicate":"x","value":"y","origin_trust":"high"}`, "origin_trust")
	// It took ttl_days, and nothing ever expired: what does nothing is refused.
	tooltest.Invalid(t, c, who, "memory_store", `{"content":"a passing thought","ttl_days":3}`, "ttl_days")
}

// Predecessor: half of the tools looked under the key, half under the agent, and
// all agents of a gateway shared one key.
func TestPredecessorHadTwoOwners(t *testing.T) {
	_, c, who := begin(t, "a", "b")
	event := tooltest.OK[stored](t, c, who, "memory_store", `{"content":"the quarterly migration was a success","importance":9}`).MemoryID
	record(t, c, who, "u1", "timezone", "Asia/Taipei")
	type list struct{ Memories []struct{ ID string } }
	for _, call := range []struct{ tool, args string }{
		{"memory_search", `{"query":"quarterly migration"}`},
		{"memory_search_by_layer", `{"query":"quarterly migration","layer":"episodic"}`},
		{"memory_successful_conversations", `{"topic":"quarterly migration"}`},
	} {
		got := tooltest.OK[list](t, c, who, call.tool, call.args)
		if len(got.Memories) != 1 || got.Memories[0].ID != event {
			t.Errorf("%s: %+v", call.tool, got)
		}
		if other := tooltest.OK[list](t, c, tooltest.Who("b"), call.tool, call.args); len(other.Memories) != 0 {
			t.Errorf("%s of another agent: %+v", call.tool, other)
		}
	}
	pressure := tooltest.OK[struct{ Episodes int }](t, c, who, "memory_episodic_pressure", `{}`)
	status := tooltest.OK[struct{ Waiting int }](t, c, who, "memory_consolidation_status", `{}`)
	if pressure.Episodes != 1 || status.Waiting != 1 {
		t.Errorf("pressure %+v, consolidation %+v", pressure, status)
	}
	// A trait that was recorded is what the profile, its rules and the search show.
	rules := tooltest.OK[struct{ Users []struct{ Rules []any } }](t, c, who, "user_code_profile", `{}`)
	if len(rules.Users) != 1 || len(rules.Users[0].Rules) != 1 || len(contents(t, c, "a", "Taipei timezone")) != 1 {
		t.Errorf("rules %+v", rules)
	}
}

// Predecessor: a query was one phrase, Chinese one word for each run, and the
// place in the list stood for relevance.
func TestPredecessorSearchedPhrases(t *testing.T) {
	_, c, _ := begin(t, "a")
	for _, content := range []string{"使用者偏好喝綠茶不喝咖啡", "the user prefers green tea in the morning", "invoice 77 was paid late"} {
		store(t, c, "a", content)
	}
	for query, want := range map[string]string{
		"綠茶": "使用者偏好喝綠茶不喝咖啡", "咖啡 綠茶": "使用者偏好喝綠茶不喝咖啡",
		"tea green": "the user prefers green tea in the morning", "prefer": "the user prefers green tea in the morning",
		"green tea zebra": "the user prefers green tea in the morning", "green tea?": "the user prefers green tea in the morning",
	} {
		if got := contents(t, c, "a", query); len(got) == 0 || got[0] != want {
			t.Errorf("search %q found %q", query, got)
		}
	}
	both := search(t, c, "a", "green tea invoice").Memories
	if len(both) != 2 || both[0].Content != "the user prefers green tea in the morning" || both[0].Score <= both[1].Score {
		t.Errorf("the better match is not the better scored: %+v", both)
	}
}

// Predecessor: four times as many rows as were shown gained weight with every
// search, so what had been found was found again.
func TestPredecessorReinforcedWhatItFound(t *testing.T) {
	_, c, who := begin(t, "a")
	for _, n := range []string{"one", "two", "three", "four"} {
		store(t, c, "a", "the harbour has pier "+n)
	}
	look := func() []memoryFound { return search(t, c, "a", "harbour pier").Memories }
	before := look()
	for range 20 {
		tooltest.OK[results](t, c, who, "memory_search", `{"query":"pier two","limit":1}`)
		tooltest.OK[struct{}](t, c, who, "memory_improve", `{"topic":"pier two"}`)
	}
	after := look()
	for i := range before {
		if before[i].ID != after[i].ID || before[i].Score != after[i].Score {
			t.Errorf("place %d: %s (%v), then %s (%v)", i, before[i].ID, before[i].Score, after[i].ID, after[i].Score)
		}
	}
}

// Predecessor: tags were looked at after the list had been cut.
func TestPredecessorLostTaggedMatches(t *testing.T) {
	_, c, who := begin(t, "a")
	want := store(t, c, "a", "one word about tea, and very many about the weather, the trains and the price of bread", "kitchen")
	for n := range 300 {
		store(t, c, "a", fmt.Sprintf("tea tea tea %d", n))
	}
	got := tooltest.OK[results](t, c, who, "memory_search", `{"query":"tea","tags":["kitchen"],"limit":1}`)
	if len(got.Memories) != 1 || got.Memories[0].ID != want {
		t.Errorf("got %+v", got.Memories)
	}
}

// Predecessor: a store that failed used up the quota.
func TestPredecessorChargedFailures(t *testing.T) {
	db, c, who := begin(t, "a")
	if _, err := db.Exec(t.Context(), `insert into memory_limits (agent_id, max_per_day) values ('a', 1)`); err != nil {
		t.Fatal(err)
	}
	tooltest.Fault(t, c, who, "memory_store", `{"content":"drawn from nothing","derived_from":["m_x"]}`, "not_found")
	store(t, c, "a", "the one of today")
}

// Predecessor: rows that held no more came back as if they did.
func TestPredecessorShowedWhatNoLongerHolds(t *testing.T) {
	db, c, who := begin(t, "a")
	old := store(t, c, "a", "the harbour migration was a success")
	tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": "the harbour migration was rolled back", "supersedes": old})
	if got := tooltest.OK[results](t, c, who, "memory_successful_conversations", `{"topic":"harbour migration"}`); len(got.Memories) != 0 {
		t.Errorf("successes %+v", got.Memories)
	}
	past := storeFact(t, c, "Ann", "on leave", fact{"yes", "2020-01-01", "2021-01-01"}).MemoryID
	read := tooltest.OK[struct {
		ValidUntil *time.Time `json:"valid_until"`
	}](t, c, who, "memory_read", map[string]any{"memory_id": past})
	if read.ValidUntil == nil {
		t.Error("a fact that has ended does not say so")
	}
	storeFact(t, c, "Bob", "team", fact{object: "Platform"})
	later := memory.New(db, func() time.Time { return noon.Add(time.Hour) })
	storeFact(t, later, "Bob", "team", fact{object: "Data"})
	if got := tooltest.OK[struct {
		Semantic int `json:"semantic_memories"`
	}](t, later, who, "memory_consolidation_status", `{}`); got.Semantic != 1 {
		t.Errorf("%d semantic memories, of which one holds", got.Semantic)
	}
}

// Predecessor: what faded lost its fact, its trust and where it came from; and
// next to nothing ever faded.
func TestPredecessorArchivedHalf(t *testing.T) {
	db, c, who := begin(t, "a")
	id := tooltest.OK[stored](t, c, who, "memory_store", `{"content":"had a sandwich","tags":["lunch"],"origin":"tool_echo"}`).MemoryID
	read := func() string {
		return string(tooltest.Call(t, c, who, "memory_read", map[string]any{"memory_id": id}).OK)
	}
	before := read()
	done, err := memory.Consolidate(t.Context(), db, "a", noon.AddDate(2, 0, 0))
	if err != nil || done.Archived != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if after := read(); after != before || !strings.Contains(after, "tool_echo") || !strings.Contains(after, "lunch") {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// Predecessor: half of the tools answered in prose without ids, so that nothing
// could be done with what they found.
func TestPredecessorAnsweredInProse(t *testing.T) {
	_, c, who := begin(t, "a")
	want := store(t, c, "a", "TODO: the harbour migration was a success, tell Ann")
	storeFact(t, c, "Ann", "team", fact{object: "Platform"})
	record(t, c, who, "u1", "timezone", "UTC")
	for _, call := range []struct{ tool, args string }{
		{"memory_search", `{"query":"harbour"}`}, {"memory_search_by_layer", `{"query":"harbour","layer":"episodic"}`},
		{"memory_successful_conversations", `{"topic":"harbour"}`}, {"memory_improve", `{"topic":"harbour"}`},
		{"session_restore_context", `{"query":"harbour"}`}, {"memory_fetch_batch", `{"ids":["` + want + `"]}`},
	} {
		if out := string(tooltest.Call(t, c, who, call.tool, call.args).OK); !strings.Contains(out, `"id":"`+want+`"`) {
			t.Errorf("%s names no id: %s", call.tool, out)
		}
	}
	if h, _ := historyOf(t, c, "Ann", "team"); len(h.Records) != 1 || h.Records[0].ID == "" || h.Records[0].Origin == "" {
		t.Errorf("history %+v", h)
	}
}

// Predecessor: the history of a fact had no bound.
func TestPredecessorHistoryHadNoBound(t *testing.T) {
	db, _, _ := begin(t, "a")
	var all []string
	for n := range 5 {
		c := memory.New(db, func() time.Time { return noon.Add(time.Duration(n) * time.Hour) })
		all = append(all, storeFact(t, c, "Bob", "room", fact{object: fmt.Sprint(n)}).MemoryID)
	}
	h := tooltest.OK[history](t, open(db), tooltest.Who("a"), "memory_get_history", `{"subject":"Bob","predicate":"room","limit":2}`)
	if len(h.Records) != 2 || !slices.Contains(all, h.Records[0].ID) {
		t.Errorf("history %+v", h)
	}
	tooltest.Invalid(t, open(db), tooltest.Who("a"), "memory_get_history", `{"subject":"Bob","predicate":"room","limit":1001}`, "limit")
}
