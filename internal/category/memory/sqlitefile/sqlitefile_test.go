package sqlitefile_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/category/memory/sqlitefile"
)

func open(t testing.TB, path string) *sqlitefile.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := sqlitefile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rows(t testing.TB, f *sqlitefile.File, table string) []sqlitefile.Row {
	t.Helper()
	var all []sqlitefile.Row
	for row, err := range f.Rows(table) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row)
	}
	return all
}

// TestTypes reads a file that SQLite wrote, with every storage class and
// integers of every width.
func TestTypes(t *testing.T) {
	t.Parallel()
	f := open(t, "testdata/types.db")
	columns, ok := f.Columns("ODD NAME")
	if diff := cmp.Diff([]string{"id", "a,b", "real", "blob"}, columns); !ok || diff != "" {
		t.Fatalf("columns (-want +got):\n%s", diff)
	}
	got := rows(t, f, "odd name")
	if len(got) != 30 {
		t.Fatalf("%d rows, want 30", len(got))
	}
	if got[0]["id"] != int64(1) || got[0]["a,b"] != "0" || got[2]["real"] != 1.5 {
		t.Errorf("first row %v", got[0])
	}
	last := got[len(got)-1]
	if last["a,b"] != int64(-9223372036854775808) || last["real"] != nil || len(last["blob"].([]byte)) != 256 {
		t.Errorf("last row %v", last)
	}
	if rows(t, f, "none") != nil || rows(t, f, "w") != nil || rows(t, f, "nowhere") != nil {
		t.Error("an empty, unsupported or unknown table has rows")
	}
	for range f.Rows("odd name") {
		break // a caller may stop at any row
	}
}

// TestTree reads interior pages, overflow pages and columns added later, from
// a file with small pages.
func TestTree(t *testing.T) {
	t.Parallel()
	got := rows(t, open(t, "../testdata/duduclaw.db"), "memories")
	if len(got) != 51 {
		t.Fatalf("%d rows, want 51", len(got))
	}
	if long := got[7]["content"].(string); long != "long "+strings.Repeat("word ", 2000) {
		t.Errorf("the overflowing row has %d bytes", len(long))
	}
	if got[0]["content"] != "使用者偏好喝綠茶不喝咖啡" || got[2]["importance"] != 9.5 || got[0]["origin"] != nil {
		t.Errorf("first row %v", got[0])
	}
}

func TestBroken(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"empty": nil, "short": []byte("SQLite format 3\x00"), "another": bytes.Repeat([]byte("x"), 4096),
		"page size": append([]byte("SQLite format 3\x00\x00\x07"), make([]byte, 200)...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := sqlitefile.Open(bytes.NewReader(data), int64(len(data))); !errors.Is(err, sqlitefile.ErrFormat) {
				t.Errorf("error %v, want ErrFormat", err)
			}
		})
	}
}

// TestDamaged changes single bytes: whatever comes of it, it ends.
func TestDamaged(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 5))
	for _, path := range []string{"testdata/types.db", "../testdata/duduclaw.db"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 500 {
			damaged := bytes.Clone(data)
			for range 1 + random.IntN(8) {
				damaged[random.IntN(len(damaged))] = byte(random.IntN(256))
			}
			readAll(damaged)
		}
	}
}

func readAll(data []byte) {
	file, err := sqlitefile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return
	}
	for _, table := range []string{"memories", "odd name", "none"} {
		for _, err := range file.Rows(table) {
			if err != nil {
				break
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, path := range []string{"testdata/types.db", "../testdata/duduclaw.db"} {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 4096)])
	}
	f.Fuzz(func(_ *testing.T, data []byte) { readAll(data) })
}
