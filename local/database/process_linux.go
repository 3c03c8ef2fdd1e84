package database

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// process is what tells one process from another.
type process struct {
	pid     int
	uid     uint32
	command string // its arguments, or the title it gave itself
}

// alive reports whether the process runs; one that is dead but not yet waited for by its parent does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The state follows the program's name, which is in brackets and may itself hold some (proc_pid_stat(5)).
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// describe reads /proc, since small images have no ps, and its cmdline, since cwd and exe of another account are
// closed to a container's root.
func describe(pid int) (process, bool) {
	dir := fmt.Sprintf("/proc/%d", pid)
	st, err := os.Stat(dir)
	if err != nil {
		return process{}, false
	}
	args, err := os.ReadFile(dir + "/cmdline")
	if err != nil || len(args) == 0 {
		return process{}, false
	}
	command := strings.TrimRight(strings.ReplaceAll(string(args), "\x00", " "), " ")
	return process{pid: pid, uid: st.Sys().(*syscall.Stat_t).Uid, command: command}, true
}

func processes() ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := describe(pid); ok {
			all = append(all, p)
		}
	}
	return all, nil
}
