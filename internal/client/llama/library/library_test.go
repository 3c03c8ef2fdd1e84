package library_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/client/llama/library"
	"pawgate/internal/fault"
)

// folder is a library with files, and a secret beside it that must stay out of
// reach.
func folder(t *testing.T, files ...string) *library.Library {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "models")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, "../secret.gguf") {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("12345"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l, err := library.OpenModels(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestList(t *testing.T) {
	t.Parallel()
	l := folder(t, "b.gguf", "a-00001-of-00002.gguf", "a-00002-of-00002.gguf", "c-00002-of-00003.gguf", "d.partial", ".e.gguf", "f.txt", ".gguf")
	if err := os.Symlink("../secret.gguf", filepath.Join(l.Dir(), "link.gguf")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(l.Dir(), "folder.gguf"), 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := l.List()
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		ID       string
		Files    string
		Size     int64
		Complete bool
	}
	var got []row
	for _, e := range entries {
		got = append(got, row{e.ID, strings.Join(e.Files, " "), e.Size, e.Complete()})
	}
	want := []row{
		{"a", "a-00001-of-00002.gguf a-00002-of-00002.gguf", 10, true},
		{"b", "b.gguf", 5, true},
		{"c", "c-00002-of-00003.gguf", 5, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	l := folder(t, "b.gguf", "a-00001-of-00001.gguf", "c-00002-of-00003.gguf")
	if err := os.Symlink("../secret.gguf", filepath.Join(l.Dir(), "link.gguf")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, id, want string }{
		{"by_id", "b", "b"},
		{"by_file", "b.gguf", "b"},
		{"by_part", "a-00001-of-00001.gguf", "a"},
		{"missing", "x", "not_found"},
		{"part_missing", "c", "conflict"},
		{"INF-01_traversal", "../../x", "invalid"},
		{"INF-01_inner_traversal", "a/../../b", "invalid"},
		{"INF-01_backslash", `..\x`, "invalid"},
		{"INF-01_absolute", "/etc/passwd", "invalid"},
		{"INF-01_drive", "c:x", "invalid"},
		{"INF-01_up", "..", "invalid"},
		{"INF-01_symlink", "link", "not_found"},
		{"INF-01_neighbour", "../secret", "invalid"},
		{"INF-01_encoded", "%2e%2e%2fsecret", "invalid"},
		{"INF-01_option", "-m", "invalid"},
		{"INF-01_hidden", ".e", "invalid"},
		{"INF-01_long", strings.Repeat("x", 201), "invalid"},
		{"INF-01_empty", "", "invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, err := l.Find("model_id", c.id)
			got := e.ID
			if f, ok := fault.Of(err); ok {
				got = string(f.Reason)
			} else if i, ok := fault.InvalidOf(err); ok && i.Parameter == "model_id" {
				got = "invalid"
			} else if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("find %q: got %s, want %s", c.id, got, c.want)
			}
			if err != nil && strings.Contains(err.Error(), l.Dir()) {
				t.Errorf("the error shows the folder: %v", err)
			}
		})
	}
}

// A file that became a link after it was listed is not handed out.
func TestPath_refuses_a_link(t *testing.T) {
	t.Parallel()
	l := folder(t, "b.gguf")
	if _, err := l.Path("b.gguf"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(l.Dir(), "b.gguf")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../secret.gguf", filepath.Join(l.Dir(), "b.gguf")); err != nil {
		t.Fatal(err)
	}
	if path, err := l.Path("b.gguf"); err == nil {
		t.Errorf("got %s, want an error", path)
	}
}
