package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/client/llama/gguf/gguftest"
	"pawgate/internal/tool/tooltest"
)

type listAnswer struct {
	Models []struct {
		ModelID      string `json:"model_id"`
		State        string
		SizeBytes    int64 `json:"size_bytes"`
		Architecture string
		Parameters   int64
		Quantization string
		Fits         *bool
		Problem      string
		Memory       struct {
			Total int64 `json:"total_bytes"`
			How   string
		} `json:"memory_at_4096_tokens"`
	}
	NextCursor string `json:"next_cursor"`
	Hint       string
}

func TestModelList(t *testing.T) {
	t.Parallel()
	b := setup(t, "ok").tiny(t, "tiny")
	tiny := gguftest.Tiny()
	b.put(t, "cut.gguf", tiny[:len(tiny)-512])
	b.put(t, "html.gguf", []byte("<html>404</html>"))
	b.put(t, "split-00001-of-00002.gguf", tiny)
	b.put(t, "two-00001-of-00002.gguf", tiny)
	b.put(t, "two-00002-of-00002.gguf", tiny)
	b.put(t, "half.gguf.part", tiny)
	got := tooltest.OK[listAnswer](t, b.cat, tooltest.Who("a"), "model_list", `{}`)
	problems, parameters := map[string]string{}, map[string]int64{}
	for _, m := range got.Models {
		problems[m.ModelID], parameters[m.ModelID] = m.Problem, m.Parameters
		if m.State != "unloaded" {
			t.Errorf("%s is %s", m.ModelID, m.State)
		}
	}
	want := map[string]string{
		"tiny": "", "two": "", "cut": "it is cut off: its tensors reach beyond its end; download it again",
		"html":  "it does not begin as one; download it again",
		"split": "parts of it are missing; download it again",
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if parameters["tiny"] != 2112 || parameters["two"] != 2*2112 {
		t.Errorf("parameters: %v", parameters)
	}
	for _, m := range got.Models {
		if m.ModelID == "tiny" && (m.Architecture != "llama" || m.Quantization != "Q8_0" || m.Fits == nil || !*m.Fits ||
			!strings.Contains(m.Memory.How, "4096 tokens × 512 B")) {
			t.Errorf("tiny: %+v", m)
		}
	}
}

func TestModelList_empty(t *testing.T) {
	t.Parallel()
	b := setup(t, "ok")
	out := tooltest.Call(t, b.cat, tooltest.Who("a"), "model_list", `{}`)
	var got struct {
		Models json.RawMessage
		Hint   string
	}
	if err := json.Unmarshal(out.OK, &got); err != nil || string(got.Models) != "[]" || !strings.Contains(got.Hint, "model_download") {
		t.Errorf("got %s", out.OK)
	}
}

func TestModelList_pages(t *testing.T) {
	t.Parallel()
	b := setup(t, "ok").tiny(t, "a", "b", "c")
	var ids []string
	args := map[string]any{"limit": 2}
	for range 3 {
		page := tooltest.OK[listAnswer](t, b.cat, tooltest.Who("a"), "model_list", args)
		for _, m := range page.Models {
			ids = append(ids, m.ModelID)
		}
		if page.NextCursor == "" {
			break
		}
		args["cursor"] = page.NextCursor
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
}

func TestModelList_refuses(t *testing.T) {
	t.Parallel()
	tooltest.Invalid(t, setup(t, "ok").cat, tooltest.Who("a"), "model_list", `{"limit":0.5}`, "limit")
}
