package memory_test

import (
	"testing"
	"time"

	"pawgate/internal/category/memory"
	"pawgate/internal/tool/tooltest"
)

func TestInvalidateByOrigin(t *testing.T) {
	db, c, who := begin(t, "a", "b")
	keep := func(args map[string]any) string { return tooltest.OK[stored](t, c, who, "memory_store", args).MemoryID }
	wrong := keep(map[string]any{"content": "the moon is made of cheese", "origin": "web:bad.example"})
	future := keep(map[string]any{"content": "cheese until 2030", "origin": "web:bad.example",
		"subject": "moon", "predicate": "made of", "object": "cheese", "valid_until": "2030-01-01"})
	child := keep(map[string]any{"content": "so the moon can be eaten", "derived_from": []string{wrong}})
	grandchild := keep(map[string]any{"content": "send a spoon up", "derived_from": []string{child}})
	later := tooltest.OK[stored](t, memory.New(db, func() time.Time { return noon.Add(48 * time.Hour) }), who, "memory_store",
		`{"content":"of something else","origin":"web:bad.example"}`).MemoryID
	store(t, c, "b", "b heard of cheese as well")
	if _, err := db.Exec(t.Context(), `update memories set origin = 'web:bad.example' where agent_id = 'b'`); err != nil {
		t.Fatal(err)
	}
	type outcome struct{ Invalidated, Distrusted int }
	call := func(args string) outcome { return tooltest.OK[outcome](t, c, who, "memory_invalidate_by_origin", args) }

	if got := call(`{"origin":"web:bad.example","since":"2026-12-02","dry_run":true}`); got != (outcome{1, 0}) {
		t.Errorf("dry run since: %+v", got)
	}
	if got := call(`{"origin":"web:bad.example","dry_run":true}`); got != (outcome{3, 2}) {
		t.Errorf("dry run: %+v", got)
	}
	if got := contents(t, c, "a", "cheese"); len(got) != 2 {
		t.Errorf("the dry run changed something: %q", got)
	}
	if got := call(`{"origin":"web:bad.example"}`); got != (outcome{3, 2}) {
		t.Errorf("got %+v", got)
	}
	if got := call(`{"origin":"web:bad.example"}`); got != (outcome{}) {
		t.Errorf("again: %+v", got)
	}
	for _, id := range []string{wrong, future, later} {
		tooltest.Fault(t, c, who, "memory_read", map[string]any{"memory_id": id}, "not_found")
	}
	if got := objectAt(t, c, "moon", "made of", "2027-01-01"); got != "" {
		t.Errorf("the fact still holds: %q", got)
	}
	for _, id := range []string{child, grandchild} {
		got := tooltest.OK[struct {
			OriginTrust float64 `json:"origin_trust"`
		}](t, c, who, "memory_read", map[string]any{"memory_id": id})
		if got.OriginTrust > 0.1001 {
			t.Errorf("%s is trusted %v", id, got.OriginTrust)
		}
	}
	if got := contents(t, c, "b", "cheese"); len(got) != 1 {
		t.Errorf("another agent's memory is gone: %q", got)
	}
	tooltest.Invalid(t, c, who, "memory_invalidate_by_origin", `{"origin":"x","since":"once"}`, "since")
}

// What a wrong source superseded stands again, as if the source had never
// spoken.
func TestInvalidateRestores(t *testing.T) {
	db, c, who := begin(t, "a")
	say := func(subject, object, from, until, origin string) {
		t.Helper()
		tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": subject + " " + object, "subject": subject, "predicate": "is",
			"object": object, "valid_from": from, "valid_until": until, "origin": origin})
	}
	const bad = "web:bad.example"
	say("sky", "blue", "2020-01-01", "", "")
	say("sky", "green", "2022-01-01", "", bad)
	say("sky", "pink", "2023-01-01", "", bad)
	say("sea", "calm", "2020-01-01", "", "")
	say("sea", "on fire", "2021-01-01", "", bad)
	say("sea", "rough", "2022-01-01", "", "")
	say("shop", "open", "2020-01-01", "2024-01-01", "")
	say("shop", "closed", "2021-01-01", "", bad)
	office := store(t, c, "a", "The office is in Taipei")
	tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": "The office is on the moon", "supersedes": office, "origin": bad})
	again := store(t, c, "a", "The printer is upstairs")
	tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": "The printer is gone", "supersedes": again, "origin": bad})
	store(t, c, "a", "The printer is upstairs") // said again meanwhile: once is enough

	type outcome struct{ Invalidated, Restored int }
	for _, want := range []outcome{{6, 5}, {}} {
		if got := tooltest.OK[outcome](t, c, who, "memory_invalidate_by_origin", `{"origin":"`+bad+`"}`); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	for _, tc := range []struct{ subject, at, want string }{
		{"sky", "2022-06-01", "blue"}, {"sky", "2026-06-01", "blue"},
		{"sea", "2021-06-01", "calm"}, {"sea", "2026-06-01", "rough"},
		{"shop", "2023-06-01", "open"}, {"shop", "2026-06-01", ""},
	} {
		if got := objectAt(t, c, tc.subject, "is", tc.at); got != tc.want {
			t.Errorf("at %s the %s is %q, want %q", tc.at, tc.subject, got, tc.want)
		}
	}
	for query, want := range map[string]string{"office": "The office is in Taipei", "printer": "The printer is upstairs", "sky": "sky blue"} {
		if got := contents(t, c, "a", query); len(got) != 1 || got[0] != want {
			t.Errorf("search %q found %q, want %q", query, got, want)
		}
	}
	if got := contents(t, c, "a", "shop"); len(got) != 0 {
		t.Errorf("what has ended is found: %q", got)
	}
	wantCount(t, db, `select count(*) from memories where said_until is not null`, 1)
}
