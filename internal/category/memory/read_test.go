package memory_test

import (
	"slices"
	"strings"
	"testing"

	"pawgate/internal/tool/tooltest"
)

func TestRead(t *testing.T) {
	_, c, who := begin(t, "a")
	id := store(t, c, "a", "tea", " Work ", "work", "家")
	got := tooltest.OK[memoryRead](t, c, who, "memory_read", map[string]any{"memory_id": id})
	if got.ID != id || got.Content != "tea" || !slices.Equal(got.Tags, []string{"Work", "家"}) || got.TimesStored != 1 {
		t.Errorf("got %+v", got)
	}
	for _, unknown := range []string{"m_0000000000000000", "", "'", strings.Repeat("x", 128)} {
		f := tooltest.Fault(t, c, who, "memory_read", map[string]any{"memory_id": unknown}, "not_found")
		if want := "no memory " + unknown; f.Message != want {
			t.Errorf("message %q, want %q", f.Message, want)
		}
	}
	tooltest.Invalid(t, c, who, "memory_read", `{}`, "memory_id")
}

type batch struct {
	Memories []struct {
		ID, Content, Layer string
		Metadata           map[string]any
	}
	MissingIDs   []string `json:"missing_ids"`
	RemainingIDs []string `json:"remaining_ids"`
}

func (b batch) ids() []string {
	ids := []string{}
	for _, m := range b.Memories {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestFetchBatch(t *testing.T) {
	_, c, who := begin(t, "a")
	one, two := store(t, c, "a", "one"), store(t, c, "a", "two")
	fetch := func(args map[string]any) batch { return tooltest.OK[batch](t, c, who, "memory_fetch_batch", args) }

	t.Run("in the order asked, once each", func(t *testing.T) {
		got := fetch(map[string]any{"ids": []string{two, "m_x", one, two, "m_x"}})
		if !slices.Equal(got.ids(), []string{two, one}) || !slices.Equal(got.MissingIDs, []string{"m_x"}) || got.Memories[0].Metadata != nil {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("ids as the text of an array", func(t *testing.T) {
		if got := fetch(map[string]any{"ids": `["` + one + `"]`}); len(got.Memories) != 1 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("metadata on request", func(t *testing.T) {
		if got := fetch(map[string]any{"ids": []string{one}, "include_metadata": true}); got.Memories[0].Metadata["importance"] != 5.0 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("what does not fit is named", func(t *testing.T) {
		var ids []string
		for _, letter := range []string{"x", "y", "z"} {
			ids = append(ids, store(t, c, "a", strings.Repeat(letter, 700_000)))
		}
		first := fetch(map[string]any{"ids": ids})
		if !slices.Equal(first.ids(), ids[:1]) || !slices.Equal(first.RemainingIDs, ids[1:]) || len(first.MissingIDs) != 0 {
			t.Errorf("got %v, remaining %v, missing %v", first.ids(), first.RemainingIDs, first.MissingIDs)
		}
	})
	for name, args := range map[string]string{
		"none": `{"ids":[]}`, "no array": `{"ids":"m_1"}`, "more than 100": `{"ids":["` + strings.Repeat(`m_1","`, 100) + `m_2"]}`,
	} {
		t.Run(name, func(t *testing.T) { tooltest.Invalid(t, c, who, "memory_fetch_batch", args, "ids") })
	}
}
