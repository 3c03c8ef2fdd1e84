package model_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"pawgate/internal/client/llama/gguf/gguftest"
	"pawgate/internal/client/llama/hardware"
	"pawgate/internal/tool/tooltest"
)

type recommendAnswer struct {
	Room        *struct{ Bytes int64 } `json:"room_for_model"`
	Recommended []struct {
		Filename string
		OnHost   bool `json:"on_host"`
		Memory   struct {
			Total int64 `json:"total_bytes"`
			How   string
		} `json:"memory_at_4096_tokens"`
	}
	TooLarge []struct{ Filename string } `json:"too_large"`
	Hint     string
}

func TestModelRecommend(t *testing.T) {
	t.Parallel()
	meminfo := func(kib string) hardware.Prober {
		return hardware.Prober{OS: "linux", Run: nowhere, Root: fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: " + kib + " kB\nMemAvailable: " + kib + " kB\n")}}}
	}
	for _, c := range []struct {
		name        string
		prober      hardware.Prober
		first, hint string
		fit         int
	}{
		{"8_GiB", meminfo("8388608"), "Qwen3-8B-Q4_K_M.gguf", "", 6},
		{"64_GiB", meminfo("67108864"), "Qwen3-32B-Q4_K_M.gguf", "", 10},
		{"512_MiB", meminfo("524288"), "", "none of these fits", 0},
		{"unknown", hardware.Prober{OS: "linux", Run: nowhere, Root: fstest.MapFS{}}, "", "unknown", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, "ok")
			b.host.Hardware = c.prober
			got := tooltest.OK[recommendAnswer](t, b.cat, tooltest.Who("a"), "model_recommend", `{}`)
			first := ""
			for _, r := range got.Recommended {
				if first == "" {
					first = r.Filename
				}
				if r.Memory.Total > got.Room.Bytes || !strings.Contains(r.Memory.How, "weights") {
					t.Errorf("%s does not fit: %+v in %+v", r.Filename, r.Memory, got.Room)
				}
			}
			if first != c.first || len(got.Recommended) != c.fit || len(got.Recommended)+len(got.TooLarge) != 10 || !strings.Contains(got.Hint, c.hint) {
				t.Errorf("first %q, %d fit, %d too large, hint %q", first, len(got.Recommended), len(got.TooLarge), got.Hint)
			}
		})
	}
}

func TestModelRecommend_knows_what_is_here(t *testing.T) {
	t.Parallel()
	b := setup(t, "ok")
	b.put(t, "Qwen3-0.6B-Q8_0.gguf", gguftest.Tiny())
	got := tooltest.OK[recommendAnswer](t, b.cat, tooltest.Who("a"), "model_recommend", `{}`)
	last := got.Recommended[len(got.Recommended)-1]
	if last.Filename != "Qwen3-0.6B-Q8_0.gguf" || !last.OnHost {
		t.Errorf("got %+v", last)
	}
	tooltest.Invalid(t, b.cat, tooltest.Who("a"), "model_recommend", `{"x":1}`, "x")
}
