//go:build !linux && !darwin

package hub

import (
	"errors"
	"math"
	"os"
)

var errLocked = errors.New("locked by another process")

// freeSpace is not known on this system; a full disk is noticed by writing.
func freeSpace(string) (int64, error) { return math.MaxInt64, nil }

// lockFile uses a file that must not exist yet. After a crash it stays, and
// the operator removes it.
func lockFile(root *os.Root, name string) (unlock func(), err error) {
	file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, errLocked
	}
	return func() { _ = file.Close(); _ = root.Remove(name) }, nil
}
