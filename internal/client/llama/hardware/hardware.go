// Package hardware finds out what a host offers to a local model: processors,
// memory, accelerators, and the limits that a container puts on them.
//
// What cannot be found out is unknown (a nil number, the word "unknown", a
// note that says why); it is never guessed, never zero. A memory limit counts
// before the memory of the machine, because a process that exceeds it is
// killed although the machine has plenty.
//
// It reads files and asks the vendors' tools; it changes nothing and caches
// nothing.
package hardware

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Unknown stands for a text that could not be found out.
const Unknown = "unknown"

// Info is what a host offers. Sizes are in bytes; a nil number is unknown.
type Info struct {
	OS     string   `json:"os"`   // as in GOOS
	Arch   string   `json:"arch"` // as in GOARCH
	CPU    CPU      `json:"cpu"`
	Memory Memory   `json:"memory"`
	GPUs   []GPU    `json:"gpus"`
	Notes  []string `json:"notes"` // what is unknown, and why
}

// CPU is the processors.
type CPU struct {
	Model         string   `json:"model"`
	PhysicalCores *int     `json:"physical_cores"`
	LogicalCores  *int     `json:"logical_cores"`
	Usable        *float64 `json:"usable_cores"` // what affinity and cgroup quota leave
	Features      []string `json:"features"`     // those that decide the speed of a model
}

// Memory is the main memory.
type Memory struct {
	Total     *int64 `json:"total_bytes"`     // of the machine
	Available *int64 `json:"available_bytes"` // of the machine, without swapping
	Limit     *int64 `json:"limit_bytes"`     // of the cgroup; nil where there is none
	LimitFree *int64 `json:"limit_free_bytes"`
	LimitFrom string `json:"limit_from"` // cgroup v1, cgroup v2 or none
	Unified   bool   `json:"unified"`    // shared by processors and accelerators
}

// Usable is how much a process may still allocate: the least of what the
// machine and the cgroup leave; nil when neither is known.
func (m Memory) Usable() *int64 {
	switch {
	case m.Available == nil:
		return m.LimitFree
	case m.LimitFree == nil:
		return m.Available
	}
	return new(min(*m.Available, *m.LimitFree))
}

// GPU is one accelerator.
type GPU struct {
	Vendor  string `json:"vendor"` // nvidia, amd, intel or apple
	Name    string `json:"name"`
	Total   *int64 `json:"memory_bytes"`
	Free    *int64 `json:"memory_free_bytes"`
	Unified bool   `json:"unified"` // its memory is the main memory
	Driver  string `json:"driver"`
	Source  string `json:"source"` // what told: nvidia-smi, rocm-smi, sysfs, procfs, sysctl
}

// Run starts a program and returns what it printed. A program that is not
// installed is exec.ErrNotFound.
type Run func(ctx context.Context, name string, args ...string) ([]byte, error)

// Prober looks at one host.
type Prober struct {
	Root   fs.FS // the root of the file system
	Run    Run
	OS     string // as in GOOS
	Arch   string // as in GOARCH
	Online int    // processors that this process may use, 0 if unknown
}

// commandTimeout bounds a vendor's tool: a broken driver makes them hang.
const commandTimeout = 4 * time.Second

// Host looks at the machine that this process runs on.
func Host() Prober {
	return Prober{Root: os.DirFS("/"), Run: runCommand, OS: runtime.GOOS, Arch: runtime.GOARCH, Online: runtime.NumCPU()}
}

func runCommand(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	return cmd.Output()
}

// Read looks at the host. It does not fail: what cannot be read is unknown.
func (p Prober) Read(ctx context.Context) Info {
	i := &Info{OS: p.OS, Arch: p.Arch, GPUs: []GPU{}, Notes: []string{},
		CPU:    CPU{Model: Unknown, Features: []string{}},
		Memory: Memory{LimitFrom: "none"}}
	switch p.OS {
	case "linux":
		p.linux(ctx, i)
	case "darwin":
		p.darwin(ctx, i)
	default:
		if p.Online > 0 {
			i.CPU.LogicalCores = new(p.Online)
		}
		i.note("hardware detection is not available on " + p.OS)
	}
	return *i
}

func (i *Info) note(text string) { i.Notes = append(i.Notes, text) }

// ask runs a vendor's tool. A missing tool is no finding; a failing one is
// noted, because it usually means a broken driver.
func (p Prober) ask(ctx context.Context, i *Info, name string, args ...string) ([]byte, bool) {
	out, err := p.Run(ctx, name, args...)
	switch {
	case err == nil:
		return out, true
	case errors.Is(err, exec.ErrNotFound):
		return nil, false
	}
	i.note(name + " is installed but failed; what it would tell is unknown")
	return nil, false
}
