package supervise_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/client/llama/llamatest"
	"pawgate/internal/client/llama/supervise"
	"pawgate/internal/fault"
)

func config(t *testing.T) supervise.Config {
	t.Helper()
	return supervise.Config{Dir: t.TempDir(), Max: 2, StartTimeout: 10 * time.Second, StopTimeout: 2 * time.Second,
		Tick: 20 * time.Millisecond, Backoff: func(int) time.Duration { return time.Millisecond }}
}

func open(t *testing.T, cfg supervise.Config) *supervise.Supervisor {
	t.Helper()
	s, err := supervise.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func spec(name, program string, args ...string) supervise.Spec {
	return supervise.Spec{Kind: supervise.Llamafile, Name: name, Program: program, Args: args}
}

func start(t *testing.T, s *supervise.Supervisor, sp supervise.Spec) supervise.Server {
	t.Helper()
	v, err := s.Start(t.Context(), sp)
	if err != nil {
		t.Fatalf("start %s: %v", sp.Name, err)
	}
	return v
}

func stop(t *testing.T, s *supervise.Supervisor, name string) bool {
	t.Helper()
	ok, err := s.Stop(t.Context(), supervise.Llamafile, name)
	if err != nil {
		t.Fatalf("stop %s: %v", name, err)
	}
	return ok
}

// until waits for a state, which is looked at often and must come soon.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within 15 s: %s", what)
}

func state(s *supervise.Supervisor, name string) supervise.State {
	for _, v := range s.List() {
		if v.Name == name {
			return v.State
		}
	}
	return ""
}

