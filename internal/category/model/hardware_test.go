package model_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"pawgate/internal/category/model"
	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/hardware"
	"pawgate/internal/tool/tooltest"
)

// nowhere is a machine without any vendor's tool.
func nowhere(context.Context, string, ...string) ([]byte, error) { return nil, exec.ErrNotFound }

type hardwareInfo struct {
	OS     string
	Memory struct {
		Total     *int64 `json:"total_bytes"`
		Limit     *int64 `json:"limit_bytes"`
		LimitFrom string `json:"limit_from"`
	}
	GPUs    []hardware.GPU
	Notes   []string
	Backend string
	Room    *struct {
		Bytes int64
		Where string
		How   string
	} `json:"room_for_model"`
}

func TestHardwareInfo(t *testing.T) {
	t.Parallel()
	none := nowhere
	smi := func(_ context.Context, name string, _ ...string) ([]byte, error) {
		if name != "nvidia-smi" {
			return nil, exec.ErrNotFound
		}
		return []byte("NVIDIA L4, 23552, 20480, 550\nNVIDIA L4, 23552, 20480, 550\n"), nil
	}
	files := fstest.MapFS{
		"proc/meminfo":                 {Data: []byte("MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")},
		"proc/self/cgroup":             {Data: []byte("0::/\n")},
		"sys/fs/cgroup/memory.max":     {Data: []byte("1073741824\n")},
		"sys/fs/cgroup/memory.current": {Data: []byte("0\n")},
	}
	for _, c := range []struct {
		name    string
		prober  hardware.Prober
		backend string
		room    string // how it was worked out; empty: unknown
	}{
		{"limit_of_the_container", hardware.Prober{Root: files, Run: none, OS: "linux"}, "cpu", "70 % of 1.0 GiB (what the cgroup v2 limit leaves) = 716.8 MiB"},
		{"two_gpus", hardware.Prober{Root: files, Run: smi, OS: "linux"}, "cuda", "70 % of 40.0 GiB (free memory of 2 GPU(s)) = 28.0 GiB"},
		{"nothing_known", hardware.Prober{Root: fstest.MapFS{}, Run: none, OS: "linux"}, "cpu", ""},
		{"other_system", hardware.Prober{Root: fstest.MapFS{}, Run: none, OS: "plan9"}, "cpu", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, "ok")
			b.host.Hardware = c.prober
			got := tooltest.OK[hardwareInfo](t, b.cat, tooltest.Who("a"), "hardware_info", `{}`)
			how := ""
			if got.Room != nil {
				how = got.Room.How
			}
			if got.Backend != c.backend || how != c.room {
				t.Errorf("got %s, %q; want %s, %q", got.Backend, how, c.backend, c.room)
			}
			if c.room == "" && len(got.Notes) == 0 {
				t.Error("nothing is known and no note says so")
			}
		})
	}
}

func TestHardwareInfo_this_machine(t *testing.T) {
	t.Parallel()
	b := setup(t, "ok")
	out := tooltest.Call(t, b.cat, tooltest.Who("a"), "hardware_info", `{}`)
	var got hardwareInfo
	if err := json.Unmarshal(out.OK, &got); err != nil || got.Memory.Total == nil || got.Room == nil {
		t.Fatalf("got %s (%v)", out.OK, err)
	}
	if strings.Contains(string(out.OK), b.host.Models.Dir()) {
		t.Errorf("the answer shows a path: %s", out.OK)
	}
	tooltest.Invalid(t, b.cat, tooltest.Who("a"), "hardware_info", `{"gpu":1}`, "gpu")
}

func TestOpen_says_what_to_do(t *testing.T) {
	t.Parallel()
	_, err := model.Open(t.Context(), model.Config{Llama: llama.Config{Data: "/dev/null/x"}})
	if err == nil || !strings.Contains(err.Error(), "PAWGATE_MODELS") {
		t.Errorf("got %v", err)
	}
}
