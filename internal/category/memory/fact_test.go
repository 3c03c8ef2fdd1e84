package memory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pawgate/internal/category/memory"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

type fact struct{ object, from, until string }

func storeFact(t testing.TB, c tool.Category, subject, predicate string, f fact) stored {
	t.Helper()
	args := map[string]any{"content": fmt.Sprintf("%s %s: %s", subject, predicate, f.object), "subject": subject, "predicate": predicate, "object": f.object}
	if f.from != "" {
		args["valid_from"] = f.from
	}
	if f.until != "" {
		args["valid_until"] = f.until
	}
	return tooltest.OK[stored](t, c, tooltest.Who("a"), "memory_store", args)
}

// objectAt is what held then; "" for nothing.
func objectAt(t testing.TB, c tool.Category, subject, predicate, at string) string {
	t.Helper()
	got := tooltest.OK[struct {
		Found  bool
		Record *struct{ Object string }
	}](t, c, tooltest.Who("a"), "memory_get_at", map[string]any{"subject": subject, "predicate": predicate, "at": at})
	if !got.Found {
		return ""
	}
	return got.Record.Object
}

type history struct {
	Records []struct {
		ID, Object, Origin string
		ValidFrom          time.Time  `json:"valid_from"`
		ValidUntil         *time.Time `json:"valid_until"`
		Supersedes         string
		SupersededBy       string `json:"superseded_by"`
		TimesStored        int    `json:"times_stored"`
	}
}

func historyOf(t testing.TB, c tool.Category, subject, predicate string) (h history, objects []string) {
	t.Helper()
	h = tooltest.OK[history](t, c, tooltest.Who("a"), "memory_get_history", map[string]any{"subject": subject, "predicate": predicate})
	for _, r := range h.Records {
		objects = append(objects, r.Object)
	}
	return h, objects
}

// TestTimeline stores facts in some order and asks what held in each year.
func TestTimeline(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		facts []fact
		want  map[string]string // year → object
	}{
		"one":                   {[]fact{{"A", "2020-01-01", ""}}, map[string]string{"2019": "", "2020": "A", "2026": "A"}},
		"a new value":           {[]fact{{"A", "2020-01-01", ""}, {"B", "2022-01-01", ""}}, map[string]string{"2021": "A", "2022": "B", "2026": "B"}},
		"arriving late":         {[]fact{{"B", "2022-01-01", ""}, {"A", "2020-01-01", ""}}, map[string]string{"2019": "", "2021": "A", "2022": "B"}},
		"arriving between":      {[]fact{{"A", "2020-01-01", ""}, {"C", "2024-01-01", ""}, {"B", "2022-01-01", ""}}, map[string]string{"2021": "A", "2023": "B", "2025": "C"}},
		"an interruption":       {[]fact{{"A", "2020-01-01", ""}, {"B", "2022-01-01", "2023-01-01"}}, map[string]string{"2021": "A", "2022": "B", "2023": "A"}},
		"interrupted, replaced": {[]fact{{"A", "2020-01-01", ""}, {"B", "2022-01-01", "2024-01-01"}, {"C", "2023-01-01", ""}}, map[string]string{"2022": "B", "2023": "C", "2025": "C"}},
		"late, interrupted":     {[]fact{{"A", "2020-01-01", ""}, {"B", "2022-01-01", "2023-01-01"}, {"C", "2021-01-01", ""}}, map[string]string{"2020": "A", "2021": "C", "2022": "B", "2024": "C"}},
		"only an interval":      {[]fact{{"A", "2020-01-01", "2021-01-01"}}, map[string]string{"2020": "A", "2021": ""}},
		"a correction":          {[]fact{{"A", "2020-01-01", ""}, {"B", "2020-01-01", ""}}, map[string]string{"2019": "", "2020": "B", "2026": "B"}},
		"there and back":        {[]fact{{"A", "2020-01-01", ""}, {"B", "2021-01-01", ""}, {"A", "2022-01-01", ""}}, map[string]string{"2020": "A", "2021": "B", "2023": "A"}},
		"from the future":       {[]fact{{"A", "2020-01-01", ""}, {"B", "2030-01-01", ""}}, map[string]string{"2026": "A", "2031": "B"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := postgrestest.New(t)
			addAgent(t, db, "a")
			c := open(db)
			for _, f := range tc.facts {
				storeFact(t, c, "Ann", "lives in", f)
			}
			for year, want := range tc.want {
				if got := objectAt(t, c, "Ann", "lives_in", year+"-06-01T00:00:00Z"); got != want {
					t.Errorf("in %s it is %q, want %q", year, got, want)
				}
			}
			if _, all := historyOf(t, c, "ann", "Lives in"); len(all) != len(tc.facts) {
				t.Errorf("history %q", all)
			}
		})
	}
}

