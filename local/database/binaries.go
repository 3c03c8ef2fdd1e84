//go:build linux || darwin

package database

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// oldest is the first major version of PostgreSQL that pawgate's SQL is written for.
const oldest = 15

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// binaries is a folder with PostgreSQL's programs, all of one major version.
type binaries struct {
	dir   string
	major int
}

func (b binaries) program(name string) string { return filepath.Join(b.dir, name) }

// programFolders are where packages put PostgreSQL without adding it to PATH.
func programFolders() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
		"/usr/lib/postgresql*/bin",                           // openSUSE
		"/usr/libexec/postgresql*",                           // Alpine
		"/usr/pgsql-*/bin",                                   // PGDG for Red Hat
		"/usr/local/pgsql/bin",                               // built from source
		"/opt/homebrew/opt/postgresql*/bin",                  // Homebrew on Apple silicon
		"/usr/local/opt/postgresql*/bin",                     // Homebrew on Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",     // Homebrew on Linux
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
		"/opt/local/lib/postgresql*/bin",                     // MacPorts
	}
}

// findBinaries picks the programs: of the data's own version if there is data, else the newest found, else fetched.
func findBinaries(ctx context.Context, h home, at site, log *slog.Logger) (binaries, error) {
	want, err := h.dataVersion()
	if err != nil {
		return binaries{}, err
	}
	var found []binaries
	for _, dir := range candidates(ctx, h, at) {
		b, ok := inspect(ctx, h.who, dir)
		if ok && b.major == want {
			return b, nil
		}
		if ok && b.major >= oldest {
			found = append(found, b)
		}
	}
	if want == 0 && len(found) > 0 {
		return slices.MaxFunc(found, func(a, b binaries) int { return cmp.Compare(a.major, b.major) }), nil
	}
	b, err := fetch(ctx, h, at.repository, want, log)
	if err == nil {
		return b, nil
	}
	if want == 0 {
		return binaries{}, fmt.Errorf("find PostgreSQL: no version %d or newer is installed and none could be fetched: %w; install the package postgresql, or set DATABASE_URL", oldest, err)
	}
	return binaries{}, fmt.Errorf("find PostgreSQL: the data at %s is of version %d, which is not installed (found: %s) and could not be fetched: %w; install that version, or move the data away",
		h.data(), want, versions(found), err)
}

// dataVersion is the major version of the data that is there, 0 without.
func (h home) dataVersion() (int, error) {
	if !h.hasData() {
		return 0, nil
	}
	text, err := os.ReadFile(filepath.Join(h.data(), "PG_VERSION"))
	if err != nil {
		return 0, fmt.Errorf("read version of data: %w", err)
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read version of data: %w", err)
	}
	return v, nil
}

// candidates lists folders that may hold the programs, each once: what was fetched before comes last, so that an
// installed PostgreSQL with its security updates wins.
func candidates(ctx context.Context, h home, at site) []string {
	var dirs []string
	add := func(dir string) {
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
		if err == nil && !slices.Contains(dirs, filepath.Dir(real)) {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	if at.onPath {
		if path, err := exec.LookPath("postgres"); err == nil {
			add(filepath.Dir(path))
		}
		if path, err := exec.LookPath("pg_config"); err == nil {
			add(strings.TrimSpace(output(exec.CommandContext(ctx, path, "--bindir"))))
		}
	}
	for _, pattern := range append(slices.Clone(at.programs), h.path("binaries/*/bin")) {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			continue // Only a malformed pattern, of which there is none.
		}
		for _, dir := range matches {
			add(dir)
		}
	}
	return dirs
}

// inspect asks the program for its version, as the account that will run it: one that lies where the account cannot
// reach it is of no use.
func inspect(ctx context.Context, who account, dir string) (binaries, bool) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return binaries{}, false
	}
	said := output(who.command(ctx, filepath.Join(dir, "postgres"), "--version"))
	m := versionPattern.FindStringSubmatch(said)
	if m == nil {
		return binaries{}, false
	}
	major, err := strconv.Atoi(m[1])
	return binaries{dir: dir, major: major}, err == nil
}

// output is what a program says, nothing if it fails or takes long.
func output(cmd *exec.Cmd) string {
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}

func versions(found []binaries) string {
	if len(found) == 0 {
		return "none"
	}
	var list []string
	for _, b := range found {
		list = append(list, strconv.Itoa(b.major))
	}
	return strings.Join(list, ", ")
}
