//go:build !linux && !darwin

package supervise

import (
	"errors"
	"os"
	"time"
)

// Model servers need process groups and file locks as Unix has them. On other
// systems a host has no servers: Open succeeds, Start says why not.
var errUnsupported = errors.New("model servers need Linux or macOS")

type child struct {
	id   identity
	done chan struct{}
	exit exit
}

type exit struct {
	known bool
	code  int
}

func (exit) killed() bool { return false }

func launch(string, []string, []string, *os.File) (*child, bool, error) {
	return nil, false, errUnsupported
}

func adopt(identity) *child { return &child{done: make(chan struct{})} }

func (*child) terminate(time.Duration) {}
func (*child) alive() bool             { return false }
func (identity) running() bool         { return false }

var errLocked = errors.New("locked by another process")

type lock struct{}

func tryLock(string) (*lock, error)    { return &lock{}, nil }
func lockShared(string) (*lock, error) { return &lock{}, nil }
func (*lock) upgrade() bool            { return true }
func (*lock) release() error           { return nil }
