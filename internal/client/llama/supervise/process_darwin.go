package supervise

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
)

// startOf is when a process started, as ps(1) tells it. A zombie counts as
// gone.
func startOf(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", err
	}
	state, start, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if start == "" || strings.HasPrefix(state, "Z") {
		return "", errors.New("the process has ended")
	}
	return strings.TrimSpace(start), nil
}
