package catalog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/catalog"
	"pawgate/internal/category"
)

// TestFilesAreFresh renders every category's table and compares it with its
// file. UPDATE=1 (make generate) writes the files instead.
func TestFilesAreFresh(t *testing.T) {
	want := map[string]bool{}
	for _, c := range category.All(category.Deps{}) {
		file := c.Name + ".json"
		want[file] = true
		encoded, err := catalog.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(file, encoded, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%v; run make generate", err)
		}
		if diff := cmp.Diff(string(encoded), string(have)); diff != "" {
			t.Errorf("%s is stale; run make generate (-want +got):\n%s", file, diff)
		}
	}
	files, err := filepath.Glob("*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !want[file] {
			t.Errorf("%s belongs to no category; remove it", file)
		}
	}
}
