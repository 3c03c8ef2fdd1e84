package memory_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pawgate/internal/category/memory"
	"pawgate/internal/fault"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

// share is what the operator's command does.
func share(t testing.TB, db execer, owner, reader, until string, tags ...string) {
	t.Helper()
	_, err := db.Exec(t.Context(), `insert into memory_shares (owner_id, agent_id, tags, granted_by, granted_at, until)
		values ($1, $2, coalesce($3::text[], '{}'), 'test', $4, nullif($5, '')::timestamptz)
		on conflict (owner_id, agent_id) do update set tags = excluded.tags, until = excluded.until`, owner, reader, tags, noon, until)
	if err != nil {
		t.Fatal(err)
	}
}

// shelf is an owner's memories: some tagged open, some not, that a reader
// asks for in every way there is.
type shelf struct {
	c            tool.Category
	open, closed string // ids
}

func newShelf(t *testing.T, db execer, c tool.Category) shelf {
	t.Helper()
	addAgent(t, db, "owner", "reader", "other")
	who := tooltest.Who("owner")
	keep := func(content, tag string) string {
		return tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": content, "tags": []string{tag}}).MemoryID
	}
	s := shelf{c: c, open: keep("the OPENMARK launch succeeded in the harbour on Friday at noon", "Öffentlich")}
	s.closed = keep("on Friday at noon the OPENMARK launch succeeded in the harbour CLOSEDMARK", "private")
	for _, f := range []struct{ object, from, tag string }{{"CLOSEDMARK", "2020-01-01", "private"}, {"OPENMARK", "2022-01-01", "öffentlich"}} {
		tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": "harbour master " + f.object, "tags": []string{f.tag},
			"subject": "harbour", "predicate": "master", "object": f.object, "valid_from": f.from})
	}
	return s
}

// ask calls every tool that reads another's memories and gives all that it
// said.
func (s shelf) ask(t *testing.T, agent, owner string) (answers map[string]string, faults map[string]fault.Reason) {
	t.Helper()
	answers, faults = map[string]string{}, map[string]fault.Reason{}
	for name, call := range map[string]struct {
		tool string
		args map[string]any
	}{
		"search":          {"memory_search", map[string]any{"query": "harbour launch", "limit": 100}},
		"search latest":   {"memory_search", map[string]any{"query": "", "limit": 100}},
		"search tag":      {"memory_search", map[string]any{"query": "", "tags": []string{"private"}}},
		"search filtered": {"memory_search", map[string]any{"query": "harbour", "since": "2000-01-01"}},
		"by layer":        {"memory_search", map[string]any{"query": "harbour", "layer": "episodic"}},
		"read open":       {"memory_read", map[string]any{"memory_id": s.open}},
		"read closed":     {"memory_read", map[string]any{"memory_id": s.closed}},
		"fetch":           {"memory_fetch_batch", map[string]any{"ids": []string{s.open, s.closed}}},
		"history":         {"memory_get_history", map[string]any{"subject": "harbour", "predicate": "master"}},
		"then":            {"memory_get_at", map[string]any{"subject": "harbour", "predicate": "master", "at": "2021-01-01"}},
		"now":             {"memory_get_at", map[string]any{"subject": "harbour", "predicate": "master", "at": "2023-01-01"}},
	} {
		if owner != "" {
			call.args["agent_id"] = owner
		}
		args, err := json.Marshal(call.args)
		if err != nil {
			t.Fatal(err)
		}
		out := tooltest.Call(t, s.c, tooltest.Who(agent), call.tool, string(args))
		switch {
		case out.Fault != nil:
			faults[name] = out.Fault.Reason
		case out.Invalid != nil:
			t.Fatalf("%s: %v", name, out.Invalid)
		default:
			answers[name] = string(out.OK)
		}
	}
	return answers, faults
}

func (s shelf) wantNothing(t *testing.T, agent, owner string) {
	t.Helper()
	answers, faults := s.ask(t, agent, owner)
	for name, reason := range faults {
		if reason != "not_shared" {
			t.Errorf("%s: %s, want not_shared", name, reason)
		}
	}
	if len(answers) > 0 {
		t.Errorf("answered without a share: %v", answers)
	}
}

