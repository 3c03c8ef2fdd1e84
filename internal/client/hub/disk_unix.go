//go:build linux || darwin

package hub

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

var errLocked = errors.New("locked by another process")

// freeSpace is what an ordinary user may still write, in bytes.
func freeSpace(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// lockFile locks a file until unlock is called or the process dies. The file
// goes with the lock.
func lockFile(root *os.Root, name string) (unlock func(), err error) {
	for {
		file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil, fmt.Errorf("open lock: %w", err)
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = file.Close()
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			return nil, errLocked
		}
		ours, err1 := file.Stat()
		there, err2 := root.Stat(name)
		if err1 == nil && err2 == nil && os.SameFile(ours, there) {
			return func() { _ = root.Remove(name); _ = file.Close() }, nil
		}
		_ = file.Close() // who had it before removed it
	}
}
