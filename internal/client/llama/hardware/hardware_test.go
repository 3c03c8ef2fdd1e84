package hardware_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/client/llama/hardware"
)

// host is a machine made of files and of programs by their first words.
func host(files map[string]string, programs map[string]string) hardware.Prober {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return hardware.Prober{Root: root, OS: "linux", Arch: "amd64", Run: func(_ context.Context, name string, args ...string) ([]byte, error) {
		out, ok := programs[strings.Join(append([]string{name}, args...), " ")]
		if !ok {
			out, ok = programs[name]
		}
		if !ok {
			return nil, exec.ErrNotFound
		}
		if out == "!" {
			return nil, errors.New("exit status 9")
		}
		return []byte(out), nil
	}}
}

const (
	cpuinfo = "processor\t: 0\nmodel name\t: Xeon\nphysical id\t: 0\ncore id\t: 0\nflags\t: fpu avx2 avx512f zzz\n\n" +
		"processor\t: 1\nmodel name\t: Xeon\nphysical id\t: 0\ncore id\t: 0\nflags\t: fpu avx2\n\n" +
		"processor\t: 2\nmodel name\t: Xeon\nphysical id\t: 1\ncore id\t: 0\nflags\t: fpu avx2\n"
	meminfo = "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:   12582912 kB\n"
)