// A grant is the only way to another's memories, and every tool that reads
// keeps to it.
func TestShare(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	s := newShelf(t, db, memory.NewHybrid(db, clock, topics{model: "m"}))

	t.Run("MEM-13 nothing without a share", func(t *testing.T) {
		s.wantNothing(t, "reader", "owner")
		s.wantNothing(t, "reader", "nobody") // says the same of one that does not exist
	})
	t.Run("all", func(t *testing.T) {
		share(t, db, "owner", "reader", "")
		answers, faults := s.ask(t, "reader", "owner")
		if len(faults) > 0 {
			t.Errorf("refused: %v", faults)
		}
		mine, _ := s.ask(t, "owner", "")
		for name, answer := range answers {
			if answer != mine[name] {
				t.Errorf("%s: the reader is told\n%s\nand the owner\n%s", name, answer, mine[name])
			}
		}
	})
	t.Run("only those with a tag", func(t *testing.T) {
		share(t, db, "owner", "reader", "", "ÖFFENTLICH")
		answers, faults := s.ask(t, "reader", "owner")
		if len(faults) != 1 || faults["read closed"] != fault.NotFound {
			t.Errorf("refused: %v", faults)
		}
		for name, answer := range answers {
			if strings.Contains(answer, "CLOSEDMARK") || strings.Contains(strings.ReplaceAll(answer, `"missing_ids":["`+s.closed, ""), s.closed) {
				t.Errorf("%s tells of what is not shared: %s", name, answer)
			}
			if hides := name == "search tag" || name == "then"; strings.Contains(answer, "OPENMARK") == hides {
				t.Errorf("%s: %s", name, answer)
			}
		}
	})
	t.Run("no score tells what is not shared", func(t *testing.T) {
		for i := range 200 {
			store(t, s.c, "owner", fmt.Sprintf("number %d of the SECRETWORD notes", i), "private")
		}
		score := func(word string) float64 {
			got := tooltest.OK[results](t, s.c, tooltest.Who("reader"), "memory_search", map[string]any{"query": "launch " + word, "agent_id": "owner"})
			if len(got.Memories) == 0 {
				t.Fatalf("found %+v", got.Memories)
			}
			return got.Memories[0].Score
		}
		if known, unknown := score("SECRETWORD"), score("NOSUCHWORD"); known != unknown {
			t.Errorf("a word of hidden memories makes a score of %v, one of none %v", known, unknown)
		}
	})
	t.Run("nothing else widens", func(t *testing.T) {
		s.wantNothing(t, "other", "owner")  // a share is one reader's
		s.wantNothing(t, "owner", "reader") // and goes one way
		answers, _ := s.ask(t, "reader", "")
		for name, answer := range answers {
			if strings.Contains(answer, "MARK") {
				t.Errorf("%s finds another's memories without naming their owner: %s", name, answer)
			}
		}
		for _, write := range []string{"memory_store", "memory_search_by_layer", "memory_successful_conversations", "memory_improve", "user_profile_get", "session_restore_context"} {
			if out := tooltest.Call(t, s.c, tooltest.Who("reader"), write, `{"content":"x","user_id":"u","query":"x","topic":"x","layer":"semantic","agent_id":"owner"}`); out.Invalid == nil {
				t.Errorf("%s takes an agent_id", write)
			}
		}
	})
	t.Run("it ends", func(t *testing.T) {
		share(t, db, "owner", "reader", "2026-12-01T12:00:00Z")
		s.wantNothing(t, "reader", "owner")
	})
	t.Run("the refusal names those who share", func(t *testing.T) {
		share(t, db, "owner", "reader", "")
		f := tooltest.Fault(t, s.c, tooltest.Who("reader"), "memory_search", `{"query":"x","agent_id":"other"}`, "not_shared")
		if !strings.Contains(f.Message, "these do: owner") {
			t.Errorf("got %q", f.Message)
		}
	})
}
