//go:build linux || darwin

package database

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// home is the folder of one cluster and the account its server runs as.
//
// Under root the folder and the files that root writes belong to root, and only data, run and log to the account: no
// link that a broken-into server plants can then lead root's writes elsewhere.
type home struct {
	dir string
	who account
}

func (h home) path(name string) string { return filepath.Join(h.dir, name) }
func (h home) data() string            { return h.path("data") }

// name tells this cluster's processes from every other cluster's in a list of processes.
func (h home) name() string { return "pawgate-" + shortHash(h.dir) }

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

// openHome finds or makes the folder "postgres" in dir. Where the server's account could not reach it, as in root's
// own home, the folder is made under spare instead and "postgres" becomes a link to it: the choice is then recorded
// where a person looks for the data, and it stays the same when rights change later.
func openHome(dir, spare string, log *slog.Logger) (home, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return home{}, fmt.Errorf("find data folder: %w", err)
	}
	link := filepath.Join(dir, "postgres")
	who := serverAccount(filepath.Join(link, "data"))
	if err := makeReachable(dir, who); err != nil {
		return home{}, err
	}
	real, err := filepath.EvalSymlinks(link)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeHome(link, spare, who, log); err == nil {
			real, err = filepath.EvalSymlinks(link)
		}
	}
	if err != nil {
		return home{}, fmt.Errorf("make data folder: %w; set PAWGATE_DATA to a folder you can write to", err)
	}
	h := home{dir: real, who: who}
	return h, h.secure()
}

// makeHome makes the folder, or the link and what it leads to. Several processes may be at it at once.
func makeHome(link, spare string, who account, log *slog.Logger) error {
	target := link
	if old, err := os.Readlink(link); err == nil {
		target = old // The link outlived its folder, as when only one of them is on a volume that is kept.
	} else if who.other && !who.canEnter(filepath.Dir(link)) {
		if spare, err = ownFolder(spare, who); err != nil {
			return err
		}
		target = filepath.Join(spare, shortHash(link))
		log.Warn("the database's account cannot enter PAWGATE_DATA; its data goes elsewhere",
			"account", who.name, "dir", filepath.Dir(link), "instead", target)
		if err := os.Symlink(target, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := makeReachable(filepath.Dir(target), who); err != nil {
		return err
	}
	if err := os.Mkdir(target, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// ownFolder makes a folder that nobody else may have made before us, as anybody could in a folder for temporary files.
func ownFolder(dir string, who account) (string, error) {
	if err := makeReachable(dir, who); err != nil {
		return "", err
	}
	if uid, ok := ownerOf(dir); !ok || int(uid) != os.Geteuid() {
		return "", fmt.Errorf("%s belongs to user %d: remove it", dir, uid)
	}
	return dir, nil
}

// spareFor is where the data of dir goes when the server's account cannot enter dir. What was meant to be temporary
// stays so.
func spareFor(dir string) string {
	temp := os.TempDir()
	if abs, err := filepath.Abs(dir); err == nil && strings.HasPrefix(abs, temp+string(filepath.Separator)) {
		return filepath.Join(temp, "pawgate-clusters")
	}
	return filepath.Join(systemDir(), "clusters")
}

// makeReachable makes dir and what is missing above it. Under root every account may pass through what it makes, and
// through root's own system folder even if that was made before, but not look around in it.
func makeReachable(dir string, who account) error {
	mode := os.FileMode(0o700)
	if who.other {
		mode = 0o711
	}
	st, err := os.Stat(dir)
	switch {
	case err == nil && !st.IsDir():
		return fmt.Errorf("make data folder: %s is not a folder", dir)
	case err == nil && who.other && dir == systemDir() && st.Mode()&0o001 == 0:
		return os.Chmod(dir, st.Mode().Perm()|0o011)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("make data folder: %w", err)
	}
	if err := makeReachable(filepath.Dir(dir), who); err != nil {
		return err
	}
	if err := os.Mkdir(dir, mode); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("make data folder: %w; set PAWGATE_DATA to a folder you can write to", err)
	}
	return os.Chmod(dir, mode) // Mkdir's mode was cut by the umask.
}

// secure checks that nobody else owns the folder and shuts others out. The account's group may pass, so that root's
// server can reach its own folders inside.
func (h home) secure() error {
	if uid, ok := ownerOf(h.dir); !ok || int(uid) != os.Geteuid() {
		return fmt.Errorf("use data folder: %s belongs to user %d, not to user %d: run pawgate as its owner, or set PAWGATE_DATA to another folder",
			h.dir, uid, os.Geteuid())
	}
	mode := os.FileMode(0o700)
	if h.who.other {
		mode = 0o710
		if err := os.Chown(h.dir, -1, int(h.who.gid)); err != nil {
			return fmt.Errorf("share folder with account %s: %w", h.who.name, err)
		}
	}
	if err := os.Chmod(h.dir, mode); err != nil {
		return fmt.Errorf("close folder: %w", err)
	}
	if h.who.other && !h.who.canEnter(h.dir) {
		return fmt.Errorf("use data folder: account %s, which runs PostgreSQL for root, cannot enter %s: let others pass (chmod o+x) through every folder above it", h.who.name, h.dir)
	}
	return nil
}

// prepare makes the folders that belong to the server's account.
func (h home) prepare() error {
	for _, name := range []string{"run", "log"} {
		if err := os.Mkdir(h.path(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make folder: %w", err)
		}
		if err := h.who.give(h.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes renames in a folder last through a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
