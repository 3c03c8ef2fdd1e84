package hardware

import (
	"context"
	"regexp"
	"strconv"
	"strings"
)

// darwin asks sysctl(8) and vm_stat(1). On Apple Silicon the GPU uses the main
// memory.
func (p Prober) darwin(ctx context.Context, i *Info) {
	if name := p.sysctl(ctx, i, "machdep.cpu.brand_string"); name != "" {
		i.CPU.Model = name
	}
	i.CPU.PhysicalCores = whole(p.sysctl(ctx, i, "hw.physicalcpu"))
	i.CPU.LogicalCores = whole(p.sysctl(ctx, i, "hw.logicalcpu"))
	if i.CPU.LogicalCores != nil {
		i.CPU.Usable = new(float64(*i.CPU.LogicalCores))
	}
	if n, err := strconv.ParseInt(p.sysctl(ctx, i, "hw.memsize"), 10, 64); err == nil {
		i.Memory.Total = new(n)
	}
	if out, ok := p.ask(ctx, i, "vm_stat"); ok {
		i.Memory.Available = parseVMStat(string(out))
	}
	if i.Memory.Available == nil {
		i.note("the available memory is unknown: vm_stat does not tell")
	}
	if p.Arch == "arm64" {
		i.Memory.Unified = true
		i.GPUs = append(i.GPUs, GPU{Vendor: "apple", Name: i.CPU.Model, Unified: true,
			Total: i.Memory.Total, Free: i.Memory.Available, Driver: "metal", Source: "sysctl"})
	}
}

func (p Prober) sysctl(ctx context.Context, i *Info, name string) string {
	out, ok := p.ask(ctx, i, "sysctl", "-n", name)
	if !ok {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func whole(text string) *int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return nil
	}
	return new(n)
}

var (
	vmPage  = regexp.MustCompile(`page size of (\d+) bytes`)
	vmCount = regexp.MustCompile(`(?m)^Pages (free|inactive|speculative|purgeable):\s+(\d+)\.`)
)

// parseVMStat adds up the pages that can be had without swapping. The page
// size differs between machines, so it is read, not assumed.
func parseVMStat(out string) *int64 {
	size := vmPage.FindStringSubmatch(out)
	if size == nil {
		return nil
	}
	page, err := strconv.ParseInt(size[1], 10, 64)
	if err != nil {
		return nil
	}
	var pages int64
	for _, m := range vmCount.FindAllStringSubmatch(out, -1) {
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			return nil
		}
		pages += n
	}
	return new(pages * page)
}
