package memory_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/category/memory"
	"pawgate/internal/tool/tooltest"
)

func TestStoreTheSameInOtherWords(t *testing.T) {
	_, c, _ := begin(t, "a")
	var ids []string
	for _, paraphrase := range []string{
		"The team moved the launch to Friday in Osaka",
		"In Osaka the team moved the launch to Friday",
		"the team has moved the launch to Friday, in Osaka!",
		"The team moves the launch to Friday in Osaka",
		"The team finally moved the launch to Friday in Osaka",
		"Team moved launch to Friday in Osaka",
	} {
		ids = append(ids, store(t, c, "a", paraphrase))
	}
	store(t, c, "a", "The team moved the launch to Monday in Osaka")
	got := search(t, c, "a", "launch Friday Osaka")
	t.Run("complaint 79 one fact with its six sources", func(t *testing.T) {
		if len(got.Memories) != 2 {
			t.Fatalf("found %+v", got.Memories)
		}
		all := append([]string{got.Memories[0].ID}, got.Memories[0].SimilarIDs...)
		slices.Sort(all)
		slices.Sort(ids)
		if !slices.Equal(all, ids) {
			t.Errorf("shown as one: %v, want %v", all, ids)
		}
	})
	t.Run("each is found by its own words and read back", func(t *testing.T) {
		if got := contents(t, c, "a", "finally"); len(got) != 1 || !strings.Contains(got[0], "finally") {
			t.Errorf("found %q", got)
		}
	})
	t.Run("another day is not the same", func(t *testing.T) {
		if got := contents(t, c, "a", "Monday"); len(got) != 1 || !strings.Contains(got[0], "Monday") {
			t.Errorf("found %q", got)
		}
	})
}

func TestStoreRefusesTemplates(t *testing.T) {
	_, c, who := begin(t, "a")
	for _, content := range []string{"The user's name is {{name}}", "<insert summary here>", "[Insert fact]", "Name: ${USER}", "TODO", "N/A", "lorem ipsum", "string"} {
		t.Run("complaint 79 "+content, func(t *testing.T) {
			tooltest.Invalid(t, c, who, "memory_store", map[string]any{"content": content}, "content")
		})
	}
	for _, content := range []string{"Jinja fills `{{name}}` in", "a <b>bold</b> word", "TODO: call Ann", "[1] is a footnote", "if a < b and c > d"} {
		store(t, c, "a", content)
	}
}

func TestStoreSupersedes(t *testing.T) {
	_, c, who := begin(t, "a", "b")
	old := store(t, c, "a", "The office is in Taipei")
	got := tooltest.OK[struct {
		MemoryID   string `json:"memory_id"`
		Superseded string
	}](t, c, who, "memory_store", map[string]any{"content": "The office is in Tainan", "supersedes": old})
	if got.Superseded != old {
		t.Errorf("superseded %q, want %q", got.Superseded, old)
	}
	if found := contents(t, c, "a", "office"); !slices.Equal(found, []string{"The office is in Tainan"}) {
		t.Errorf("found %q", found)
	}
	for name, id := range map[string]string{"again": old, "unknown": "m_x", "foreign": store(t, c, "b", "of another")} {
		t.Run(name, func(t *testing.T) {
			tooltest.Fault(t, c, who, "memory_store", map[string]any{"content": "new " + name, "supersedes": id}, "not_found")
			if found := contents(t, c, "a", "new "+name); len(found) != 0 {
				t.Errorf("half of it was stored: %q", found)
			}
		})
	}
}

func TestStoreTrust(t *testing.T) {
	_, c, who := begin(t, "a")
	operator := who
	operator.Scopes = []string{caller.ScopeAll, caller.ScopeOperator}
	trustOf := func(who caller.Caller, args map[string]any) float64 {
		id := tooltest.OK[stored](t, c, who, "memory_store", args).MemoryID
		return tooltest.OK[struct {
			OriginTrust float64 `json:"origin_trust"`
		}](t, c, who, "memory_read", map[string]any{"memory_id": id}).OriginTrust
	}
	weak := tooltest.OK[stored](t, c, who, "memory_store", `{"content":"seen on a page","origin":"mcp_external"}`).MemoryID
	for name, tc := range map[string]struct {
		who  caller.Caller
		args map[string]any
		want float64
	}{
		"an agent's own":             {who, map[string]any{"content": "one thought"}, 0.6},
		"an agent quoting the user":  {who, map[string]any{"content": "two thoughts", "origin": "user_direct"}, 0.6},
		"an operator quoting a user": {operator, map[string]any{"content": "three thoughts", "origin": "user_direct"}, 1},
		"from a tool":                {who, map[string]any{"content": "four thoughts", "origin": "tool_echo"}, 0.5},
		"any other source":           {who, map[string]any{"content": "five thoughts", "origin": "web:example.com"}, 0.6},
		"drawn from something weak":  {who, map[string]any{"content": "six thoughts", "derived_from": []string{weak}}, 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := trustOf(tc.who, tc.args); got < tc.want-1e-6 || got > tc.want+1e-6 {
				t.Errorf("trust %v, want %v", got, tc.want)
			}
		})
	}
	tooltest.Fault(t, c, who, "memory_store", `{"content":"seven","derived_from":["m_x"]}`, "not_found")
	tooltest.Invalid(t, c, who, "memory_store", `{"content":"eight","origin":"Not An Origin"}`, "origin")
}

func TestStoreQuota(t *testing.T) {
	db, c, who := begin(t, "a", "b")
	if _, err := db.Exec(t.Context(), `insert into memory_limits (agent_id, max_per_day) values ('a', 3)`); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"number one", "number two", "number three"} {
		store(t, c, "a", content)
	}
	f := tooltest.Fault(t, c, who, "memory_store", `{"content":"number four"}`, "over_quota")
	if f.RetryAfter != 12*time.Hour {
		t.Errorf("retry after %v, want the rest of the day", f.RetryAfter)
	}
	tooltest.Fault(t, c, who, "log_mood", `{"mood":"calm"}`, "over_quota")
	store(t, c, "b", "the limit is of one agent")
	tomorrow := memory.New(db, func() time.Time { return noon.Add(24 * time.Hour) })
	store(t, tomorrow, "a", "number four")
	if _, err := db.Exec(t.Context(), `update memory_limits set max_per_day = null, max_memories = 0`); err != nil {
		t.Fatal(err)
	}
	tooltest.Fault(t, tomorrow, who, "memory_store", `{"content":"number five"}`, "over_quota")
}
