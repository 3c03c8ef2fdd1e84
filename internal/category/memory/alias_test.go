package memory_test

import (
	"slices"
	"testing"

	"pawgate/internal/tool/tooltest"
)

func TestAlias(t *testing.T) {
	_, c, who := begin(t, "a", "b")
	type added struct {
		Canonical, Alias string
		Names            int
	}
	add := func(canonical, alias string) added {
		return tooltest.OK[added](t, c, who, "memory_alias_add", map[string]any{"canonical": canonical, "alias": alias})
	}
	store(t, c, "a", "Robert Smith signed the contract")
	store(t, c, "a", "王大明 簽了合約")
	store(t, c, "a", "the flight to New York City leaves at noon")
	add("Robert", "Bob")
	add("王大明", "小明")
	add("NYC", "New York City")

	for query, want := range map[string]string{
		"bob":            "Robert Smith signed the contract",
		"Bob's contract": "Robert Smith signed the contract",
		"小明的合約":          "王大明 簽了合約",
		"nyc flight":     "the flight to New York City leaves at noon",
	} {
		if got := contents(t, c, "a", query); len(got) == 0 || got[0] != want {
			t.Errorf("search %q found %q, want %q", query, got, want)
		}
	}
	if got := contents(t, c, "a", "bobsled"); len(got) != 0 {
		t.Errorf("a part of a word is taken for an alias: %q", got)
	}

	t.Run("no chains, no loops", func(t *testing.T) {
		add("b1", "a1")
		add("c1", "b1")
		if got := add("a1", "c1"); got.Canonical != "c1" || got.Names != 3 {
			t.Errorf("got %+v", got)
		}
		list := tooltest.OK[struct {
			Aliases []added
			Total   int
		}](t, c, who, "memory_alias_list", `{}`)
		for _, a := range list.Aliases {
			if slices.ContainsFunc(list.Aliases, func(b added) bool { return b.Alias == a.Canonical }) {
				t.Errorf("chain through %s: %+v", a.Canonical, list.Aliases)
			}
		}
		if list.Total != 5 || len(list.Aliases) != 5 {
			t.Errorf("%d aliases of %d: %+v", len(list.Aliases), list.Total, list.Aliases)
		}
	})
	t.Run("pages", func(t *testing.T) {
		type page struct {
			Aliases    []added
			NextCursor string `json:"next_cursor"`
		}
		var all []string
		cursor := ""
		for range 10 {
			p := tooltest.OK[page](t, c, who, "memory_alias_list", map[string]any{"limit": 2, "cursor": cursor})
			for _, a := range p.Aliases {
				all = append(all, a.Alias)
			}
			if cursor = p.NextCursor; cursor == "" {
				break
			}
		}
		if len(all) != 5 || !slices.IsSorted(all) {
			t.Errorf("paged through %q", all)
		}
	})
	t.Run("facts of either name", func(t *testing.T) {
		storeFact(t, c, "Robert", "team", fact{object: "Platform"})
		if got := objectAt(t, c, "Bob", "team", "2026-12-02"); got != "Platform" {
			t.Errorf("Bob's team is %q", got)
		}
	})
	t.Run("MEM-13 another agent's aliases are its own", func(t *testing.T) {
		other := tooltest.Who("b")
		got := tooltest.OK[struct {
			Aliases []added
			Total   int
		}](t, c, other, "memory_alias_list", `{}`)
		if got.Total != 0 || len(got.Aliases) != 0 {
			t.Errorf("b has %+v", got)
		}
		store(t, c, "b", "Robert Miller wrote a letter")
		storeFact(t, c, "Robert", "desk", fact{object: "4"})
		if found := contents(t, c, "b", "bob"); len(found) != 0 {
			t.Errorf("by another's alias b finds %q", found)
		}
		// What b says of the same names moves nothing of another.
		for _, pair := range [][2]string{{"Robert", "Rob"}, {"Zed", "Robert"}} {
			if made := tooltest.OK[added](t, c, other, "memory_alias_add", map[string]any{"canonical": pair[0], "alias": pair[1]}); made.Names > 3 {
				t.Errorf("%v now has %d names of b", pair, made.Names)
			}
		}
		if found := contents(t, c, "b", "zed"); len(found) != 1 {
			t.Errorf("by its own alias b finds %q", found)
		}
		if found := contents(t, c, "a", "bob"); !slices.Contains(found, "Robert Smith signed the contract") {
			t.Errorf("by its own alias a finds %q", found)
		}
		if found := contents(t, c, "a", "zed"); len(found) != 0 {
			t.Errorf("by b's alias a finds %q", found)
		}
		if desk := objectAt(t, c, "Bob", "desk", "2026-12-02"); desk != "4" {
			t.Errorf("Bob's desk is %q", desk)
		}
	})
	tooltest.Invalid(t, c, who, "memory_alias_add", `{"canonical":" ","alias":"x"}`, "canonical")
	tooltest.Invalid(t, c, who, "memory_alias_add", `{"canonical":"x","alias":"Ｘ"}`, "alias")
}
