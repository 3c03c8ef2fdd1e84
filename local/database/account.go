//go:build linux || darwin

package database

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the operating-system user that the server runs as.
type account struct {
	name     string
	uid, gid uint32
	other    bool // not the user of this process: root gives its rights up for it
}

// serverAccount is the user of this process, or for root the owner of the data that is already there, else the first
// of the accounts made for this. The owner comes first so that installing a package later does not orphan the data.
func serverAccount(data string) account {
	self := account{name: strconv.Itoa(os.Geteuid()), uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	if self.uid != 0 {
		return self
	}
	if uid, ok := ownerOf(data); ok && uid != 0 {
		if u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
			return parseAccount(u)
		}
		return account{name: strconv.FormatUint(uint64(uid), 10), uid: uid, gid: uid, other: true}
	}
	for _, name := range []string{"postgres", "_postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return parseAccount(u)
		}
	}
	return account{name: "nobody", uid: 65534, gid: 65534, other: true}
}

// parseAccount reads the numbers as signed, since macOS writes nobody as -2.
func parseAccount(u *user.User) account {
	uid, _ := strconv.ParseInt(u.Uid, 10, 64)
	gid, _ := strconv.ParseInt(u.Gid, 10, 64)
	return account{name: u.Username, uid: uint32(uid), gid: uint32(gid), other: true}
}

// command is a program run as the account, in a session of its own so that a Ctrl-C meant for pawgate does not reach
// it, and without the caller's environment, whose PG variables would steer it.
func (a account) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "PATH=" + filepath.Dir(name) + ":/usr/local/bin:/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a.other {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	// The whole session, because initdb has children; a negative number means the group.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// give makes the account the owner of a folder of ours and shuts everybody else out.
func (a account) give(dir string) error {
	if a.other {
		if err := os.Lchown(dir, int(a.uid), int(a.gid)); err != nil {
			return fmt.Errorf("give folder to account %s: %w", a.name, err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close folder: %w", err)
	}
	return nil
}

// canEnter reports whether the account may pass through dir and every folder above it, judged by the mode bits.
func (a account) canEnter(dir string) bool {
	for {
		st, err := os.Stat(dir)
		if err != nil {
			return false
		}
		sys := st.Sys().(*syscall.Stat_t)
		bit := os.FileMode(0o001)
		switch {
		case sys.Uid == a.uid:
			bit = 0o100
		case sys.Gid == a.gid:
			bit = 0o010
		}
		if st.Mode()&bit == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// ownerOf is the user number that owns path, a link itself rather than what it leads to.
func ownerOf(path string) (uint32, bool) {
	st, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	return st.Sys().(*syscall.Stat_t).Uid, true
}
