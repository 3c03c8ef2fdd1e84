package database

import (
	"fmt"
	"os/exec"
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

// alive reports whether the process exists; launchd waits for orphans at once, so none stays dead and listed.
func alive(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

func describe(pid int) (process, bool) {
	out, err := exec.Command("/bin/ps", "-ww", "-o", "pid=,uid=,command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return process{}, false
	}
	return parseProcess(string(out))
}

func processes() ([]process, error) {
	out, err := exec.Command("/bin/ps", "-axww", "-o", "pid=,uid=,command=").Output()
	if err != nil {
		return nil, fmt.Errorf("run ps: %w", err)
	}
	var all []process
	for line := range strings.Lines(string(out)) {
		if p, ok := parseProcess(line); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// parseProcess reads one line of ps: two numbers, then the command with its own spaces.
func parseProcess(line string) (process, bool) {
	pidText, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	uidText, command, _ := strings.Cut(strings.TrimSpace(rest), " ")
	pid, err1 := strconv.Atoi(pidText)
	uid, err2 := strconv.ParseInt(uidText, 10, 64) // Signed: nobody is -2.
	if err1 != nil || err2 != nil {
		return process{}, false
	}
	return process{pid: pid, uid: uint32(uid), command: strings.TrimSpace(command)}, true
}
