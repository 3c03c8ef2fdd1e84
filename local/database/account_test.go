//go:build linux || darwin

package database

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// nobody is an ordinary user to run as; only root can.
func nobody(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}

func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	as := nobody(t)
	dir := clusterDir(t)
	check(t, os.Chown(dir, int(as.Uid), int(as.Gid)))
	p := begin(t, dir, as)
	url := p.url()
	if got := query[string](t, url, "SELECT current_user::text"); got != appRole {
		t.Errorf("user is %q, want %q", got, appRole)
	}
	proc, ok := describe(serverPID(t, dir))
	if !ok || proc.uid != as.Uid {
		t.Errorf("server runs as user %d, want %d", proc.uid, as.Uid)
	}
	// Even root does not work in another user's folder: what it made there, the owner could not use.
	if _, err := Start(t.Context(), Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "run pawgate as its owner") {
		t.Errorf("error of another user is %v, want whose the folder is", err)
	}
	p.leave()
	wantDown(t, dir)
}

// Installing a package brings an account postgres; the data stays whose it was.
func TestOwnerOfDataStays(t *testing.T) {
	t.Parallel()
	as := nobody(t)
	dir := seededDir(t)
	out, err := exec.Command("chown", "-R", "65534:65534", homeOf(dir).data()).CombinedOutput()
	if err != nil {
		t.Fatalf("chown: %v: %s", err, out)
	}
	startHere(t, dir)
	proc, ok := describe(serverPID(t, dir))
	if !ok || proc.uid != as.Uid {
		t.Errorf("server runs as user %d, want %d", proc.uid, as.Uid)
	}
}

func TestRootGivesUpItsRights(t *testing.T) {
	t.Parallel()
	nobody(t)
	dir := seededDir(t)
	startHere(t, dir)
	proc, ok := describe(serverPID(t, dir))
	if !ok || proc.uid == 0 {
		t.Errorf("server runs as user %d, want an ordinary one", proc.uid)
	}
	for name, want := range map[string]os.FileMode{
		".": 0o710, "data": 0o700, "run": 0o700, "log": 0o700, "password": 0o600, "lock.control": 0o600, "start.log": 0o600,
	} {
		st, err := os.Stat(homeOf(dir).path(name))
		check(t, err)
		if st.Mode().Perm() != want {
			t.Errorf("mode of %s is %o, want %o", name, st.Mode().Perm(), want)
		}
	}
}

// Another user of the machine gets in neither with nor without the password.
func TestStrangers(t *testing.T) {
	t.Parallel()
	as := nobody(t)
	connectAs := func(as *syscall.Credential, url string) string {
		cmd := exec.Command(program(t, as))
		cmd.Env = []string{connectURL + "=" + url}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
		out, err := cmd.CombinedOutput()
		if err == nil {
			return "connected"
		}
		return fmt.Sprintf("%v: %s", err, out)
	}
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		dir := seededDir(t)
		c := startHere(t, dir)
		if got := connectAs(nil, c.URL()); got != "connected" {
			t.Fatalf("the owner: %s", got)
		}
		if homeOf(dir).who.uid == as.Uid {
			t.Skip("needs an account postgres, or the stranger is the server itself")
		}
		if got := connectAs(as, c.URL()); !strings.Contains(got, "permission denied") {
			t.Errorf("a stranger with the password: %s", got)
		}
	})
	t.Run("port", func(t *testing.T) {
		t.Parallel()
		c := startHere(t, longDir(t))
		wrong := c.server.at.url(appRole, "guess", dbName)
		if got := connectAs(as, wrong); !strings.Contains(got, "password authentication failed") {
			t.Errorf("a stranger without the password: %s", got)
		}
		none := c.server.at.url(adminRole, "", "postgres")
		if got := connectAs(as, none); got == "connected" {
			t.Error("a stranger got in without a password")
		}
	})
}

// Root's own folders are closed to the server's account.
func TestUnreachableFolder(t *testing.T) {
	t.Parallel()
	nobody(t)
	closed := filepath.Join(tempDir(t), "closed")
	check(t, os.Mkdir(closed, 0o700))
	dir, spare := filepath.Join(closed, "data"), filepath.Join(tempDir(t), "spare")
	at := site{spare: spare, programs: programFolders(), onPath: true, hasty: true}
	t.Cleanup(func() { endServer(dir) })
	for range 2 {
		c, err := start(t.Context(), Config{Dir: dir}, at)
		check(t, err)
		if got := homeOf(dir).dir; filepath.Dir(got) != spare {
			t.Errorf("cluster is in %s, want it under %s", got, spare)
		}
		check(t, c.Close(t.Context()))
	}
	// The folder is lost, as when only the link is on a volume; then the choice of place still holds.
	check(t, os.RemoveAll(spare))
	c, err := start(t.Context(), Config{Dir: dir}, at)
	check(t, err)
	check(t, c.Close(t.Context()))
	wantDown(t, dir)
}

func TestSpareFor(t *testing.T) {
	t.Parallel()
	if got, want := spareFor("/srv/x"), filepath.Join(systemDir(), "clusters"); got != want {
		t.Errorf("spare is %s, want %s", got, want)
	}
	if got := spareFor(t.TempDir()); !strings.HasPrefix(got, os.TempDir()) {
		t.Errorf("spare of a temporary folder is %s, want it temporary too", got)
	}
}

func TestSpareOfSomebodyElse(t *testing.T) {
	t.Parallel()
	as := nobody(t)
	spare := filepath.Join(tempDir(t), "spare")
	check(t, os.Mkdir(spare, 0o777))
	check(t, os.Chown(spare, int(as.Uid), int(as.Gid)))
	closed := t.TempDir()
	check(t, os.Chmod(closed, 0o700))
	if _, err := openHome(closed, spare, discard()); err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("error is %v, want whose the folder is", err)
	}
}

func TestCanEnter(t *testing.T) {
	t.Parallel()
	base := tempDir(t)
	self := account{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	other := account{uid: 4000001, gid: 4000002}
	for _, tt := range []struct {
		mode        os.FileMode
		self, other bool
	}{
		{0o700, true, false}, {0o711, true, true}, {0o710, true, false}, {0o600, false, false}, {0o055, false, true}, {0o777, true, true},
	} {
		check(t, os.Chmod(base, tt.mode))
		if got := self.canEnter(base); got != tt.self {
			t.Errorf("mode %o: the owner can enter: %v, want %v", tt.mode, got, tt.self)
		}
		if got := other.canEnter(base); got != tt.other {
			t.Errorf("mode %o: another can enter: %v, want %v", tt.mode, got, tt.other)
		}
	}
	check(t, os.Chmod(base, 0o700))
	inner := filepath.Join(base, "inner")
	check(t, os.Mkdir(inner, 0o777))
	if other.canEnter(inner) {
		t.Error("another can enter a folder below a closed one")
	}
	if self.canEnter(filepath.Join(base, "missing")) {
		t.Error("a missing folder can be entered")
	}
}
