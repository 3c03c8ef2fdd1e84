package roster_test

import (
	"strings"
	"testing"

	"pawgate/internal/fault"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/roster"
)

func TestCovered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		others, pattern string
		want            bool
	}{
		{"*", "*", true}, {"*", "memory_*", true}, {"*", "memory_store", true},
		{"memory_*", "memory_*", true}, {"memory_*", "memory_store", true}, {"memory_*", "memory_store_*", true},
		{"memory_*", "*", false}, {"memory_store_*", "memory_*", false}, {"memory_*", "memory", false}, {"memory_*", "odoo_*", false},
		{"memory_store", "memory_store", true}, {"memory_store", "memory_store_*", false}, {"memory_store", "memory_*", false}, {"memory_store", "memory_stor", false},
		{"", "memory_store", false}, {"odoo_* memory_store", "memory_store", true},
		// Two halves are not the whole, even if no tool lies between.
		{"memory_a_* memory_b_*", "memory_*", false},
	} {
		if got := roster.Covered(strings.Fields(c.others), c.pattern); got != c.want {
			t.Errorf("%q within %q: %v, want %v", c.pattern, c.others, got, c.want)
		}
	}
}

func TestCheckNewID(t *testing.T) {
	t.Parallel()
	tx := postgrestest.New(t)
	if _, err := tx.Exec(t.Context(), `insert into agents (id) values ('sales-bot'), ('worker-1'), ('modern'), ('wave')`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id   string
		want string // a fault's reason, or invalid
	}{
		{"clerk", ""}, {"worker-2", ""}, {"worker-11", ""}, {"sales", ""}, {"sales-bots", ""},
		{"sales-bot", "conflict"}, {"sales_bot", "conflict"}, {"sa1es-bot", "conflict"}, {"sales-b0t", "conflict"}, {"saies-bot", "conflict"},
		{"worker-l", "conflict"}, {"worker_1", "conflict"}, {"modem", "conflict"}, {"vvave", "conflict"},
		{"", "invalid"}, {"-x", "invalid"}, {"_x", "invalid"}, {"X", "invalid"}, {"a b", "invalid"}, {"a/b", "invalid"}, {"..", "invalid"}, {".", "invalid"},
		{"a.b", "invalid"}, {"a\x00", "invalid"}, {"a\n", "invalid"}, {"ａ", "invalid"}, {strings.Repeat("a", 65), "invalid"}, {"all", "invalid"}, {"system", "invalid"},
		{strings.Repeat("a", 64), ""},
	} {
		err := roster.CheckNewID(t.Context(), tx, "name", c.id)
		got := ""
		if f, ok := fault.Of(err); ok {
			got = string(f.Reason)
		} else if _, ok := fault.InvalidOf(err); ok {
			got = "invalid"
		} else if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.id, got, c.want)
		}
	}
}
