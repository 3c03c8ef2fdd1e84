package supervise_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pawgate/internal/client/llama/llamatest"
	"pawgate/internal/client/llama/supervise"
)

// TestHelperSupervisor is a process that starts a server and waits to be
// killed. It is no test: TestKill9 runs it.
func TestHelperSupervisor(t *testing.T) {
	dir := os.Getenv("SUPERVISE_DIR")
	if dir == "" {
		t.Skip("only as the child of another test")
	}
	cfg := config(t)
	cfg.Dir = dir
	s, err := supervise.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	start(t, s, spec("a", os.Getenv("SUPERVISE_PROGRAM")))
	if err := os.WriteFile(filepath.Join(dir, "up"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
}

// killed starts a supervisor with a server in another process and kills it.
func killed(t *testing.T, dir, mode string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=TestHelperSupervisor$")
	cmd.Env = append(os.Environ(), "SUPERVISE_DIR="+dir, "SUPERVISE_PROGRAM="+llamatest.Program(t, llamatest.Shebang, mode))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the other process is up", func() bool { _, err := os.Stat(filepath.Join(dir, "up")); return err == nil })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// The sidecar is killed, its model server lives on: the next one adopts it,
// and can stop it.
func TestKill9_INF_07_adopted(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	killed(t, cfg.Dir, "ok")
	if alive, _ := running(t, cfg.Dir+"/llamafile"); len(alive) != 1 {
		t.Fatalf("the server should have survived: %q", alive)
	}
	s := open(t, cfg)
	until(t, "adopted", func() bool { return state(s, "a") == supervise.Ready })
	lease, err := s.Lease("a")
	if err != nil {
		t.Fatal(err)
	}
	lease.Release()
	if !stop(t, s, "a") {
		t.Error("nothing stopped")
	}
	until(t, "gone", func() bool { alive, _ := running(t, cfg.Dir+"/llamafile"); return len(alive) == 0 })
}

func TestKill9_adopted_server_crashes(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	killed(t, cfg.Dir, "ok")
	s := open(t, cfg)
	until(t, "adopted", func() bool { return state(s, "a") == supervise.Ready })
	_ = syscall.Kill(-recorded(t, cfg.Dir).Process.PID, syscall.SIGKILL)
	until(t, "restarted", func() bool { v := s.List(); return len(v) == 1 && v[0].State == supervise.Ready && v[0].Restarts == 1 })
}

type recordFile struct {
	State   string
	Process struct {
		PID   int
		Start string
	}
}

func recorded(t *testing.T, dir string) recordFile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "llamafile-a.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r recordFile
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A process that got the id of the old server is left alone.
func TestKill9_INF_07_reused_id(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	killed(t, cfg.Dir, "ok")
	old := recorded(t, cfg.Dir)
	_ = syscall.Kill(-old.Process.PID, syscall.SIGKILL)
	bystander := exec.Command("/bin/sleep", "60")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bystander.Process.Kill(); _ = bystander.Wait() })
	replace(t, cfg.Dir, old.Process.PID, bystander.Process.Pid)
	s := open(t, cfg)
	if got := s.List(); len(got) != 0 {
		t.Errorf("listed: %+v", got)
	}
	if err := bystander.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the bystander was ended: %v", err)
	}
}

// replace puts another process id into the record.
func replace(t *testing.T, dir string, old, id int) {
	t.Helper()
	path := filepath.Join(dir, "llamafile-a.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	process := r["process"].(map[string]any)
	if process["pid"] != float64(old) {
		t.Fatalf("record: %v", process)
	}
	process["pid"] = id
	if b, err = json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Two processes on one host: each sees, joins and stops the other's servers;
// the last one out ends them.
func TestShared(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	first, second := open(t, cfg), open(t, cfg)
	sp := spec("a", llamatest.Program(t, llamatest.Shebang, "load:200ms"))
	start(t, first, sp)
	if v := start(t, second, sp); v.State != supervise.Ready {
		t.Errorf("joined: %+v", v)
	}
	lease, err := second.Lease("a")
	if err != nil {
		t.Fatal(err)
	}
	lease.Release()
	if alive, _ := running(t, cfg.Dir); len(alive) != 1 {
		t.Errorf("processes: %q", alive)
	}
	if !stop(t, second, "a") || state(first, "a") != "" {
		t.Errorf("the second did not stop the first's server: %q", state(first, "a"))
	}
	start(t, first, sp)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "handed over", func() bool { return state(second, "a") == supervise.Ready })
	if alive, _ := running(t, cfg.Dir); len(alive) != 1 {
		t.Errorf("processes after the first left: %q", alive)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if alive, _ := running(t, cfg.Dir); len(alive) != 0 {
		t.Errorf("processes after the last left: %q", alive)
	}
}
