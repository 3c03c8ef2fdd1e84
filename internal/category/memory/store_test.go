package memory_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

func TestStore(t *testing.T) {
	db, c, who := begin(t, "a", "b")

	t.Run("kept to the byte (complaint 77)", func(t *testing.T) {
		content := "  Zeile eins\r\n\tZeile zwei\u200b  ガ\u3099 🚀 \n"
		id := store(t, c, who.Agent, content)
		got := tooltest.OK[memoryRead](t, c, who, "memory_read", map[string]any{"memory_id": id})
		if got.Content != content {
			t.Errorf("content %q, want %q", got.Content, content)
		}
	})
	t.Run("near-identical content is one memory", func(t *testing.T) {
		first := store(t, c, "a", "The user likes Café au lait")
		for _, same := range []string{"the user  likes café au lait", "The user likes Cafe\u0301 au lait ", "Ｔｈｅ user likes cafe au lait"} {
			if id := store(t, c, "a", same); id != first {
				t.Errorf("%q is a memory of its own", same)
			}
		}
		if id := store(t, c, "a", "The user likes Café au lait?"); id == first {
			t.Error("a question is taken for the statement")
		}
	})
	t.Run("MEM-08 same text of two agents", func(t *testing.T) {
		if store(t, c, "a", "shared sentence") == store(t, c, "b", "shared sentence") {
			t.Error("the two agents share a row")
		}
	})
	t.Run("MEM-14 unique save repeated", func(t *testing.T) {
		id := store(t, c, "a", "only once")
		again := tooltest.OK[stored](t, c, who, "memory_store", `{"content":"only once"}`)
		if again.MemoryID != id || again.TimesStored != 2 {
			t.Errorf("got %+v, want %s stored twice", again, id)
		}
	})
	t.Run("MEM-14 the table holds it twice already, both put away", func(t *testing.T) {
		for _, better := range []string{"a better word", "a still better word"} {
			old := store(t, c, "a", "said too soon")
			tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": better, "supersedes": old})
		}
		wantCount(t, db, `select count(*) from memories where agent_id = 'a' and content = 'said too soon'`, 2)
		id := store(t, c, "a", "said too soon")
		again := tooltest.OK[stored](t, c, who, "memory_store", `{"content":"said too soon"}`)
		if again.MemoryID != id || again.TimesStored != 2 {
			t.Errorf("got %+v, want %s stored twice", again, id)
		}
	})
	t.Run("layer and importance", func(t *testing.T) {
		for content, want := range map[string]memoryRead{
			"met Anna for lunch":                         {Layer: "episodic", Importance: 5},
			"urgent: the deploy failed":                  {Layer: "episodic", Importance: 8},
			"The user prefers tea":                       {Layer: "semantic", Importance: 5},
			"使用者偏好喝綠茶":                                   {Layer: "semantic", Importance: 5},
			"how to restart: run make run, then wait 5s": {Layer: "procedural", Importance: 5},
		} {
			got := tooltest.OK[memoryRead](t, c, who, "memory_read", map[string]any{"memory_id": store(t, c, "a", content)})
			if got.Layer != want.Layer || got.Importance != want.Importance {
				t.Errorf("%s: %s %v, want %s %v", content, got.Layer, got.Importance, want.Layer, want.Importance)
			}
		}
		said := tooltest.OK[stored](t, c, who, "memory_store", `{"content":"always on","layer":"procedural","importance":2}`)
		got := tooltest.OK[memoryRead](t, c, who, "memory_read", map[string]any{"memory_id": said.MemoryID})
		if got.Layer != "procedural" || got.Importance != 2 {
			t.Errorf("said procedural 2, kept %s %v", got.Layer, got.Importance)
		}
	})
}

