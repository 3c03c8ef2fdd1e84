//go:build linux || darwin

package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// ensureData makes the data folder unless it is there whole. It is made aside and renamed when complete, so a folder
// "data" is never half a cluster of ours, however initdb ended.
func (s *server) ensureData(ctx context.Context, pg binaries) error {
	h := s.home
	if h.hasData() {
		return nil
	}
	if err := h.clearLeftovers(s.log); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(h.dir, "init-*")
	if err != nil {
		return fmt.Errorf("make data: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // What stays, the next initdb clears.
	pwfile := filepath.Join(dir, "password")
	if err := h.writePasswordFile(pwfile, s.pass); err != nil {
		return err
	}
	if err := h.who.give(dir); err != nil {
		return err
	}
	if err := s.initdb(ctx, pg, filepath.Join(dir, "data"), pwfile); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, "data"), h.data()); err != nil {
		return fmt.Errorf("make data: %w", err)
	}
	s.log.Info("database made", "dir", h.data(), "postgres", pg.major)
	return syncDir(h.dir)
}

func (h home) hasData() bool {
	for _, name := range []string{"PG_VERSION", "global/pg_control"} {
		if st, err := os.Lstat(filepath.Join(h.data(), name)); err != nil || st.Size() == 0 {
			return false
		}
	}
	return true
}

// clearLeftovers removes what a killed initdb left. A data folder that is none is moved aside, never deleted: it may
// be somebody's half-restored backup.
func (h home) clearLeftovers(log *slog.Logger) error {
	old, err := filepath.Glob(h.path("init-*"))
	if err != nil {
		return fmt.Errorf("clear leftovers: %w", err)
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("clear leftovers: %w", err)
		}
	}
	err = os.Remove(h.data()) // An empty folder, or a dangling link.
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	aside, err := os.MkdirTemp(h.dir, "unusable-*")
	if err != nil {
		return fmt.Errorf("move unusable data aside: %w", err)
	}
	if err := os.Rename(h.data(), filepath.Join(aside, "data")); err != nil {
		return fmt.Errorf("move unusable data aside: %w", err)
	}
	log.Warn("the data folder held no complete database; it was moved aside and a new one is made", "to", aside)
	return nil
}

func (h home) writePasswordFile(path string, pass secret) error {
	if err := writeFile(path, pass.password(adminRole)+"\n"); err != nil {
		return fmt.Errorf("pass password to initdb: %w", err)
	}
	if h.who.other {
		if err := os.Lchown(path, int(h.who.uid), int(h.who.gid)); err != nil {
			return fmt.Errorf("pass password to initdb: %w", err)
		}
	}
	return nil
}

// initdb runs the program with the first character type the system knows. Collation is C everywhere: it is fast, the
// same on every system, and no upgrade of the system's library can change it under an index. The character type must
// know Unicode, or pg_trgm sees no letters in Chinese and lower() none with accents.
func (s *server) initdb(ctx context.Context, pg binaries, data, pwfile string) error {
	ctypes := []string{"C.UTF-8", "en_US.UTF-8", "C"}
	if runtime.GOOS == "darwin" {
		ctypes = slices.Insert(ctypes, 1, "UTF-8")
	}
	var said string
	for _, ctype := range ctypes {
		out, err := s.runInitdb(ctx, pg, data, pwfile, ctype)
		if err == nil {
			if ctype == "C" {
				s.log.Warn("no UTF-8 locale on this system: searching text that is not English will find less")
			}
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("make data: %w", context.Cause(ctx))
		}
		if !strings.Contains(out, "locale") {
			return fmt.Errorf("make data: initdb of %s: %w: %s", pg.dir, err, lastLines(out))
		}
		said = out
		if err := os.RemoveAll(data); err != nil {
			return fmt.Errorf("make data: %w", err)
		}
	}
	return fmt.Errorf("make data: initdb of %s knows no usable locale: %s", pg.dir, lastLines(said))
}

// runInitdb lets initdb inherit the server's lock, so that when this process is killed the next one waits for the
// orphan to end instead of working beside it.
func (s *server) runInitdb(ctx context.Context, pg binaries, data, pwfile, ctype string) (string, error) {
	guard, err := s.home.lockServer(ctx)
	if err != nil {
		return "", err
	}
	defer guard.close()
	args := []string{"-D", data, "-U", adminRole, "--pwfile", pwfile, "--auth=scram-sha-256", "--encoding=UTF8",
		"--locale=C", "--lc-ctype=" + ctype, "--locale-provider=libc", "--data-checksums", "--no-instructions"}
	if s.site.hasty {
		args = append(args, "--no-sync")
	}
	cmd := s.home.who.command(ctx, pg.program("initdb"), args...)
	cmd.ExtraFiles = []*os.File{guard.file}
	cmd.WaitDelay = 5 * time.Second
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}
