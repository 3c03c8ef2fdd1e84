package hub

import (
	"os"
	"syscall"
	"testing"
)

// smallDisk mounts a disk of one megabyte; ok is false where it may not.
func smallDisk(t *testing.T) (dir string, ok bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		return "", false
	}
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=1m"); err != nil {
		return "", false
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, true
}
