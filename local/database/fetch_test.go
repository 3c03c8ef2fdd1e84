//go:build linux || darwin

package database

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// wrappedPrograms is an archive like those that are fetched, of scripts that run the installed programs, and the
// number of times it was asked for.
func wrappedPrograms(t *testing.T, pg binaries) (*httptest.Server, *int) {
	t.Helper()
	base := t.TempDir()
	check(t, os.Mkdir(filepath.Join(base, "bin"), 0o700)) // As a strict umask would have it.
	for _, name := range []string{"postgres", "initdb", "pg_ctl"} {
		script := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\"\n", pg.program(name))
		check(t, os.WriteFile(filepath.Join(base, "bin", name), []byte(script), 0o700))
	}
	txz := filepath.Join(t.TempDir(), "programs.txz")
	if out, err := exec.Command("tar", "-cJf", txz, "-C", base, "bin").CombinedOutput(); err != nil {
		t.Fatalf("pack programs: %v: %s", err, out)
	}
	packed, err := os.ReadFile(txz)
	check(t, err)
	var jar bytes.Buffer
	z := zip.NewWriter(&jar)
	w, err := z.Create("postgres.txz")
	check(t, err)
	_, err = w.Write(packed)
	check(t, err)
	check(t, z.Close())
	asked := 0
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.URL.Path, fmt.Sprintf("/%d.", pg.major)):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			_, _ = fmt.Fprintf(w, "%x", sha256.Sum256(jar.Bytes()))
		default:
			asked++
			_, _ = w.Write(jar.Bytes())
		}
	}))
	t.Cleanup(repository.Close)
	return repository, &asked
}

// The server of fetched programs runs, also as root, and the next start fetches nothing.
func TestFetchedPrograms(t *testing.T) {
	haveProgram(t, "xz")
	t.Setenv("TMPDIR", tempDir(t)) // The library leaves its log there.
	dir := seededDir(t)            // Its version says what to fetch.
	check(t, os.MkdirAll(filepath.Join(dir, "postgres", "fetch-killed", "cache"), 0o700))
	h := homeOf(dir)
	pg, err := findBinaries(t.Context(), h, site{programs: programFolders(), onPath: true}, discard())
	check(t, err)
	repository, asked := wrappedPrograms(t, pg)
	for range 2 {
		c, err := start(t.Context(), Config{Dir: dir}, site{repository: repository.URL, hasty: true})
		check(t, err)
		if n := query[int](t, c.URL(), "SELECT 1"); n != 1 {
			t.Errorf("query gives %d, want 1", n)
		}
		check(t, c.Close(context.Background()))
		wantDown(t, dir)
	}
	if *asked != 1 {
		t.Errorf("the archive was fetched %d times, want once", *asked)
	}
	wantNames(t, dir, []string{"binaries"})
}

func TestNothingToFetch(t *testing.T) {
	t.Setenv("TMPDIR", tempDir(t))
	dir := clusterDir(t)
	repository := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(repository.Close)
	_, err := start(t.Context(), Config{Dir: dir}, site{repository: repository.URL})
	if err == nil || !strings.Contains(err.Error(), "install the package postgresql, or set DATABASE_URL") {
		t.Errorf("error is %v, want what to do", err)
	}
	wantNames(t, dir, nil)
}

// A fetch ends with its context, even if nothing ever answers.
func TestCancelledFetch(t *testing.T) {
	t.Setenv("TMPDIR", tempDir(t))
	dir := clusterDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	hang := make(chan struct{})
	repository := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		cancel()
		<-hang
	}))
	t.Cleanup(repository.Close)
	t.Cleanup(func() { close(hang) })
	_, err := start(ctx, Config{Dir: dir}, site{repository: repository.URL})
	if err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("error is %v, want the cancellation", err)
	}
}
