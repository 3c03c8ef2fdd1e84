package llamafile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/category/llamafile"
	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/gguf/gguftest"
	"pawgate/internal/client/llama/llamatest"
	"pawgate/internal/fault"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

func TestMain(m *testing.M) { llamatest.Main(m) }

type bench struct {
	host *llama.Host
	cat  tool.Category
}

func setup(t *testing.T) bench {
	t.Helper()
	host, err := llama.Open(llama.Config{Data: t.TempDir(), MaxLoaded: 3, Server: llamatest.Program(t, llamatest.Shebang, "ok")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	return bench{host, llamafile.New(host)}
}

// put makes a llamafile with a behaviour.
func (b bench) put(t *testing.T, name, mode string) bench {
	t.Helper()
	llamatest.Write(t, filepath.Join(b.host.Llamafiles.Dir(), name), llamatest.APE, mode)
	return b
}

type server struct{ Kind, Name, State, Note string }

type listAnswer struct {
	Files   []struct{ File, State string }
	Servers []server
	Hint    string
}

type stopAnswer struct {
	State   string
	Stopped []string
}

// In the system before this one a started llamafile died with the end of the
// call, and its name was read and ignored.
func TestLlamafileStart_lives(t *testing.T) {
	t.Parallel()
	b := setup(t).put(t, "one.llamafile", "ok").put(t, "two.llamafile", "ok")
	who := tooltest.Who("a")
	got := tooltest.OK[server](t, b.cat, who, "llamafile_start", `{"file":"two.llamafile"}`)
	if got.State != "ready" || got.Name != "two" || !strings.Contains(got.Note, "APE loader") {
		t.Errorf("INF-06 started: %+v", got)
	}
	list := tooltest.OK[listAnswer](t, b.cat, who, "llamafile_list", `{}`)
	if diff := cmp.Diff([]struct{ File, State string }{{"one", "stopped"}, {"two", "ready"}}, list.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := tooltest.OK[stopAnswer](t, b.cat, who, "llamafile_stop", `{}`); !slices.Equal(got.Stopped, []string{"two"}) {
		t.Errorf("stopped: %+v", got)
	}
	if got := tooltest.OK[stopAnswer](t, b.cat, who, "llamafile_stop", `{}`); len(got.Stopped) != 0 || got.State != "stopped" {
		t.Errorf("nothing runs: %+v", got)
	}
}

func TestLlamafileStart_a_model(t *testing.T) {
	t.Parallel()
	b := setup(t).put(t, "one.llamafile", "ok")
	if err := os.WriteFile(filepath.Join(b.host.Models.Dir(), "tiny.gguf"), gguftest.Tiny(), 0o644); err != nil {
		t.Fatal(err)
	}
	who := tooltest.Who("a")
	if got := tooltest.OK[server](t, b.cat, who, "llamafile_start", `{"file":"tiny.gguf"}`); got.Kind != "model" || got.State != "ready" {
		t.Errorf("got %+v", got)
	}
	if got := tooltest.OK[stopAnswer](t, b.cat, who, "llamafile_stop", `{}`); len(got.Stopped) != 0 {
		t.Errorf("stopping every llamafile stops no model: %+v", got)
	}
	if got := tooltest.OK[stopAnswer](t, b.cat, who, "llamafile_stop", `{"file":"tiny.gguf"}`); !slices.Equal(got.Stopped, []string{"tiny"}) {
		t.Errorf("got %+v", got)
	}
}

func TestLlamafileStart_which(t *testing.T) {
	t.Parallel()
	b := setup(t)
	who := tooltest.Who("a")
	tooltest.Fault(t, b.cat, who, "llamafile_start", `{}`, fault.NotFound)
	b.put(t, "one.llamafile", "ok")
	if got := tooltest.OK[server](t, b.cat, who, "llamafile_start", `{}`); got.Name != "one" {
		t.Errorf("the only one: %+v", got)
	}
	b.put(t, "two.llamafile", "ok")
	if f := tooltest.Fault(t, b.cat, who, "llamafile_start", `{}`, fault.Conflict); !strings.Contains(f.Message, "one, two") {
		t.Errorf("got %q", f.Message)
	}
	tooltest.Fault(t, b.cat, who, "llamafile_start", `{"file":"three"}`, fault.NotFound)
	tooltest.Fault(t, b.cat, who, "llamafile_start", `{"file":"three.gguf"}`, fault.NotFound)
	tooltest.Fault(t, b.cat, who, "llamafile_stop", `{"file":"three"}`, fault.NotFound)
}

func TestLlamafileStart_refuses(t *testing.T) {
	t.Parallel()
	b := setup(t).put(t, "one.llamafile", "ok")
	if err := os.Symlink("/bin/sh", filepath.Join(b.host.Llamafiles.Dir(), "link.llamafile")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ args, parameter string }{
		"INF-01_traversal": {`{"file":"../../bin/sh"}`, "file"},
		"INF-01_absolute":  {`{"file":"/bin/sh"}`, "file"},
		"INF-01_gguf":      {`{"file":"../x.gguf"}`, "file"},
		"INF-12_host":      {`{"file":"one","args":["--host","0.0.0.0"]}`, "args"},
		"INF-12_key":       {`{"file":"one","args":["--api-key=x"]}`, "args"},
		"INF-12_path":      {`{"file":"one","args":["--path","/etc"]}`, "args"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tooltest.Invalid(t, b.cat, tooltest.Who("a"), "llamafile_start", c.args, c.parameter)
		})
	}
	tooltest.Fault(t, b.cat, tooltest.Who("a"), "llamafile_start", `{"file":"link"}`, fault.NotFound)
	tooltest.Invalid(t, b.cat, tooltest.Who("a"), "llamafile_stop", `{"file":"../x"}`, "file")
}

func TestLlamafileStart_fails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode string
		want fault.Reason
	}{
		"M-104_exits_0":  {"exit0:bye", "exited_early"},
		"out_of_memory":  {"exit:failed to allocate", "out_of_memory"},
		"corrupt":        {"exit:invalid magic", "corrupt_model"},
		"INF-14_no_path": {"exit:cannot open /home/alice/x", "exited_early"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t).put(t, "one.llamafile", c.mode)
			f := tooltest.Fault(t, b.cat, tooltest.Who("a"), "llamafile_start", `{}`, c.want)
			if encoded, err := f.MarshalJSON(); err != nil || strings.Contains(string(encoded), "alice") {
				t.Errorf("the error shows a path: %s", encoded)
			}
			list := tooltest.OK[listAnswer](t, b.cat, tooltest.Who("a"), "llamafile_list", `{}`)
			if len(list.Servers) != 1 || list.Servers[0].State != "failed" {
				t.Errorf("listed: %+v", list.Servers)
			}
		})
	}
	b := setup(t).put(t, "one.llamafile", "ok")
	if err := os.Chmod(filepath.Join(b.host.Llamafiles.Dir(), "one.llamafile"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := tooltest.Fault(t, b.cat, tooltest.Who("a"), "llamafile_start", `{}`, "not_executable"); !strings.Contains(f.Message, "chmod +x") {
		t.Errorf("got %q", f.Message)
	}
}

func TestLlamafileStart_B_68_ten_at_once(t *testing.T) {
	t.Parallel()
	b := setup(t).put(t, "one.llamafile", "load:200ms")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if out := tool.Assemble(b.cat).Call(t.Context(), tooltest.Who("a"), "llamafile_start", []byte(`{}`)); !strings.Contains(string(out.OK), `"state":"ready"`) {
				t.Errorf("got %s %+v", out.OK, out.Fault)
			}
		})
	}
	all.Wait()
	if list := tooltest.OK[listAnswer](t, b.cat, tooltest.Who("a"), "llamafile_list", `{}`); len(list.Servers) != 1 {
		t.Errorf("servers: %+v", list.Servers)
	}
}

// Whoever listens to a call hears how far the start is, and that it lives.
func TestLlamafileStart_reports(t *testing.T) {
	t.Parallel()
	b := setup(t).put(t, "one.llamafile", "load:1200ms")
	var told []tool.Progress
	ctx := tool.WithProgress(t.Context(), func(p tool.Progress) { told = append(told, p) })
	out := tool.Assemble(b.cat).Call(ctx, tooltest.Who("a"), "llamafile_start", []byte(`{}`))
	if out.OK == nil || len(told) < 3 {
		t.Fatalf("%s %+v, told %+v", out.OK, out.Fault, told)
	}
	for i, p := range told {
		if p.Total != 3 || p.Done < 0 || p.Done > 3 || i > 0 && p.Done <= told[i-1].Done || !strings.HasPrefix(p.Message, "one ") {
			t.Errorf("report %d: %+v", i, p)
		}
	}
	if last := told[len(told)-1]; last.Done < 2 || !strings.Contains(last.Message, "loads its weights") {
		t.Errorf("the last report: %+v", last)
	}
}