// running are the processes whose command line holds a text, zombies too.
func running(t *testing.T, text string) (alive, zombies []string) {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		stat, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == fmt.Sprint(os.Getpid()) {
			zombies = append(zombies, f)
		}
		if strings.Contains(string(line), text) {
			alive = append(alive, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return alive, zombies
}

func TestStart_lives_and_stops(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := open(t, cfg)
	v := start(t, s, spec("a", llamatest.Program(t, llamatest.Shebang, "ok"), "-m", "x"))
	if v.State != supervise.Ready || v.Failure != nil {
		t.Fatalf("got %+v", v)
	}
	if p := v.Phases; p.Ready < p.Listening || p.Listening < p.Spawned || p.Ready == 0 {
		t.Errorf("phases: %+v", p)
	}
	lease, err := s.Lease("a")
	if err != nil {
		t.Fatal(err)
	}
	lease.Release()
	if resp, err := http.Get(lease.URL + "/props"); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("INF-13 without the key: %v %v", resp, err)
	}
	if !stop(t, s, "a") || stop(t, s, "a") {
		t.Error("the first stop stops something, the second nothing")
	}
	if got := s.List(); len(got) != 0 {
		t.Errorf("a clean unload leaves %+v", got)
	}
	if alive, _ := running(t, cfg.Dir); len(alive) > 0 {
		t.Errorf("still running: %q", alive)
	}
	if files, _ := filepath.Glob(filepath.Join(cfg.Dir, "*.key")); len(files) > 0 {
		t.Errorf("keys left: %q", files)
	}
}

func TestStart_fails_with_a_reason(t *testing.T) {
	t.Parallel()
	elf := func(t *testing.T) string { // a program for a processor that this is not
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		b[18], b[19] = 0xf3, 0 // RISC-V
		return write(t, b[:min(len(b), 1<<20)], 0o755)
	}
	fakes := func(mode string) func(*testing.T) string {
		return func(t *testing.T) string { return llamatest.Program(t, llamatest.Shebang, mode) }
	}
	for _, c := range []struct {
		name    string
		program func(*testing.T) string
		reason  supervise.Reason
		advice  string
	}{
		{"not_executable", func(t *testing.T) string { return write(t, []byte("#!/bin/sh\n"), 0o644) }, supervise.NotExecutable, "chmod +x"},
		{"no_program_at_all", func(t *testing.T) string { return write(t, []byte("<html>404</html>"), 0o755) }, supervise.NotExecutable, "does not begin like a program"},
		{"model_without_server", func(t *testing.T) string { return write(t, []byte("GGUF\x03\x00\x00\x00"), 0o755) }, supervise.NotExecutable, ".gguf"},
		{"M-107_missing", func(*testing.T) string { return "/nowhere/llama-server" }, supervise.NoProgram, "not on the host"},
		{"missing_interpreter", func(t *testing.T) string { return write(t, []byte("#!/nowhere/sh\n"), 0o755) }, supervise.NoProgram, "loader"},
		{"wrong_architecture", elf, supervise.WrongArchitecture, "RISCV"},
		{"out_of_memory", fakes("exit:ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 99999999999"), supervise.OutOfMemory, "smaller"},
		{"out_of_gpu_memory", fakes("exit:cudaMalloc failed: out of memory"), supervise.OutOfMemory, "gpu_layers"},
		{"killed_by_the_system", fakes("killed"), supervise.OutOfMemory, "killed"},
		{"corrupt_GGUF", fakes("exit:gguf_init_from_file: invalid magic characters"), supervise.CorruptModel, "download it again"},
		{"M-107_model_file_missing", fakes("exit:error loading model: llama_model_loader: failed to load model from /models/x.gguf"), supervise.CorruptModel, "download"},
		{"model_too_new", fakes("exit:error loading model architecture: unknown model architecture: gemma9"), supervise.UnsupportedModel, "too old"},
		{"chat_template", fakes("exit:common_chat_templates_init: failed to initialize chat template"), supervise.ChatTemplate, "template"},
		{"bad_option", fakes("exit:error: invalid argument: --fancy"), supervise.BadOption, "options"},
		{"library", fakes("exit:error while loading shared libraries: libcudart.so.12"), supervise.MissingLibrary, "library"},
		{"port_taken_every_time", fakes("exit:couldn't bind HTTP server socket"), supervise.PortTaken, "port"},
		{"M-104_exits_with_0_before_health", fakes("exit0:goodbye"), supervise.ExitedEarly, "code 0"},
		{"M-104_exits_in_silence", fakes("silent_exit"), supervise.ExitedEarly, "4 GB"},
		{"exits", fakes("exit:no idea"), supervise.ExitedEarly, "code 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, config(t))
			began := time.Now()
			v := start(t, s, spec("a", c.program(t)))
			if v.State != supervise.Failed || v.Failure == nil || v.Failure.Reason != c.reason {
				t.Fatalf("got %+v %+v, want %s", v, v.Failure, c.reason)
			}
			if !strings.Contains(v.Failure.Advice, c.advice) {
				t.Errorf("advice %q does not name %q", v.Failure.Advice, c.advice)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the failure took %s to be told", took)
			}
			if state(s, "a") != supervise.Failed {
				t.Error("a failed start is not listed")
			}
		})
	}
}

