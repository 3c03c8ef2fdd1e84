package hardware

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// cgroups applies the limits of control groups (cgroups(7)): version 2, and
// version 1 or the mixture of both that older systems have. A limit of any
// ancestor holds, so every level is read and the least one wins.
func (p Prober) cgroups(i *Info) {
	text, err := fs.ReadFile(p.Root, "proc/self/cgroup")
	if err != nil {
		i.note("the limits of a container are unknown: /proc/self/cgroup cannot be read")
		return
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if fields[0] == "0" && fields[1] == "" {
			p.unifiedGroup(i, fields[2])
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			switch controller {
			case "memory":
				p.legacyMemory(i, fields[2])
			case "cpu":
				p.legacyCPU(i, fields[1], fields[2])
			}
		}
	}
}

func (p Prober) unifiedGroup(i *Info, group string) {
	for dir := range p.levels("sys/fs/cgroup", group) {
		if limit, ok := p.number(path.Join(dir, "memory.max")); ok { // "max" is no number
			used, _ := p.number(path.Join(dir, "memory.current"))
			i.limitMemory("cgroup v2", limit, used-p.statistic(dir, "inactive_file"))
		}
		if quota, period, ok := strings.Cut(p.text(path.Join(dir, "cpu.max")), " "); ok {
			i.limitCPU(quota, period)
		}
	}
}

func (p Prober) legacyMemory(i *Info, group string) {
	for dir := range p.levels("sys/fs/cgroup/memory", group) {
		if limit, ok := p.number(path.Join(dir, "memory.limit_in_bytes")); ok {
			used, _ := p.number(path.Join(dir, "memory.usage_in_bytes"))
			i.limitMemory("cgroup v1", limit, used-p.statistic(dir, "total_inactive_file"))
		}
	}
}

func (p Prober) legacyCPU(i *Info, controllers, group string) {
	for _, mount := range []string{"sys/fs/cgroup/cpu", "sys/fs/cgroup/" + controllers} {
		for dir := range p.levels(mount, group) {
			i.limitCPU(p.text(path.Join(dir, "cpu.cfs_quota_us")), p.text(path.Join(dir, "cpu.cfs_period_us")))
		}
	}
}

// levels yields the folders of a group from its own up to the mount. Inside a
// container the group's path is often the host's, while the mount shows only
// the container's own part; then the mount itself is all there is.
func (p Prober) levels(mount, group string) func(func(string) bool) {
	return func(yield func(string) bool) {
		group = path.Clean("/" + group)
		for ; group != "/"; group = path.Dir(group) {
			if !yield(mount + group) {
				return
			}
		}
		yield(mount)
	}
}

// limitMemory keeps the tightest limit. A limit above the machine's memory,
// such as version 1's "unlimited", is none.
func (i *Info) limitMemory(from string, limit, used int64) {
	if limit <= 0 || i.Memory.Total != nil && limit >= *i.Memory.Total {
		return
	}
	free := max(limit-max(used, 0), 0)
	if i.Memory.Limit == nil || limit < *i.Memory.Limit {
		i.Memory.Limit, i.Memory.LimitFrom = new(limit), from
	}
	if i.Memory.LimitFree == nil || free < *i.Memory.LimitFree {
		i.Memory.LimitFree = new(free)
	}
}

func (i *Info) limitCPU(quota, period string) {
	q, err1 := strconv.ParseFloat(quota, 64) // "max" and −1 are no limit
	per, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || q <= 0 || per <= 0 {
		return
	}
	if cores := q / per; i.CPU.Usable == nil || cores < *i.CPU.Usable {
		i.CPU.Usable = new(cores)
	}
}

func (p Prober) text(name string) string {
	b, err := fs.ReadFile(p.Root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (p Prober) number(name string) (int64, bool) {
	n, err := strconv.ParseInt(p.text(name), 10, 64)
	return n, err == nil
}

// statistic reads one line of memory.stat: page cache that the kernel drops
// before it refuses memory does not count as used.
func (p Prober) statistic(dir, key string) int64 {
	for line := range strings.Lines(p.text(path.Join(dir, "memory.stat"))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == key {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}
