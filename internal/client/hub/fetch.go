package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"pawgate/internal/fault"
)

// Source is one file at one commit.
type Source struct {
	Repo, Revision string
	File
}

// partials is the folder, within the target, of files that are not whole yet.
const partials = ".partial"

// margin is the disk space that a download leaves free, in bytes.
const margin = 64 << 20

// tries is how often a download goes on after a break without progress.
const tries = 5

// fetch is one download.
type fetch struct {
	h        *Hub
	src      Source
	root     *os.Root
	part     *os.File
	sum      hash.Hash
	have     int64
	progress func(bytes int64)
}

// Fetch downloads a file into a folder, under its name without the path. It
// goes on where an earlier attempt ended. progress is told how much is there,
// often. It fails with InsufficientStorage, ChecksumMismatch, fault.InProgress
// when another process is at it, fault.Conflict when another file has the
// name, Gated, fault.NotFound, or fault.Unavailable; what was fetched until a
// break, or until ctx ended, is kept for the next attempt.
func (h *Hub) Fetch(ctx context.Context, src Source, root *os.Root, progress func(bytes int64)) error {
	if err := src.check(); err != nil {
		return err
	}
	if err := root.Mkdir(partials, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make download folder: %w", err)
	}
	unlock, err := lockFile(root, path.Join(partials, src.SHA256+".lock"))
	if errors.Is(err, errLocked) {
		return fault.Retry(fault.InProgress, 10*time.Second, "another process is downloading %s", src.Name())
	}
	if err != nil {
		return err
	}
	defer unlock()
	f := &fetch{h: h, src: src, root: root, sum: sha256.New(), progress: progress}
	if done, err := f.already(); done || err != nil {
		return err
	}
	if err := f.open(); err != nil {
		return err
	}
	defer f.part.Close()
	if err := f.space(); err != nil {
		return err
	}
	if err := f.all(ctx); err != nil {
		return err
	}
	return f.finish()
}

// check refuses what the hub cannot be held to.
func (s Source) check() error {
	switch {
	case CheckRepo("", s.Repo) != nil || CheckPath("", s.Path) != nil || !commit.MatchString(s.Revision):
		return fault.New(fault.Unavailable, "the model hub names the file in a way that is not safe to use")
	case !digest.MatchString(s.SHA256) || s.Size <= 0:
		return fault.New(fault.Unavailable, "the model hub states no size and SHA-256 of %s, so it could not be verified; choose another build", s.Name())
	}
	return nil
}

func (f *fetch) partPath() string { return path.Join(partials, f.src.SHA256) }

// already reports whether the very file is there under its name.
func (f *fetch) already() (bool, error) {
	info, err := f.root.Lstat(f.src.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for model: %w", err)
	}
	if info.Mode().IsRegular() && info.Size() == f.src.Size {
		file, err := f.root.Open(f.src.Name())
		if err != nil {
			return false, fmt.Errorf("open model: %w", err)
		}
		defer file.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, file); err != nil {
			return false, fmt.Errorf("read model: %w", err)
		}
		if hex.EncodeToString(sum.Sum(nil)) == f.src.SHA256 {
			f.progress(f.src.Size)
			return true, nil
		}
	}
	return false, fault.New(fault.Conflict, "another file named %s is on this host; the operator removes or renames it first", f.src.Name())
}

// open takes up what an earlier attempt left.
func (f *fetch) open() error {
	var err error
	if f.part, err = f.root.OpenFile(f.partPath(), os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return fmt.Errorf("open download: %w", err)
	}
	info, err := f.part.Stat()
	if err != nil {
		return fmt.Errorf("look at download: %w", err)
	}
	if info.Size() > f.src.Size {
		return f.restart()
	}
	if f.have, err = io.Copy(f.sum, f.part); err != nil {
		return fmt.Errorf("read download: %w", err)
	}
	f.progress(f.have)
	return nil
}

func (f *fetch) restart() error {
	if err := f.part.Truncate(0); err != nil {
		return fmt.Errorf("restart download: %w", err)
	}
	if _, err := f.part.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("restart download: %w", err)
	}
	f.sum.Reset()
	f.have = 0
	f.progress(0)
	return nil
}

// space refuses a download that would fill the disk.
func (f *fetch) space() error {
	free, err := f.h.limits.free(f.root.Name())
	if err != nil {
		return fmt.Errorf("look for disk space: %w", err)
	}
	if need := f.src.Size - f.have + margin; free < need {
		return fault.New(InsufficientStorage, "%s needs %d MiB more, with a margin, and the host's disk has %d MiB free; remove something or take a smaller model",
			f.src.Name(), need>>20, free>>20)
	}
	return nil
}

// finish gives the file its name once it is proved to be the right one.
func (f *fetch) finish() error {
	if got := hex.EncodeToString(f.sum.Sum(nil)); got != f.src.SHA256 {
		_ = f.root.Remove(f.partPath())
		return fault.New(ChecksumMismatch, "what the model hub sent of %s is not what it said (SHA-256 differs); it was removed, try again", f.src.Name())
	}
	if err := f.part.Sync(); err != nil {
		return fmt.Errorf("write download: %w", err)
	}
	// A link does not replace a file that came there in the meantime.
	err := f.root.Link(f.partPath(), f.src.Name())
	switch {
	case errors.Is(err, fs.ErrExist):
		return fault.New(fault.Conflict, "another file named %s has come to this host meanwhile", f.src.Name())
	case err != nil: // a file system without links
		if err := f.root.Rename(f.partPath(), f.src.Name()); err != nil {
			return fmt.Errorf("name download: %w", err)
		}
	default:
		if err := f.root.Remove(f.partPath()); err != nil {
			return fmt.Errorf("remove download: %w", err)
		}
	}
	f.src.remember(f.root)
	return syncDir(f.root)
}

func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("open model folder: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("write model folder: %w", err)
	}
	return nil
}