func TestStoreRefuses(t *testing.T) {
	_, c, who := begin(t, "a")
	for name, tc := range map[string]struct{ args, parameter string }{
		"missing":                    {`{}`, "content"},
		"blank":                      {`{"content":" \n\t　"}`, "content"},
		"MCP-17 NUL":                 {`{"content":"a\u0000b"}`, "content"},
		"MCP-17 NUL in a tag":        {`{"content":"a","tags":["b\u0000"]}`, "tags[0]"},
		"lone surrogate":             {`{"content":"a\ud800"}`, "arguments"},
		"too long":                   {`{"content":"` + strings.Repeat("x", 1<<20+1) + `"}`, "content"},
		"importance out of range":    {`{"content":"a","importance":11}`, "importance"},
		"unknown layer":              {`{"content":"a","layer":"deep"}`, "layer"},
		"agent_id widens nothing":    {`{"content":"a","agent_id":"b"}`, "agent_id"},
		"too many tags":              {`{"content":"a","tags":["` + strings.Repeat(`x","`, 32) + `y"]}`, "tags"},
		"a tag as long as a content": {`{"content":"a","tags":["` + strings.Repeat("x", 65) + `"]}`, "tags"},
		"tags that are no list":      {`{"content":"a","tags":"work, home"}`, "tags"},
	} {
		t.Run(name, func(t *testing.T) {
			tooltest.Invalid(t, c, who, "memory_store", tc.args, tc.parameter)
		})
	}
}

func TestStoreHuge(t *testing.T) {
	_, c, _ := begin(t, "a")
	var text strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&text, "word%dx%d, ", i, i*7)
	}
	content := text.String()[:1_000_000]
	id := store(t, c, "a", content)
	for name, query := range map[string]string{"first": "word0x0", "within the prefix": "word300x2100"} {
		t.Run("MEM-06 "+name, func(t *testing.T) {
			got := search(t, c, "a", query)
			if len(got.Memories) != 1 || got.Memories[0].ID != id || !got.Memories[0].Truncated {
				t.Errorf("got %d memories", len(got.Memories))
			}
		})
	}
	read := tooltest.OK[memoryRead](t, c, tooltest.Who("a"), "memory_read", map[string]any{"memory_id": id})
	if read.Content != content {
		t.Error("MEM-06 the content is not whole")
	}
}

func TestStoreAtOnce(t *testing.T) {
	t.Parallel()
	db := postgrestest.Clone(t)
	addAgent(t, db, "a")

	t.Run("MEM-07 ten parallel saves", func(t *testing.T) {
		ids := make([]string, 10)
		atOnce(10, func(i int) { ids[i] = store(t, open(db), "a", "the same at once") })
		for _, id := range ids {
			if id == "" || id != ids[0] {
				t.Fatalf("ids %v, want ten times the same", ids)
			}
		}
		wantCount(t, db, `select count(*) from memories where agent_id = 'a' and content = 'the same at once'`, 1)
		wantCount(t, db, `select times_stored from memories where agent_id = 'a' and content = 'the same at once'`, 10)
	})
	t.Run("complaint 80 two processes, twenty each", func(t *testing.T) {
		atOnce(2, func(p int) {
			c := open(db)
			for i := range 20 {
				store(t, c, "a", fmt.Sprintf("process %d note %d", p, i))
			}
		})
		wantCount(t, db, `select count(*) from memories where agent_id = 'a' and content like 'process %'`, 40)
	})
	t.Run("the index holds exactly the live memories", func(t *testing.T) {
		wantCount(t, db, `select count(*) from memory_terms`, countTerms(t, db))
		if _, err := db.Exec(t.Context(), `update memories set quarantined = true where content like 'process 1%'`); err != nil {
			t.Fatal(err)
		}
		wantCount(t, db, `select count(*) from memory_terms`, countTerms(t, db))
		if _, err := db.Exec(t.Context(), `update memories set quarantined = false; delete from memories where content like 'process 0%'`); err != nil {
			t.Fatal(err)
		}
		wantCount(t, db, `select count(*) from memory_terms`, countTerms(t, db))
	})
}

func countTerms(t *testing.T, db queryer) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `select coalesce(sum(cardinality(terms)), 0) from memories where live`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func wantCount(t *testing.T, db queryer, sql string, want int) {
	t.Helper()
	var got int
	if err := db.QueryRow(context.Background(), sql).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s: %d, want %d", sql, got, want)
	}
}

func atOnce(n int, run func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { run(i) })
	}
	all.Wait()
}

func store(t testing.TB, c tool.Category, agent, content string, tags ...string) string {
	t.Helper()
	args := map[string]any{"content": content}
	if len(tags) > 0 {
		args["tags"] = tags
	}
	return tooltest.OK[stored](t, c, tooltest.Who(agent), "memory_store", args).MemoryID
}
