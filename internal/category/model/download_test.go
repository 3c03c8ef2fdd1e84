package model_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

type downloadAnswer struct {
	State, Revision, Hint string
	ModelID               string `json:"model_id"`
	Done                  int64  `json:"done_bytes"`
	Total                 int64  `json:"total_bytes"`
	Percent               float64
}

const tinyFile = `"repo":"org/tiny-GGUF","filename":"tiny.gguf"`

func TestModelDownload(t *testing.T) {
	t.Parallel()
	b := setupAt(t, newHub(t))
	got := tooltest.OK[downloadAnswer](t, b.cat, tooltest.Who("a"), "model_download", `{`+tinyFile+`}`)
	if got.State != "downloaded" || got.ModelID != "tiny" || got.Revision != commit || got.Percent != 100 {
		t.Errorf("got %+v", got)
	}
	list := tooltest.OK[listAnswer](t, b.cat, tooltest.Who("a"), "model_list", `{}`)
	if len(list.Models) != 1 || list.Models[0].ModelID != "tiny" || list.Models[0].Problem != "" {
		t.Errorf("listed: %+v", list)
	}
	if again := tooltest.OK[downloadAnswer](t, b.cat, tooltest.Who("a"), "model_download", `{`+tinyFile+`}`); again.State != "downloaded" {
		t.Errorf("again: %+v", again)
	}
}

func TestModelDownload_goes_on_after_the_call(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.hold = make(chan struct{})
	b := setupAt(t, h)
	who := tooltest.Who("a")
	got := tooltest.OK[downloadAnswer](t, b.cat, who, "model_download", `{`+tinyFile+`,"wait_seconds":0}`)
	if got.State != "downloading" || !strings.Contains(got.Hint, "call again") {
		t.Errorf("begun: %+v", got)
	}
	if list := tooltest.OK[listAnswer](t, b.cat, who, "model_list", `{}`); len(list.Models) != 0 {
		t.Errorf("INF-03 half a model is listed: %+v", list)
	}
	close(h.hold)
	if got := tooltest.OK[downloadAnswer](t, b.cat, who, "model_download", `{`+tinyFile+`}`); got.State != "downloaded" {
		t.Errorf("in the end: %+v", got)
	}
}

func TestModelDownload_cancel(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.hold = make(chan struct{})
	b := setupAt(t, h)
	who := tooltest.Who("a")
	tooltest.OK[downloadAnswer](t, b.cat, who, "model_download", `{`+tinyFile+`,"wait_seconds":0}`)
	if got := tooltest.OK[downloadAnswer](t, b.cat, who, "model_download", `{`+tinyFile+`,"cancel":true}`); got.State != "cancelled" {
		t.Errorf("got %+v", got)
	}
	tooltest.Fault(t, b.cat, who, "model_download", `{`+tinyFile+`,"cancel":true}`, fault.NotFound)
	tooltest.Invalid(t, b.cat, who, "model_download", `{"repo":"x","filename":"tiny.gguf","cancel":true}`, "repo")
}

// A client that cancels its call cancels the download; one whose time is up
// does not.
func TestModelDownload_call_ends(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.hold = make(chan struct{})
	b := setupAt(t, h)
	table := tool.Assemble(b.cat)
	short, cancel := context.WithTimeout(t.Context(), answerMarginAndMore)
	defer cancel()
	if out := table.Call(short, tooltest.Who("a"), "model_download", []byte(`{`+tinyFile+`}`)); !strings.Contains(string(out.OK), `"state":"downloading"`) {
		t.Errorf("at its deadline: %s %+v", out.OK, out.Fault)
	}
	cancelled, stop := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, stop)
	if out := table.Call(cancelled, tooltest.Who("a"), "model_download", []byte(`{`+tinyFile+`}`)); out.Fault == nil || out.Fault.Reason != fault.Cancelled {
		t.Errorf("cancelled: %s %+v", out.OK, out.Fault)
	}
	tooltest.Fault(t, b.cat, tooltest.Who("a"), "model_download", `{`+tinyFile+`,"cancel":true}`, fault.NotFound)
}

// answerMarginAndMore is a deadline that leaves some time to wait.
const answerMarginAndMore = 1200 * time.Millisecond

func TestModelDownload_refuses(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := setupAt(t, h)
	for name, c := range map[string]struct{ args, parameter string }{
		"INF-01_B-66_traversal": {`{"repo":"org/tiny-GGUF","filename":"../tiny.gguf"}`, "filename"},
		"INF-01_B-66_dot":       {`{"repo":"org/tiny-GGUF","filename":".tiny.gguf"}`, "filename"},
		"INF-01_B-66_backslash": {`{"repo":"org/tiny-GGUF","filename":"a\\tiny.gguf"}`, "filename"},
		"INF-01_B-66_absolute":  {`{"repo":"org/tiny-GGUF","filename":"/etc/x.gguf"}`, "filename"},
		"no_model":              {`{"repo":"org/tiny-GGUF","filename":"README.md"}`, "filename"},
		"INF-01_repo":           {`{"repo":"../tiny","filename":"tiny.gguf"}`, "repo"},
		"repo_is_a_URL":         {`{"repo":"http://x/y","filename":"tiny.gguf"}`, "repo"},
		"revision":              {`{"repo":"org/tiny-GGUF","filename":"tiny.gguf","revision":"../x"}`, "revision"},
		"missing":               {`{"repo":"org/tiny-GGUF"}`, "filename"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tooltest.Invalid(t, b.cat, tooltest.Who("a"), "model_download", c.args, c.parameter)
		})
	}
	tooltest.Fault(t, b.cat, tooltest.Who("a"), "model_download", `{"repo":"org/tiny-GGUF","filename":"none.gguf"}`, fault.NotFound)
	tooltest.Fault(t, b.cat, tooltest.Who("a"), "model_download", `{"repo":"org/none","filename":"tiny.gguf"}`, fault.NotFound)
	tooltest.Fault(t, b.cat, tooltest.Who("a"), "model_download", `{"repo":"org/tiny-GGUF","filename":"tiny-F16.gguf","wait_seconds":30}`, fault.NotFound)
}

// A download never replaces a file, least of all that of a loaded model.
func TestModelDownload_INF_15_name_taken(t *testing.T) {
	t.Parallel()
	b := setupAt(t, newHub(t))
	b.put(t, "tiny.gguf", []byte("another"))
	tooltest.Fault(t, b.cat, tooltest.Who("a"), "model_download", `{`+tinyFile+`}`, fault.Conflict)
}

// Whoever listens to a call hears of the download's progress.
func TestModelDownload_reports(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	b := setupAt(t, h)
	var told []tool.Progress
	ctx := tool.WithProgress(t.Context(), func(p tool.Progress) { told = append(told, p) })
	out := tool.Assemble(b.cat).Call(ctx, tooltest.Who("a"), "model_download", []byte(`{`+tinyFile+`}`))
	if out.OK == nil || len(told) == 0 || told[0].Total <= 0 || !strings.Contains(told[0].Message, " a second") {
		t.Errorf("%s %+v, told %+v", out.OK, out.Fault, told)
	}
}
