package memory_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/category/memory"
	"pawgate/internal/category/memory/sqlitefile"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
)

func export(t testing.TB, db postgres.DB, agent string) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := memory.Export(t.Context(), db, agent, &out, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func importText(t testing.TB, db postgres.DB, agent, text string, dry bool) memory.Imported {
	t.Helper()
	done, err := memory.Import(t.Context(), db, agent, strings.NewReader(text), memory.ImportOptions{DryRun: dry, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestExportImport(t *testing.T) {
	db, c, who := begin(t, "a", "b", "c")
	first := store(t, c, "a", "The team moved the launch to Friday in Osaka", "work")
	store(t, c, "a", "In Osaka the team moved the launch to Friday")
	tooltest.OK[stored](t, c, who, "memory_store", map[string]any{"content": "so pack on Thursday", "derived_from": []string{first}, "importance": 7})
	storeFact(t, c, "Ann", "lives in", fact{"Rome", "2020-01-01", ""})
	storeFact(t, c, "Ann", "lives in", fact{"Oslo", "2022-01-01", ""})
	tooltest.OK[map[string]any](t, c, who, "memory_alias_add", `{"canonical":"Robert","alias":"Bob"}`)
	if _, err := db.Exec(t.Context(), `update memories set quarantined = true where content like 'so pack%'`); err != nil {
		t.Fatal(err)
	}
	store(t, c, "b", "of another")
	original := export(t, db, "a")

	t.Run("MEM-13 only the agent's own", func(t *testing.T) {
		if strings.Contains(original, "of another") {
			t.Error("another agent's memory is exported")
		}
	})
	t.Run("dry run", func(t *testing.T) {
		got := importText(t, db, "c", original, true)
		if diff := cmp.Diff(memory.Imported{Read: 6, Stored: 5, Aliases: 1, Skipped: map[string]int{}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if export(t, db, "c") != "" {
			t.Error("the dry run kept something")
		}
	})
	t.Run("there and back", func(t *testing.T) {
		importText(t, db, "c", original, false)
		if diff := cmp.Diff(original, export(t, db, "c")); diff != "" {
			t.Errorf("(-exported +exported again):\n%s", diff)
		}
		if got := contents(t, c, "c", "launch Friday"); len(got) != 1 {
			t.Errorf("found %q", got)
		}
		if got := contents(t, c, "c", "pack"); len(got) != 0 {
			t.Errorf("the quarantined memory is found: %q", got)
		}
	})
	t.Run("a large memory has a page of its own", func(t *testing.T) {
		large := strings.Repeat("日本 ", 1<<18)
		store(t, c, "b", large)
		store(t, c, "b", large+" more")
		first, err := memory.ExportPage(t.Context(), db, "b", 0)
		if err != nil || first.Memories != 2 { // what comes before it, and it
			t.Fatalf("%d memories, error %v", first.Memories, err)
		}
		second, err := memory.ExportPage(t.Context(), db, "b", first.Next)
		if err != nil || second.Memories != 1 || second.Next <= first.Next {
			t.Errorf("%d memories, next %d after %d, error %v", second.Memories, second.Next, first.Next, err)
		}
		if last, err := memory.ExportPage(t.Context(), db, "b", second.Next); err != nil || last.Memories != 0 || last.Next != 0 {
			t.Errorf("after the last: %+v, error %v", last, err)
		}
	})
	t.Run("again stores nothing twice", func(t *testing.T) {
		got := importText(t, db, "c", original, false)
		if got.Stored != 0 || got.Known != 5 {
			t.Errorf("got %+v", got)
		}
		wantCount(t, db, `select count(*) from memories where agent_id = 'c'`, 5)
	})
}

func TestImportSkips(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	addAgent(t, db, "a")
	var progress int
	lines := strings.Join([]string{
		`{"type":"memory","content":"only content"}`,
		``,
		`{"type":"memory","content":"only content"}`,
		`{"type":"memory","content":"  "}`,
		`{"type":"memory","content":"x","layer":"deep"}`,
		`{"type":"memory","content":"x\u0000y"}`,
		`{"type":"memory","content":"` + strings.Repeat("x", 1<<20+1) + `"}`,
		`{"type":"memory","content":"trusts itself","origin":"channel","origin_trust":1,"importance":99,"created_at":"2020-01-01T00:00:00Z"}`,
		`{"type":"memory","content":"a","origin":"x\u0000y"}`,
		`{"type":"memory","content":"b","superseded_by":"x\u0000y"}`,
		`{"type":"memory","content":"c","id":"` + strings.Repeat("x", 129) + `"}`,
		`{"type":"memory","content":"d","subject":"` + strings.Repeat("x", 4000) + `","predicate":"p","object":"o"}`,
		`{"type":"memory","content":"e","tags":["` + strings.Repeat("x", 65) + `"]}`,
		`{"type":"memory","content":"f","derived_from":["` + strings.Repeat(`x","`, 100) + `x"]}`,
		`{"type":"memory","content":"g","created_at":"0000-01-01T00:00:00Z"}`,
		`{"type":"memory","content":"counted often","times_stored":99999999999,"marks":["success","made up"],"created_at":"2020-01-01T00:00:00Z"}`,
		`{"type":"alias","canonical":"x","alias":"X"}`,
		`{"type":"song"}`,
		`{broken`,
		strings.Repeat("[", 17<<20),
	}, "\n")
	got, err := memory.Import(t.Context(), db, "a", strings.NewReader(lines),
		memory.ImportOptions{Now: noon, Progress: func(memory.Imported) { progress++ }})
	if err != nil {
		t.Fatal(err)
	}
	want := memory.Imported{Read: 19, Stored: 3, Known: 1, Skipped: map[string]int{
		"an origin that is no name": 1, "an id longer than 128 characters": 1, "a fact with a part that is too long": 1,
		"a tag longer than 64 characters": 1, "derived from more than 100 memories": 1, "a time before the year 1": 1,
		"blank content": 1, "unknown layer": 1, "a NUL character": 2, "content longer than 1048576 characters": 1,
		"an alias without two names": 1, "neither a memory nor an alias": 1, "not valid JSON": 2,
	}}
	if diff := cmp.Diff(want, got); diff != "" || progress == 0 {
		t.Errorf("progress %d (-want +got):\n%s", progress, diff)
	}
	exported := export(t, db, "a")
	if !strings.Contains(exported, `"origin_trust":0.3`) || !strings.Contains(exported, `"importance":10`) {
		t.Errorf("trust and importance are not bounded: %s", exported)
	}
}

func TestImportDuDuClaw(t *testing.T) {
	db, c, _ := begin(t, "a")
	run := func(owner string, dry bool) memory.Imported {
		t.Helper()
		var lines strings.Builder
		converted, err := memory.ReadDuDuClaw("testdata/duduclaw.db", owner, func(line []byte) error {
			lines.Write(append(line, '\n'))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		done := importText(t, db, "a", lines.String(), dry)
		done.Read = converted.Read
		for reason, n := range converted.Skipped {
			done.Skipped[reason] += n
		}
		return done
	}
	want := memory.Imported{Read: 55, Stored: 46, Aliases: 2, Skipped: map[string]int{
		"of another owner": 4, "blank content": 1, "no readable time": 1, "archived: forgotten on purpose": 1,
	}}
	if diff := cmp.Diff(want, run("dudu", true)); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	wantCount(t, db, `select count(*) from memories`, 0)
	if diff := cmp.Diff(want, run("dudu", false)); diff != "" {
		t.Errorf("one owner (-want +got):\n%s", diff)
	}
	all := run("", false)
	if all.Stored != 2 || all.Known != 47 || all.Aliases != 3 {
		t.Errorf("all owners: %+v", all) // "Met Anna for LUNCH" was known from the other key
	}
	for query, found := range map[string]int{"綠茶": 1, "numbered note 7": 1, "held back": 0, "forgotten": 0, "bob": 0, "timezone": 1} {
		got := contents(t, c, "a", query)
		if query == "numbered note 7" {
			got = got[:1]
		}
		if len(got) != found {
			t.Errorf("search %q found %q, want %d", query, got, found)
		}
	}
	if got := objectAt(t, c, "user:u1", "timezone", "2026-01-15"); got != "Europe/Berlin" {
		t.Errorf("in January it was %q", got)
	}
	if got := objectAt(t, c, "user:u1", "timezone", "2026-03-15"); got != "Asia/Taipei" {
		t.Errorf("in March it was %q", got)
	}
	got := tooltest.OK[struct {
		Layer       string
		Importance  float64
		Tags        []string
		CreatedAt   time.Time `json:"created_at"`
		OriginTrust float64   `json:"origin_trust"`
	}](t, c, tooltest.Who("a"), "memory_read", `{"memory_id":"m_dudu_0b6f1d5e-0003"}`)
	if got.Importance != 9.5 || !cmp.Equal(got.Tags, []string{"work", "urgent"}) || got.CreatedAt.Year() != 2026 || got.OriginTrust < 0.69 || got.OriginTrust > 0.71 {
		t.Errorf("got %+v", got)
	}
}

// What DuDuClaw took back by its origin surfaces in no tool; what was replaced
// there is the history of its fact.
func TestImportDuDuClawTakenBack(t *testing.T) {
	db, c, who := begin(t, "a")
	for _, row := range []sqlitefile.Row{
		{"id": "taken", "content": "the vault opens on Sunday", "invalidated_at": "2026-02-01T00:00:00Z"},
		{"id": "fact", "content": "Ann lives in Rome", "subject": "Ann", "predicate": "lives_in", "object": "Rome", "valid_from": "2024-01-01T00:00:00Z",
			"invalidated_at": "2025-01-01T00:00:00Z"},
		{"id": "old", "content": "Bob lives in Oslo", "subject": "Bob", "predicate": "lives_in", "object": "Oslo", "valid_from": "2024-01-01T00:00:00Z",
			"invalidated_at": "2025-01-01T00:00:00Z", "superseded_by": "new"},
	} {
		row["agent_id"], row["timestamp"], row["valid_until"] = "dudu", "2024-01-01T00:00:00Z", row["invalidated_at"]
		line, err := memory.FromDuDuClaw(row)
		if err != nil {
			t.Fatal(err)
		}
		if done := importText(t, db, "a", string(line)+"\n", false); done.Stored != 1 {
			t.Fatalf("%s: %+v", line, done)
		}
	}
	for _, id := range []string{"m_dudu_taken", "m_dudu_fact"} {
		tooltest.Fault(t, c, who, "memory_read", map[string]any{"memory_id": id}, "not_found")
	}
	if h, _ := historyOf(t, c, "Ann", "lives_in"); len(h.Records) != 0 {
		t.Errorf("taken back, but in the history: %+v", h.Records)
	}
	if got := objectAt(t, c, "Bob", "lives_in", "2024-06-01"); got != "Oslo" {
		t.Errorf("replaced, and in its time it was %q", got)
	}
}

func TestImportDuDuClawRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	busy := write("busy.db", "SQLite format 3\x00")
	write("busy.db-wal", "changes")
	for name, path := range map[string]string{
		"no file": filepath.Join(dir, "none.db"), "no database": write("text.db", strings.Repeat("hello ", 100)),
		"no table": "sqlitefile/testdata/types.db", "a log": busy,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := memory.ReadDuDuClaw(path, "", func([]byte) error { return nil }); err == nil {
				t.Error("want an error")
			}
		})
	}
}
