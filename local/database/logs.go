//go:build linux || darwin

package database

import (
	"io"
	"os"
	"slices"
	"strings"
)

// keepLogs bounds the folder log: that many files of 8 MB.
const keepLogs = 4

// logNames lists the server's log files, oldest first, as their names say.
func (h home) logNames() []string {
	entries, err := os.ReadDir(h.path("log"))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "postgresql-") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// pruneLogs removes the oldest files. One that cannot be removed is no reason not to serve.
func (h home) pruneLogs() {
	names := h.logNames()
	for len(names) > keepLogs {
		_ = os.Remove(h.path("log/" + names[0]))
		names = names[1:]
	}
}

// tail is what the server said last, for the error that its not starting makes, empty if it said nothing.
func (h home) tail() string {
	early, _ := os.ReadFile(h.path("start.log")) // Missing is nothing said.
	text := string(early)
	if names := h.logNames(); len(names) > 0 && !strings.Contains(text, "FATAL") {
		text += h.readLog(names[len(names)-1])
	}
	if text = lastLines(text); text == "" {
		return ""
	}
	return "; PostgreSQL said: " + text
}

// readLog stays within the folder log, which belongs to the server's account: a link planted there leads nowhere.
func (h home) readLog(name string) string {
	root, err := os.OpenRoot(h.path("log"))
	if err != nil {
		return ""
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() > 4096 {
		_, _ = f.Seek(-4096, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(f, 4096))
	return string(text)
}

// lastLines makes one line of the last few.
func lastLines(text string) string {
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	return strings.Join(lines[max(0, len(lines)-4):], " | ")
}