func TestRead_processors_and_memory(t *testing.T) {
	t.Parallel()
	got := host(map[string]string{"proc/cpuinfo": cpuinfo, "proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n"}, nil).Read(t.Context())
	want := hardware.Info{OS: "linux", Arch: "amd64",
		CPU:    hardware.CPU{Model: "Xeon", PhysicalCores: new(2), LogicalCores: new(3), Usable: new(3.0), Features: []string{"avx2", "avx512f"}},
		Memory: hardware.Memory{Total: new(int64(16 << 30)), Available: new(int64(12 << 30)), LimitFrom: "none"},
		GPUs:   []hardware.GPU{}, Notes: []string{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("info (-want +got):\n%s", diff)
	}
}

func TestRead_knows_nothing_and_says_so(t *testing.T) {
	t.Parallel()
	got := host(nil, nil).Read(t.Context())
	if got.CPU.Model != hardware.Unknown || got.Memory.Total != nil || got.Memory.Usable() != nil || got.CPU.Usable != nil {
		t.Errorf("something was made up: %+v", got)
	}
	if len(got.Notes) != 3 {
		t.Errorf("notes: %q", got.Notes)
	}
	if _, ok := got.Budget(); ok {
		t.Error("a budget out of nothing")
	}
}

func TestRead_limits(t *testing.T) {
	t.Parallel()
	base := map[string]string{"proc/cpuinfo": cpuinfo, "proc/meminfo": meminfo}
	for _, c := range []struct {
		name        string
		files       map[string]string
		limit, free int64
		from        string
		cores       float64
	}{
		{"v2_own_group", map[string]string{
			"proc/self/cgroup":                 "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":     "2147483648\n",
			"sys/fs/cgroup/a/b/memory.current": "1073741824\n",
			"sys/fs/cgroup/a/b/memory.stat":    "anon 1\ninactive_file 536870912\n",
			"sys/fs/cgroup/a/b/cpu.max":        "150000 100000\n",
			"sys/fs/cgroup/a/memory.max":       "max\n",
		}, 2 << 30, 3 << 29, "cgroup v2", 1.5},
		{"v2_limit_of_the_parent", map[string]string{
			"proc/self/cgroup":               "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":   "max\n",
			"sys/fs/cgroup/a/memory.max":     "1073741824\n",
			"sys/fs/cgroup/a/memory.current": "0\n",
			"sys/fs/cgroup/a/cpu.max":        "max 100000\n",
		}, 1 << 30, 1 << 30, "cgroup v2", 3},
		{"v2_container_shows_its_own_part", map[string]string{
			"proc/self/cgroup":             "0::/../../pod7\n",
			"sys/fs/cgroup/memory.max":     "1073741824\n",
			"sys/fs/cgroup/memory.current": "1073741825\n",
		}, 1 << 30, 0, "cgroup v2", 3},
		{"v1", map[string]string{
			"proc/self/cgroup": "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n",
			"sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes":  "1073741824\n",
			"sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes":  "524288000\n",
			"sys/fs/cgroup/memory/docker/x/memory.stat":            "total_inactive_file 524288000\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us":  "50000\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us": "100000\n",
		}, 1 << 30, 1 << 30, "cgroup v1", 0.5},
		{"v1_unlimited", map[string]string{
			"proc/self/cgroup":                           "5:memory:/\n4:cpu:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000\n",
		}, 0, 0, "none", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			for _, m := range []map[string]string{base, c.files} {
				for k, v := range m {
					files[k] = v
				}
			}
			got := host(files, nil).Read(t.Context())
			want := hardware.Memory{Total: new(int64(16 << 30)), Available: new(int64(12 << 30)), LimitFrom: c.from}
			if c.limit > 0 {
				want.Limit, want.LimitFree = new(c.limit), new(c.free)
			}
			if diff := cmp.Diff(want, got.Memory); diff != "" {
				t.Errorf("memory (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(new(c.cores), got.CPU.Usable); diff != "" {
				t.Errorf("usable cores (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRead_accelerators(t *testing.T) {
	t.Parallel()
	gib := func(n int64) *int64 { return new(n << 30) }
	for _, c := range []struct {
		name     string
		files    map[string]string
		programs map[string]string
		want     []hardware.GPU
	}{
		{"every_nvidia_gpu", nil, map[string]string{"nvidia-smi": "NVIDIA L4, 23552, 22528, 550.54\nNVIDIA A10G, 23552, 1024, 550.54\n"}, []hardware.GPU{
			{Vendor: "nvidia", Name: "NVIDIA L4", Total: gib(23), Free: gib(22), Driver: "550.54", Source: "nvidia-smi"},
			{Vendor: "nvidia", Name: "NVIDIA A10G", Total: gib(23), Free: gib(1), Driver: "550.54", Source: "nvidia-smi"}}},
		{"nvidia_unified", nil, map[string]string{"nvidia-smi": "NVIDIA GB10, [N/A], [N/A], 580.95\n"}, []hardware.GPU{
			{Vendor: "nvidia", Name: "NVIDIA GB10", Driver: "580.95", Source: "nvidia-smi", Unified: true}}},
		{"nvidia_broken_driver", map[string]string{"proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t Tesla T4\nIRQ: 7\n"},
			map[string]string{"nvidia-smi": "!"}, []hardware.GPU{{Vendor: "nvidia", Name: "Tesla T4", Driver: "unknown", Source: "procfs"}}},
		{"amd_by_rocm", nil, map[string]string{"rocm-smi": `{"card1":{"VRAM Total Memory (B)":"17163091968","VRAM Total Used Memory (B)":"91968","Card Series":"RX 7800"},"card0":{"VRAM Total Memory (B)":"bad"},"system":{"Driver version":"6.7"}}`},
			[]hardware.GPU{{Vendor: "amd", Name: "RX 7800", Total: new(int64(17163091968)), Free: new(int64(17163000000)), Driver: "6.7", Source: "rocm-smi"}}},
		{"amd_and_intel_by_sysfs", map[string]string{
			"sys/class/drm/card0/device/vendor": "0x8086\n", "sys/class/drm/card1/device/vendor": "0x1002\n",
			"sys/class/drm/card1/device/mem_info_vram_total": "8589934592\n", "sys/class/drm/card1/device/mem_info_vram_used": "4294967296\n",
			"sys/class/drm/card1-DP-1/device/vendor": "0x1002\n", "sys/class/drm/card2/device/vendor": "0x1234\n",
		}, nil, []hardware.GPU{
			{Vendor: "amd", Name: "unknown", Total: gib(8), Free: gib(4), Driver: "amdgpu", Source: "sysfs"},
			{Vendor: "intel", Name: "unknown", Driver: "unknown", Source: "sysfs", Unified: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := host(c.files, c.programs).Read(t.Context())
			if diff := cmp.Diff(c.want, got.GPUs); diff != "" {
				t.Errorf("GPUs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRead_apple(t *testing.T) {
	t.Parallel()
	p := host(nil, map[string]string{
		"sysctl -n machdep.cpu.brand_string": "Apple M4\n", "sysctl -n hw.physicalcpu": "10\n", "sysctl -n hw.logicalcpu": "10\n",
		"sysctl -n hw.memsize": "17179869184\n",
		"vm_stat":              "Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPages free:      100.\nPages active: 5.\nPages inactive:  200.\nPages speculative: 30.\n",
	})
	p.OS, p.Arch = "darwin", "arm64"
	got := p.Read(t.Context())
	if !got.Memory.Unified || *got.Memory.Available != 330*16384 || len(got.GPUs) != 1 || got.GPUs[0].Name != "Apple M4" {
		t.Errorf("got %+v", got)
	}
	b, ok := got.Budget()
	if free := float64(330 * 16384); !ok || b.Where != "unified" || b.Bytes != int64(0.7*free) {
		t.Errorf("budget %+v", b)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	gib := func(n int64) *int64 { return new(n << 30) }
	for _, c := range []struct {
		name string
		info hardware.Info
		want hardware.Budget
	}{
		{"all_gpus_together", hardware.Info{GPUs: []hardware.GPU{{Free: gib(10)}, {Free: gib(30)}, {Unified: true, Free: gib(99)}, {}}},
			hardware.Budget{Bytes: 28 << 30, Where: "gpu", How: "70 % of 40.0 GiB (free memory of 2 GPU(s)) = 28.0 GiB"}},
		{"cgroup_before_machine", hardware.Info{Memory: hardware.Memory{Available: gib(100), Limit: gib(20), LimitFree: gib(10), LimitFrom: "cgroup v2"}},
			hardware.Budget{Bytes: 7 << 30, Where: "ram", How: "70 % of 10.0 GiB (what the cgroup v2 limit leaves) = 7.0 GiB"}},
		{"machine_before_cgroup", hardware.Info{Memory: hardware.Memory{Available: gib(10), LimitFree: gib(20)}},
			hardware.Budget{Bytes: 7 << 30, Where: "ram", How: "70 % of 10.0 GiB (available memory) = 7.0 GiB"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, ok := c.info.Budget()
			if diff := cmp.Diff(c.want, got); diff != "" || !ok {
				t.Errorf("budget (-want +got):\n%s", diff)
			}
		})
	}
}

// The real machine: nothing in particular is known of it but that it has
// processors and memory.
func TestHost(t *testing.T) {
	t.Parallel()
	got := hardware.Host().Read(t.Context())
	if got.CPU.LogicalCores == nil || got.Memory.Total == nil || got.Memory.Usable() == nil {
		t.Errorf("this machine: %+v", got)
	}
	if b, ok := got.Budget(); !ok || b.Bytes <= 0 {
		t.Errorf("budget %+v %t", b, ok)
	}
}
