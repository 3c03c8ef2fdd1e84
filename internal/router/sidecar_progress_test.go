package router

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/serve"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

// told runs a call of the write through a real sidecar and gives what it told.
func told(t *testing.T, b *sidecarBench, url string) (reports []tool.Progress, out tool.Outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	ctx = tool.WithProgress(ctx, func(p tool.Progress) { reports = append(reports, p) })
	out = b.backend(url, nil).Call(ctx, tooltest.Who("a"), b.write, []byte(`{"text":"hi"}`))
	return reports, out
}

func TestSidecarProgress(t *testing.T) {
	t.Parallel()
	b := newSidecarBench(t)
	type args struct {
		Text string `json:"text,omitempty" doc:"Said back"`
	}
	var late func(tool.Progress)
	b.category.Tools[1] = tool.Write("model_load", "Say it back, and count.", func(ctx context.Context, _ caller.Caller, a args) (args, error) {
		if late = tool.Listener(ctx); late != nil {
			late(tool.Progress{Done: 1, Total: 2, Message: "half\nway"})
			late(tool.Progress{Done: 2, Total: 2})
		}
		return a, nil
	})
	host, err := serve.NewHost(b.category, b.verify, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(serve.Handler(map[string]*serve.Host{"model": host}))
	t.Cleanup(server.Close)
	reports, out := told(t, b, server.URL)
	if diff := cmp.Diff([]tool.Progress{{Done: 1, Total: 2, Message: "half\nway"}, {Done: 2, Total: 2}}, reports); diff != "" || string(out.OK) != `{"text":"hi"}` {
		t.Errorf("%s %+v, reports (-want +got):\n%s", out.OK, out.Fault, diff)
	}
	late(tool.Progress{Done: 3}) // a handler that tells more after its end harms nobody
	if out, _ := b.call(t, b.backend(server.URL, nil), b.write, time.Second); string(out.OK) != `{"text":"hi"}` || late != nil {
		t.Errorf("nobody listens: %+v, told %v", out, late != nil)
	}
}

// A sidecar that breaks off after reports has not answered; one that knows
// nothing of reports has.
func TestSidecarProgress_answers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		media, body string
		reports     int
		want        fault.Reason
	}{
		"breaks off":             {tool.MediaLines, `{"progress":{"progress":1}}` + "\n", 1, fault.OutcomeUnknown},
		"breaks off in a line":   {tool.MediaLines, `{"progress":{"progress":1}}` + "\n" + `{"ok":{"te`, 1, fault.OutcomeUnknown},
		"a fault":                {tool.MediaLines, `{"progress":{"progress":1}}` + "\n" + `{"fault":{"error":"full","reason":"too_large"}}` + "\n", 1, fault.TooLarge},
		"no reports":             {tool.MediaLines, `{"ok":{}}` + "\n", 0, ""},
		"knows nothing of them":  {"application/json", `{"ok":{}}`, 0, ""},
		"reports without an end": {tool.MediaLines, strings.Repeat(`{"progress":{"progress":1,"message":"`+strings.Repeat("x", 1<<20)+`"}}`+"\n", 20), 7, fault.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newSidecarBench(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept") != tool.MediaLines {
					t.Errorf("accepts %q", r.Header.Get("Accept"))
				}
				w.Header().Set("Content-Type", c.media)
				_, _ = w.Write([]byte(c.body))
			}))
			t.Cleanup(server.Close)
			reports, out := told(t, b, server.URL)
			if len(reports) != c.reports || c.want == "" && out.OK == nil || c.want != "" && (out.Fault == nil || out.Fault.Reason != c.want) {
				t.Errorf("%d reports, %s %+v", len(reports), out.OK, out.Fault)
			}
		})
	}
}
