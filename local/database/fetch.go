//go:build linux || darwin

package database

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// fetched is the version that a new cluster gets where none is installed.
const fetched = 17

// fetch brings the programs of one major version into the folder "binaries", whole or not at all.
func fetch(ctx context.Context, h home, repository string, major int, log *slog.Logger) (binaries, error) {
	if major == 0 {
		major = fetched
	}
	version, ok := map[int]embedded.PostgresVersion{15: embedded.V15, 16: embedded.V16, 17: embedded.V17, 18: embedded.V18}[major]
	if !ok {
		return binaries{}, fmt.Errorf("version %d is not offered", major)
	}
	if err := clearFetches(h); err != nil {
		return binaries{}, err
	}
	scratch, err := os.MkdirTemp(h.dir, "fetch-*")
	if err != nil {
		return binaries{}, fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }() // What stays, the next fetch clears.
	log.Info("no PostgreSQL is installed; fetching one", "version", version)
	if err := download(ctx, scratch, repository, version); err != nil {
		return binaries{}, err
	}
	if err := openUp(filepath.Join(scratch, "programs"), h.who); err != nil {
		return binaries{}, fmt.Errorf("open folder: %w", err)
	}
	if err := makeReachable(h.path("binaries"), h.who); err != nil {
		return binaries{}, err
	}
	target := h.path("binaries/" + strconv.Itoa(major))
	if err := os.RemoveAll(target); err != nil { // One that did not run, or it had been found.
		return binaries{}, fmt.Errorf("clear old programs: %w", err)
	}
	if err := os.Rename(filepath.Join(scratch, "programs"), target); err != nil {
		return binaries{}, fmt.Errorf("keep programs: %w", err)
	}
	b, ok := inspect(ctx, h.who, filepath.Join(target, "bin"))
	if !ok {
		return binaries{}, errors.New("the fetched programs do not run on this system")
	}
	return b, nil
}

func clearFetches(h home) error {
	old, err := filepath.Glob(h.path("fetch-*"))
	for _, dir := range old {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// download uses the library for what it does well, finding and unpacking the right archive, and stops it there: it
// has no call for that alone, so its data folder is one that cannot be made. It would otherwise start a server of its
// own, which it cannot do as root, nor share between processes.
func download(ctx context.Context, scratch, repository string, version embedded.PostgresVersion) error {
	wall := filepath.Join(scratch, "wall")
	if err := os.WriteFile(wall, nil, 0o600); err != nil {
		return fmt.Errorf("prepare fetch: %w", err)
	}
	port, err := home{dir: scratch}.choosePort(ctx, 0) // It refuses to go on while its port is taken.
	if err != nil {
		return err
	}
	cfg := embedded.DefaultConfig().Version(version).Port(uint32(port)).Logger(io.Discard).
		CachePath(filepath.Join(scratch, "cache")).RuntimePath(filepath.Join(scratch, "runtime")).
		BinariesPath(filepath.Join(scratch, "programs")).DataPath(filepath.Join(wall, "data"))
	if repository != "" {
		cfg = cfg.BinaryRepositoryURL(repository)
	}
	done := make(chan error, 1)
	go func() { // The library takes no context; a fetch given up ends with its connection.
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("unpack archive: %v", p)
			}
		}()
		done <- embedded.NewDatabase(cfg).Start()
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		return fmt.Errorf("fetch PostgreSQL: %w", context.Cause(ctx))
	}
	if _, missing := os.Stat(filepath.Join(scratch, "programs", "bin", "initdb")); missing != nil {
		return fmt.Errorf("fetch PostgreSQL: %w", err)
	}
	return nil
}

// openUp lets the server's account read and run what was unpacked under any umask.
func openUp(dir string, who account) error {
	if !who.other {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		mode := st.Mode().Perm() | 0o444
		if d.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}
