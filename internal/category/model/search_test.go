package model_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/fault"
	"pawgate/internal/tool/tooltest"
)

func TestModelSearch(t *testing.T) {
	t.Parallel()
	type answer struct {
		Repositories []struct {
			Repo       string
			Parameters int64
			Best       string `json:"best_filename"`
			Files      []struct {
				Filename     string
				Quantization string
				Parts        int
				Fits         *bool
			}
		}
		Room   struct{ How string } `json:"room_for_model"`
		Unread []string
	}
	got := tooltest.OK[answer](t, setupAt(t, newHub(t)).cat, tooltest.Who("a"), "model_search", `{"query":"tiny"}`)
	if len(got.Repositories) != 1 || got.Room.How == "" || len(got.Unread) != 1 || got.Unread[0] != "org/broken" { // one is broken, one has no models
		t.Fatalf("got %+v", got)
	}
	r := got.Repositories[0]
	if r.Best != "tiny-Q4_K_M.gguf" || r.Parameters != 1e9 {
		t.Errorf("repository: %+v", r)
	}
	var files []string
	for _, f := range r.Files {
		files = append(files, fmt.Sprint(f.Filename, " ", f.Quantization, " ", f.Parts, " ", *f.Fits))
	}
	want := []string{"tiny.gguf  1 true", "tiny-IQ2_XXS.gguf IQ2_XXS 1 true", "tiny-Q4_K_M.gguf Q4_K_M 1 true",
		"tiny-F16.gguf F16 1 false", "BF16/tiny-BF16-00001-of-00002.gguf BF16 2 false"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestModelSearch_nothing(t *testing.T) {
	t.Parallel()
	b := setupAt(t, newHub(t))
	if out := tooltest.Call(t, b.cat, tooltest.Who("a"), "model_search", `{"query":"zzz"}`); !strings.Contains(string(out.OK), `"repositories":[]`) {
		t.Errorf("got %s %+v", out.OK, out.Fault)
	}
	tooltest.Invalid(t, b.cat, tooltest.Who("a"), "model_search", `{}`, "query")
	tooltest.Invalid(t, b.cat, tooltest.Who("a"), "model_search", `{"query":"x","limit":11}`, "limit")
}

// In the system before this one a hub that was away looked like a hub that
// has nothing.
func TestModelSearch_hub_away(t *testing.T) {
	t.Parallel()
	tooltest.Fault(t, setup(t, "ok").cat, tooltest.Who("a"), "model_search", `{"query":"tiny"}`, fault.Unavailable)
}
