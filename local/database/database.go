// Package database keeps the private PostgreSQL cluster that pawgate uses when no DATABASE_URL is set.
//
// Any number of processes (the local server, stdio shims) share one cluster, which lives in the folder "postgres" of
// PAWGATE_DATA. The first to come starts the server, the last one out stops it, and no process is special in between:
// each may be killed at any moment, the server too, and whoever lives on or starts next mends what was left. Three
// advisory locks (flock) carry this, since the kernel releases them however a process ends:
//
//   - lock.control, exclusive: held while somebody starts, restarts or stops the server, so these never overlap;
//   - lock.members, shared: held by every participant while it lives; whoever can take it exclusively is the last;
//   - lock.server, exclusive: held by the server's own processes through a descriptor they inherit, so "is any process
//     still at this data?" has an answer that no reused or zombie process number can falsify.
//
// A participant watches the server and starts it again, at the same address, when it dies.
//
// The server is reached through a Unix socket in a folder only its account can enter, or, where the path is too long
// for a socket, on a free port of 127.0.0.1; both ask for a password (SCRAM) that lies in a file only the owner of the
// folder can read. PostgreSQL refuses to run as root, so root's server runs as the account postgres, else nobody.
//
// The package never touches a database that it did not create, never listens on another address than loopback, never
// deletes data (an unusable data folder is moved aside), and never logs the password or the text of a statement.
package database

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
)

// Config says where the cluster lives.
type Config struct {
	// Dir is PAWGATE_DATA: the cluster is its subfolder "postgres". It is made when missing.
	Dir string
	// Log hears of starts, stops, restarts and of whatever a person should know. Nil is silence.
	Log *slog.Logger
}

// DefaultDir is the folder for pawgate's data when PAWGATE_DATA is not set. It depends on the user only, never on the
// working directory, so that every project shares it: $XDG_DATA_HOME/pawgate when that is set, else
// ~/.local/share/pawgate (XDG Base Directory Specification 0.8), ~/Library/Application Support/pawgate on macOS,
// %LocalAppData%\pawgate on Windows. For root it is a system folder, because no other account can enter root's home
// and PostgreSQL does not run as root.
func DefaultDir() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pawgate"), nil
	}
	if runtime.GOOS == "windows" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("find data folder: %w; set PAWGATE_DATA", err)
		}
		return filepath.Join(dir, "pawgate"), nil
	}
	if os.Geteuid() == 0 {
		return systemDir(), nil
	}
	home, err := homeDir()
	if err != nil {
		return "", err
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "pawgate"), nil
	}
	return filepath.Join(home, ".local", "share", "pawgate"), nil
}

// homeDir asks the user database when HOME is missing, as it is under some service managers and MCP hosts.
func homeDir() (string, error) {
	if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		return home, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("find home folder: %w; set PAWGATE_DATA", err)
	}
	if !filepath.IsAbs(u.HomeDir) {
		return "", errors.New("find home folder: the user has none; set PAWGATE_DATA")
	}
	return u.HomeDir, nil
}

// systemDir is where root's data lives: every account can reach it, none but root can change it.
func systemDir() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/pawgate"
	}
	return "/var/lib/pawgate"
}
