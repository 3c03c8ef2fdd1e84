package hardware

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// The PCI vendor ids of the accelerators that llama.cpp can use.
const (
	pciNVIDIA = "0x10de"
	pciAMD    = "0x1002"
	pciIntel  = "0x8086"
)

// nvidia lists every NVIDIA GPU: by nvidia-smi, or where that is missing by
// what the driver and the PCI bus show, without memory.
func (p Prober) nvidia(ctx context.Context, i *Info) []GPU {
	if out, ok := p.ask(ctx, i, "nvidia-smi",
		"--query-gpu=name,memory.total,memory.free,driver_version", "--format=csv,noheader,nounits"); ok {
		if gpus, ok := parseNvidia(out); ok {
			return gpus
		}
		i.note("nvidia-smi answered something that cannot be read; the NVIDIA GPUs are unknown")
	}
	var gpus []GPU
	infos, _ := fs.Glob(p.Root, "proc/driver/nvidia/gpus/*/information")
	for _, file := range infos {
		text, _ := fs.ReadFile(p.Root, file)
		g := GPU{Vendor: "nvidia", Name: Unknown, Driver: Unknown, Source: "procfs"}
		for key, value := range pairs(text) {
			if key == "Model" {
				g.Name = value
			}
		}
		gpus = append(gpus, g)
	}
	if len(gpus) == 0 {
		for range p.cards(pciNVIDIA) {
			gpus = append(gpus, GPU{Vendor: "nvidia", Name: Unknown, Driver: Unknown, Source: "sysfs"})
		}
	}
	if len(gpus) > 0 {
		i.note("the memory of the NVIDIA GPUs is unknown: nvidia-smi does not answer")
	}
	return gpus
}

// parseNvidia reads the CSV of nvidia-smi, sizes in MiB. A GPU that shares
// the main memory has "[N/A]" for its size.
func parseNvidia(out []byte) ([]GPU, bool) {
	r := csv.NewReader(strings.NewReader(string(out)))
	r.TrimLeadingSpace, r.FieldsPerRecord, r.LazyQuotes = true, 4, true
	rows, err := r.ReadAll()
	if err != nil {
		return nil, false
	}
	gpus := []GPU{}
	for _, row := range rows {
		g := GPU{Vendor: "nvidia", Name: strings.TrimSpace(row[0]), Total: mebibytes(row[1]), Free: mebibytes(row[2]),
			Driver: strings.TrimSpace(row[3]), Source: "nvidia-smi"}
		g.Unified = strings.Contains(row[1], "N/A") || strings.Contains(row[1], "Not Supported")
		gpus = append(gpus, g)
	}
	return gpus, true
}

func mebibytes(text string) *int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return nil
	}
	return new(n << 20)
}

// amd lists every AMD GPU: by rocm-smi, or by what the kernel's driver shows.
func (p Prober) amd(ctx context.Context, i *Info) []GPU {
	if out, ok := p.ask(ctx, i, "rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showdriverversion", "--json"); ok {
		if gpus := parseROCm(out); len(gpus) > 0 {
			return gpus
		}
	}
	var gpus []GPU
	for _, card := range p.cards(pciAMD) {
		g := GPU{Vendor: "amd", Name: Unknown, Driver: "amdgpu", Source: "sysfs"}
		if name := p.text(path.Join(card, "product_name")); name != "" {
			g.Name = name
		}
		if total, ok := p.number(path.Join(card, "mem_info_vram_total")); ok {
			g.Total = new(total)
			if used, ok := p.number(path.Join(card, "mem_info_vram_used")); ok {
				g.Free = new(max(total-used, 0))
			}
		}
		gpus = append(gpus, g)
	}
	return gpus
}

func parseROCm(out []byte) []GPU {
	var cards map[string]map[string]string
	if json.Unmarshal(out, &cards) != nil {
		return nil
	}
	driver := Unknown
	if v := cards["system"]["Driver version"]; v != "" {
		driver = v
	}
	var gpus []GPU
	for _, key := range slices.Sorted(maps.Keys(cards)) {
		card := cards[key]
		total, err := strconv.ParseInt(card["VRAM Total Memory (B)"], 10, 64)
		if !strings.HasPrefix(key, "card") || err != nil {
			continue
		}
		g := GPU{Vendor: "amd", Name: Unknown, Total: new(total), Driver: driver, Source: "rocm-smi"}
		for _, field := range []string{"Card Series", "Card series", "Card Model", "Card model"} {
			if name := card[field]; name != "" && g.Name == Unknown {
				g.Name = name
			}
		}
		if used, err := strconv.ParseInt(card["VRAM Total Used Memory (B)"], 10, 64); err == nil {
			g.Free = new(max(total-used, 0))
		}
		gpus = append(gpus, g)
	}
	return gpus
}

// intel lists Intel GPUs. Those without memory of their own use the main one.
func (p Prober) intel() []GPU {
	var gpus []GPU
	for _, card := range p.cards(pciIntel) {
		g := GPU{Vendor: "intel", Name: Unknown, Driver: Unknown, Source: "sysfs", Unified: true}
		if total, ok := p.number(path.Join(card, "tile0/vram0/size")); ok {
			g.Total, g.Unified = new(total), false
		}
		gpus = append(gpus, g)
	}
	return gpus
}

// cards are the folders of the graphics devices of one vendor.
func (p Prober) cards(vendor string) []string {
	var found []string
	files, _ := fs.Glob(p.Root, "sys/class/drm/card*/device/vendor")
	for _, file := range files {
		card := path.Base(path.Dir(path.Dir(file)))
		if strings.Contains(card, "-") { // card0-HDMI-A-1 is a connector
			continue
		}
		if p.text(file) == vendor {
			found = append(found, path.Dir(file))
		}
	}
	return found
}

// unify marks the main memory as shared where a GPU says that it uses it.
func (p Prober) unify(i *Info) {
	for _, g := range i.GPUs {
		if g.Unified && g.Vendor == "nvidia" { // Jetson, GB10; an Intel GPU is too slow to plan for
			i.Memory.Unified = true
		}
	}
}
