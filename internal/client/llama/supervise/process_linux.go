package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// startOf is when a process started: the boot, and the clock ticks since
// (proc_pid_stat(5), field 22). A zombie counts as gone.
func startOf(pid int) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The name in parentheses may hold anything, so count from its end.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", errors.New("read process state: too short")
	}
	if state := fields[0][0]; state == 'Z' || state == 'X' {
		return "", errors.New("the process has ended")
	}
	return strings.TrimSpace(string(boot)) + " " + string(fields[19]), nil
}
