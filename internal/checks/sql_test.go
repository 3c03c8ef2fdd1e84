package checks

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/postgres/postgrestest"
)

var agentArgument = regexp.MustCompile(`@agent\b`)

// TestStatements prepares every statement against the migrated schema, so a
// misspelt column fails here and not in front of a user; and every statement
// of a category is bound to the caller's agent, or says why not.
func TestStatements(t *testing.T) {
	db := postgrestest.New(t)
	var pgvector bool
	if err := db.QueryRow(t.Context(), `select to_regtype('vector') is not null`).Scan(&pgvector); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range tracked(t) {
		if filepath.Ext(name) != ".sql" || strings.HasPrefix(name, "internal/postgres/migrate/") {
			continue
		}
		checked++
		text := read(t, name)
		if strings.HasPrefix(text, "-- pgvector: ") && !pgvector {
			t.Logf("%s is not prepared: the server lacks pgvector; make pgvector runs it", name)
			continue
		}
		sql, _, err := pgx.NamedArgs{}.RewriteQuery(t.Context(), nil, text, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		savepoint, err := db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := savepoint.Prepare(t.Context(), name, sql); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := savepoint.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "internal/category/") && !agentArgument.MatchString(text) && !strings.HasPrefix(text, "-- all agents: ") {
			t.Errorf("%s is not bound to @agent; if it must not be, begin the file with \"-- all agents: <why>\"", name)
		}
	}
	if checked == 0 {
		t.Error("no statements found")
	}
}
