package hardware

import (
	"bufio"
	"bytes"
	"context"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// linux reads proc(5), the cgroups and the accelerators.
func (p Prober) linux(ctx context.Context, i *Info) {
	p.cpuinfo(i)
	p.meminfo(i)
	p.cgroups(i)
	i.GPUs = append(i.GPUs, p.nvidia(ctx, i)...)
	i.GPUs = append(i.GPUs, p.amd(ctx, i)...)
	i.GPUs = append(i.GPUs, p.intel()...)
	p.unify(i)
}

// notable are the processor features that llama.cpp has separate code for.
var notable = []string{"sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16",
	"amx_int8", "amx_bf16", "asimd", "asimddp", "i8mm", "sve", "sve2", "sme"}

func (p Prober) cpuinfo(i *Info) {
	text, err := fs.ReadFile(p.Root, "proc/cpuinfo")
	if err != nil {
		i.note("the processors are unknown: /proc/cpuinfo cannot be read")
		return
	}
	logical, cores, socket := 0, map[string]bool{}, ""
	for key, value := range pairs(text) {
		switch key {
		case "processor":
			logical++
		case "model name":
			i.CPU.Model = value
		case "physical id":
			socket = value
		case "core id":
			cores[socket+"/"+value] = true
		case "flags", "Features":
			if len(i.CPU.Features) == 0 {
				i.CPU.Features = features(value)
			}
		}
	}
	if i.CPU.Model == Unknown {
		p.deviceTree(i)
	}
	if len(cores) > 0 {
		i.CPU.PhysicalCores = new(len(cores))
	}
	if logical > 0 {
		i.CPU.LogicalCores = new(logical)
		i.CPU.Usable = new(float64(logical))
	}
	if p.Online > 0 && (logical == 0 || p.Online < logical) { // affinity or cpuset
		i.CPU.Usable = new(float64(p.Online))
	}
}

// deviceTree names the board where an ARM kernel does not name the processor.
func (p Prober) deviceTree(i *Info) {
	if model, err := fs.ReadFile(p.Root, "proc/device-tree/model"); err == nil {
		i.CPU.Model = strings.TrimRight(string(model), "\x00\n")
		return
	}
	i.note("the kernel does not name the processor")
}

func features(flags string) []string {
	found := []string{}
	for _, f := range strings.Fields(flags) {
		if slices.Contains(notable, f) {
			found = append(found, f)
		}
	}
	return found
}

func (p Prober) meminfo(i *Info) {
	text, err := fs.ReadFile(p.Root, "proc/meminfo")
	if err != nil {
		i.note("the memory is unknown: /proc/meminfo cannot be read")
		return
	}
	for key, value := range pairs(text) {
		switch key {
		case "MemTotal":
			i.Memory.Total = kibibytes(value)
		case "MemAvailable": // since Linux 3.14
			i.Memory.Available = kibibytes(value)
		}
	}
	if i.Memory.Available == nil {
		i.note("the kernel does not tell the available memory")
	}
}

// pairs yields the "key : value" lines of a file of proc(5).
func pairs(text []byte) func(func(key, value string) bool) {
	return func(yield func(string, string) bool) {
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			key, value, ok := strings.Cut(lines.Text(), ":")
			if ok && !yield(strings.TrimSpace(key), strings.TrimSpace(value)) {
				return
			}
		}
	}
}

func kibibytes(text string) *int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	if err != nil || n < 0 || n > 1<<53 {
		return nil
	}
	return new(n << 10)
}