func write(t *testing.T, content []byte, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.llamafile")
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStart_shows_last_lines_of_the_log(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	v := start(t, s, spec("a", llamatest.Program(t, llamatest.Shebang, "exit:from /home/al ice/x.gguf\nloading /home/alice/models/x.gguf\nopen '/var/lib/pawgate/y.gguf': no\x1b[0m idea"), "-m", "/home/al ice/x.gguf"))
	want := []string{"from x.gguf", "loading x.gguf", "open 'y.gguf': no idea"}
	if diff := cmp.Diff(want, v.Failure.Log); diff != "" {
		t.Errorf("INF-14 log (-want +got):\n%s", diff)
	}
}

// Without the APE loader the kernel cannot run a llamafile; a shell can.
func TestStart_INF_06_without_APE_loader(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	v := start(t, s, spec("a", llamatest.Program(t, llamatest.APE, "ok")))
	if v.State != supervise.Ready || !strings.Contains(v.Note, "APE loader") {
		t.Errorf("got %+v %+v", v, v.Failure)
	}
}

// A system that gives programs beginning with MZ to Wine, or to Windows: they
// live and do nothing.
func TestStart_M_103_binfmt_takes_the_file(t *testing.T) {
	t.Parallel()
	for name, root := range map[string]fstest.MapFS{
		"WSLInterop": {"proc/sys/fs/binfmt_misc/WSLInterop": {Data: []byte("enabled\ninterpreter /init\nflags: PF\noffset 0\nmagic 4d5a\n")},
			"proc/sys/fs/binfmt_misc/APE": {Data: []byte("enabled\nmagic 4d5a\n")}},
		"wine":                        {"proc/sys/fs/binfmt_misc/wine": {Data: []byte("enabled\nmagic 4d5a\n")}},
		"PAWGATE_MODEL_START_TIMEOUT": {"proc/sys/fs/binfmt_misc/wine": {Data: []byte("disabled\nmagic 4d5a\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t)
			cfg.StartTimeout, cfg.Root = 500*time.Millisecond, root
			v := start(t, open(t, cfg), spec("a", llamatest.Program(t, llamatest.APE, "hang")))
			if v.Failure == nil || v.Failure.Reason != supervise.StartTimeout || !strings.Contains(v.Failure.Advice, name) {
				t.Errorf("got %+v, want advice on %s", v.Failure, name)
			}
			if alive, _ := running(t, cfg.Dir); len(alive) > 0 {
				t.Errorf("still running: %q", alive)
			}
		})
	}
}

// Somebody else who answers 200 to everything is not our server.
func TestStart_INF_09_identity(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.StartTimeout = 500 * time.Millisecond
	if v := start(t, open(t, cfg), spec("a", llamatest.Program(t, llamatest.Shebang, "open"))); v.State != supervise.Failed {
		t.Errorf("a server that answers without the key is taken for ours: %+v", v)
	}
}

func TestStart_INF_09_port_taken_once(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	v := start(t, s, spec("a", llamatest.Program(t, llamatest.Shebang, "port_once:"+filepath.Join(t.TempDir(), "mark"))))
	if v.State != supervise.Ready {
		t.Errorf("got %+v %+v", v, v.Failure)
	}
}

func reason(err error) fault.Reason {
	if f, ok := fault.Of(err); ok {
		return f.Reason
	}
	return ""
}

func TestStart_returns_while_loading(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	v, err := s.Start(ctx, spec("a", llamatest.Program(t, llamatest.Shebang, "load:400ms")))
	if err != nil || v.State != supervise.Starting {
		t.Fatalf("got %+v, %v", v, err)
	}
	if _, err := s.Lease("a"); reason(err) != fault.Unavailable {
		t.Errorf("lease while loading: %v", err)
	}
	until(t, "ready", func() bool { return state(s, "a") == supervise.Ready })
}

// A server gets no secret of ours.
func TestStart_environment(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://u:hunter2@h/d")
	t.Setenv("CUDA_VISIBLE_DEVICES", "1")
	out := filepath.Join(t.TempDir(), "env")
	s := open(t, config(t))
	start(t, s, spec("a", llamatest.Program(t, llamatest.Shebang, "environment:"+out)))
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if env := string(b); strings.Contains(env, "hunter2") || !strings.Contains(env, "CUDA_VISIBLE_DEVICES=1") {
		t.Errorf("environment:\n%s", env)
	}
}

func TestStart_arguments(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "args")
	s := open(t, config(t))
	start(t, s, spec("a", llamatest.Program(t, llamatest.Shebang, "arguments:"+out), "-m", "m.gguf"))
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Split(string(b), "\n")
	if host := slices.Index(args, "--host"); host < 0 || args[host+1] != "127.0.0.1" {
		t.Errorf("it must listen on loopback only: %q", args)
	}
	if lease, err := s.Lease("a"); err != nil || strings.Contains(string(b), lease.Key) {
		t.Errorf("the key stands among the arguments, which every user can see: %q %v", args, err)
	}
}