func TestFactContradicted(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	addAgent(t, db, "a")
	old := open(db)
	c := memory.New(db, func() time.Time { return noon.Add(time.Hour) })
	first := storeFact(t, old, "user", "name", fact{object: "Alice"})
	second := storeFact(t, c, "user", "name", fact{object: "Bob"})

	t.Run("complaint 76 the first is superseded, both are in the history", func(t *testing.T) {
		h, objects := historyOf(t, c, "user", "name")
		if !slices.Equal(objects, []string{"Alice", "Bob"}) || h.Records[0].SupersededBy != second.MemoryID ||
			h.Records[1].Supersedes != first.MemoryID || h.Records[0].ValidUntil == nil || h.Records[1].ValidUntil != nil {
			t.Errorf("history %+v", h)
		}
		if got := contents(t, c, "a", "user name"); !slices.Equal(got, []string{"user name: Bob"}) {
			t.Errorf("search finds %q", got)
		}
	})
	t.Run("the same again is no new row", func(t *testing.T) {
		again := storeFact(t, c, "User", "NAME", fact{object: "bob"})
		if again.MemoryID != second.MemoryID || again.TimesStored != 2 {
			t.Errorf("got %+v, want %s twice", again, second.MemoryID)
		}
	})
	t.Run("the old one can still be read", func(t *testing.T) {
		got := tooltest.OK[struct {
			SupersededBy string `json:"superseded_by"`
		}](t, c, tooltest.Who("a"), "memory_read", map[string]any{"memory_id": first.MemoryID})
		if got.SupersededBy != second.MemoryID {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("what is quarantined holds at no time", func(t *testing.T) {
		if _, err := db.Exec(t.Context(), `update memories set quarantined = true where id = $1`, second.MemoryID); err != nil {
			t.Fatal(err)
		}
		if got := objectAt(t, c, "user", "name", "2026-12-31"); got != "" {
			t.Errorf("it is %q", got)
		}
		if _, objects := historyOf(t, c, "user", "name"); !slices.Equal(objects, []string{"Alice"}) {
			t.Errorf("history %q", objects)
		}
	})
}

func TestFactAtOnce(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	addAgent(t, db, "a")
	atOnce(12, func(i int) {
		storeFact(t, memory.New(db, time.Now), "counter", "value", fact{object: fmt.Sprint(i)})
	})
	h, _ := historyOf(t, memory.New(db, time.Now), "counter", "value")
	open := 0
	for i, r := range h.Records {
		if r.ValidUntil == nil {
			open++
		}
		if i > 0 && (h.Records[i-1].ValidUntil == nil || h.Records[i-1].ValidUntil.After(r.ValidFrom)) {
			t.Errorf("records %d and %d overlap", i-1, i)
		}
	}
	if len(h.Records) != 12 || open != 1 {
		t.Errorf("%d records, %d of them open; want 12 and 1", len(h.Records), open)
	}
}

func TestFactRefuses(t *testing.T) {
	_, c, who := begin(t, "a")
	for name, tc := range map[string]struct{ args, parameter string }{
		"half a fact":            {`{"content":"x y z","subject":"x"}`, "subject"},
		"an interval of nothing": {`{"content":"x y z","valid_from":"2020-01-01"}`, "subject"},
		"a broken time":          {`{"content":"x y z","subject":"x","predicate":"y","object":"z","valid_from":"once"}`, "valid_from"},
		"an empty interval":      {`{"content":"x y z","subject":"x","predicate":"y","object":"z","valid_from":"2020-01-02","valid_until":"2020-01-02"}`, "valid_until"},
	} {
		t.Run(name, func(t *testing.T) { tooltest.Invalid(t, c, who, "memory_store", tc.args, tc.parameter) })
	}
	tooltest.Invalid(t, c, who, "memory_get_at", `{"subject":"x","predicate":"y","at":"now"}`, "at")
	tooltest.Invalid(t, c, who, "memory_get_history", `{"subject":"x"}`, "predicate")
}

func TestFactIsolation_MEM13(t *testing.T) {
	_, c, _ := begin(t, "a", "b")
	storeFact(t, c, "user", "secret", fact{object: "marker-41"})
	for _, call := range []struct{ name, args string }{
		{"memory_get_history", `{"subject":"user","predicate":"secret"}`},
		{"memory_get_at", `{"subject":"user","predicate":"secret","at":"2026-12-02"}`},
		{"memory_search_by_layer", `{"query":"secret","layer":"semantic"}`},
		{"memory_improve", `{"topic":"secret"}`},
		{"session_restore_context", `{"query":"secret"}`},
		{"memory_successful_conversations", `{"topic":"secret"}`},
		{"user_code_profile", `{}`},
	} {
		out := tooltest.Call(t, c, tooltest.Who("b"), call.name, call.args)
		if out.OK == nil || strings.Contains(string(out.OK), "marker-41") {
			t.Errorf("MEM-13 %s: %s", call.name, out.OK)
		}
	}
}
