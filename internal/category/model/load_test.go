package model_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/gguf/gguftest"
	"pawgate/internal/client/llama/hardware"
	"pawgate/internal/client/llama/llamatest"
	"pawgate/internal/fault"
	"pawgate/internal/tool/tooltest"
)

type loadAnswer struct {
	Kind, Name, State, Hint string
	Options                 []string
	TTL                     int64 `json:"idle_ttl_seconds"`
	Memory                  struct{ How string }
}

// The whole life of a model, which in the system before this one was unloaded
// with the end of the call that loaded it.
func TestModelLoad_stays_loaded(t *testing.T) {
	t.Parallel()
	b := setup(t, "ok").tiny(t, "tiny")
	who := tooltest.Who("a")
	for range 2 {
		got := tooltest.OK[loadAnswer](t, b.cat, who, "model_load", `{"model_id":"tiny","context_size":512,"ttl_seconds":600}`)
		if got.State != "ready" || got.TTL != 600 || got.Options[0] != "context_size=512" || got.Hint != "" {
			t.Fatalf("loaded: %+v", got)
		}
	}
	list := tooltest.OK[listAnswer](t, b.cat, who, "model_list", `{}`)
	if list.Models[0].State != "loaded" {
		t.Errorf("listed: %+v", list)
	}
	tooltest.Fault(t, b.cat, who, "model_load", `{"model_id":"tiny","context_size":1024}`, fault.Conflict)
	type unloaded struct {
		State   string
		Changed bool
	}
	if got := tooltest.OK[unloaded](t, b.cat, who, "model_unload", `{"model_id":"tiny.gguf"}`); !got.Changed || got.State != "unloaded" {
		t.Errorf("unloaded: %+v", got)
	}
	if got := tooltest.OK[unloaded](t, b.cat, who, "model_unload", `{"model_id":"tiny"}`); got.Changed {
		t.Errorf("unloaded twice: %+v", got)
	}
	if list := tooltest.OK[listAnswer](t, b.cat, who, "model_list", `{}`); list.Models[0].State != "unloaded" {
		t.Errorf("a clean unload is listed as %+v", list.Models[0])
	}
}

func TestModelLoad_arguments(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "args")
	b := setup(t, "arguments:"+out).tiny(t, "tiny")
	tooltest.OK[loadAnswer](t, b.cat, tooltest.Who("a"), "model_load",
		`{"model_id":"tiny","gpu_layers":"0","args":["--flash-attn=on","--embeddings","--threads","2"]}`)
	args, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(string(args), "\n", " ")
	want := "-m " + filepath.Join(b.host.Models.Dir(), "tiny.gguf") + " --alias tiny --no-webui -c 2048 -ngl 0 --flash-attn on --embeddings --threads 2"
	if !strings.HasSuffix(got, want) {
		t.Errorf("arguments %q, want at the end %q", got, want)
	}
}

func TestModelLoad_refuses(t *testing.T) {
	t.Parallel()
	b := setup(t, "ok").tiny(t, "tiny")
	for name, c := range map[string]struct{ args, parameter string }{
		"INF-01_traversal":      {`{"model_id":"../../x"}`, "model_id"},
		"INF-01_absolute":       {`{"model_id":"/etc/passwd"}`, "model_id"},
		"INF-01_inner":          {`{"model_id":"a/../../b"}`, "model_id"},
		"INF-01_backslash":      {`{"model_id":"..\\x"}`, "model_id"},
		"INF-01_flag":           {`{"model_id":"--host"}`, "model_id"},
		"INF-12_host":           {`{"model_id":"tiny","args":["--host","0.0.0.0"]}`, "args"},
		"INF-12_host_joined":    {`{"model_id":"tiny","args":["--host=0.0.0.0"]}`, "args"},
		"INF-12_key_file":       {`{"model_id":"tiny","args":["--api-key-file","/etc/x"]}`, "args"},
		"INF-12_short":          {`{"model_id":"tiny","args":["-m","/etc/x"]}`, "args"},
		"INF-12_capital":        {`{"model_id":"tiny","args":["-H"]}`, "args"},
		"INF-12_log_file":       {`{"model_id":"tiny","args":["--log-file","/etc/x"]}`, "args"},
		"INF-12_stray_value":    {`{"model_id":"tiny","args":["--jinja","/etc/x"]}`, "args"},
		"INF-12_value_is_flag":  {`{"model_id":"tiny","args":["--temp","--host"]}`, "args"},
		"INF-12_template_file":  {`{"model_id":"tiny","args":["--chat-template","/etc/x"]}`, "args"},
		"INF-12_no_value":       {`{"model_id":"tiny","args":["--temp"]}`, "args"},
		"INF-12_wrong_value":    {`{"model_id":"tiny","args":["--flash-attn","maybe"]}`, "args"},
		"INF-12_remote_model":   {`{"model_id":"tiny","args":["--hf-repo","a/b"]}`, "args"},
		"context_too_small":     {`{"model_id":"tiny","context_size":1}`, "context_size"},
		"missing_model":         {`{}`, "model_id"},
		"negative_gpu_layers":   {`{"model_id":"tiny","gpu_layers":-1}`, "gpu_layers"},
		"unknown_argument":      {`{"model_id":"tiny","port":80}`, "port"},
		"wait_longer_than_sane": {`{"model_id":"tiny","wait_seconds":3600}`, "wait_seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tooltest.Invalid(t, b.cat, tooltest.Who("a"), "model_load", c.args, c.parameter)
		})
	}
	tooltest.Fault(t, b.cat, tooltest.Who("a"), "model_load", `{"model_id":"nope"}`, fault.NotFound)
	tooltest.Invalid(t, b.cat, tooltest.Who("a"), "model_unload", `{"model_id":"../x"}`, "model_id")
}

func TestModelLoad_fails(t *testing.T) {
	t.Parallel()
	tiny := gguftest.Tiny()
	for _, c := range []struct {
		name, mode string
		model      []byte
		want       fault.Reason
	}{
		{"INF-14_out_of_memory", "exit:/home/alice/models/tiny.gguf: failed to allocate CPU buffer", tiny, "out_of_memory"},
		{"INF-14_chat_template", "exit:failed to initialize chat template", tiny, "chat_template"},
		{"M-104_exits", "silent_exit", tiny, "exited_early"},
		{"corrupt_before_any_process", "ok", tiny[:len(tiny)-512], "corrupt_model"},
		{"INF-10_huge_counts", "ok", append([]byte("GGUF\x03\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"), tiny[16:]...), "corrupt_model"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, c.mode)
			b.put(t, "tiny.gguf", c.model)
			f := tooltest.Fault(t, b.cat, tooltest.Who("a"), "model_load", `{"model_id":"tiny"}`, c.want)
			encoded, err := f.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, hidden := range []string{b.host.Models.Dir(), "alice", "/home", os.TempDir()} {
				if strings.Contains(string(encoded), hidden) {
					t.Errorf("the error shows %s: %s", hidden, encoded)
				}
			}
		})
	}
}

func TestModelLoad_without_llama_server(t *testing.T) {
	t.Parallel()
	b := setupWith(t, llama.Config{Server: "no-such-llama-server"}).tiny(t, "tiny")
	f := tooltest.Fault(t, b.cat, tooltest.Who("a"), "model_load", `{"model_id":"tiny"}`, fault.NotConfigured)
	if !strings.Contains(f.Message, "PAWGATE_LLAMA_SERVER") {
		t.Errorf("got %q", f.Message)
	}
}

func TestModelLoad_says_that_it_still_starts(t *testing.T) {
	t.Parallel()
	b := setup(t, "load:500ms").tiny(t, "tiny")
	got := tooltest.OK[loadAnswer](t, b.cat, tooltest.Who("a"), "model_load", `{"model_id":"tiny","wait_seconds":0}`)
	if got.State != "starting" || !strings.Contains(got.Hint, "model_list") {
		t.Errorf("got %+v", got)
	}
	if got := tooltest.OK[loadAnswer](t, b.cat, tooltest.Who("a"), "model_load", `{"model_id":"tiny"}`); got.State != "ready" {
		t.Errorf("a second load waits for the first: %+v", got)
	}
}

// Memory: the cgroup's limit counts, what is loading counts, and force
// overrides.
func TestModelLoad_W_40_memory(t *testing.T) {
	t.Parallel()
	b := setupWith(t, llama.Config{Server: llamatest.Program(t, llamatest.Shebang, "load:300ms"), MaxLoaded: 4}).tiny(t, "a", "b", "c")
	b.host.Hardware = hardware.Prober{OS: "linux", Run: nowhere, Root: fstest.MapFS{
		"proc/meminfo":                 {Data: []byte("MemTotal: 16777216 kB\nMemAvailable: 16777216 kB\n")},
		"proc/self/cgroup":             {Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max":     {Data: []byte("209715200\n")}, // 200 MiB
		"sys/fs/cgroup/memory.current": {Data: []byte("0\n")},
	}}
	who := tooltest.Who("a")
	tooltest.OK[loadAnswer](t, b.cat, who, "model_load", `{"model_id":"a","wait_seconds":0}`)
	f := tooltest.Fault(t, b.cat, who, "model_load", `{"model_id":"b"}`, "out_of_memory")
	for _, want := range []string{"128.0 MiB buffers", "200.0 MiB of memory is free", "promised to models that are loading"} {
		if !strings.Contains(f.Message, want) {
			t.Errorf("%q does not tell %q", f.Message, want)
		}
	}
	if got := tooltest.OK[loadAnswer](t, b.cat, who, "model_load", `{"model_id":"b","force":true}`); got.State != "ready" {
		t.Errorf("forced: %+v", got)
	}
	if f := tooltest.Fault(t, b.cat, who, "model_load", `{"model_id":"c","context_size":1048576}`, "out_of_memory"); !strings.Contains(f.Message, "1048576 tokens") {
		t.Errorf("got %q", f.Message)
	}
}

// One place, two models: the one that is loading stays, the idle one goes.
func TestModelLoad_M_106(t *testing.T) {
	t.Parallel()
	b := setup(t, "load:400ms").tiny(t, "a", "b")
	who := tooltest.Who("a")
	tooltest.OK[loadAnswer](t, b.cat, who, "model_load", `{"model_id":"a","wait_seconds":0}`)
	f := tooltest.Fault(t, b.cat, who, "model_load", `{"model_id":"b"}`, fault.Conflict)
	if f.RetryAfter < time.Second {
		t.Errorf("it does not say when to try again: %+v", f)
	}
	tooltest.OK[loadAnswer](t, b.cat, who, "model_load", `{"model_id":"a"}`)
	if got := tooltest.OK[loadAnswer](t, b.cat, who, "model_load", `{"model_id":"b"}`); got.State != "ready" {
		t.Errorf("got %+v", got)
	}
}
