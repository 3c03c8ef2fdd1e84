// Package llamatest is a model server for tests: a program that takes the
// arguments of llama-server, and behaves or misbehaves as it is told.
//
// The program is the test binary itself, run through a small script, so a
// package that uses it has
//
//	func TestMain(m *testing.M) { llamatest.Main(m) }
package llamatest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// variable says in the script how the program shall behave.
const variable = "PAWGATE_FAKE_LLAMA"

// Main runs the tests, or the fake server in the process of a script.
func Main(m *testing.M) {
	if mode := os.Getenv(variable); mode != "" {
		fake(mode)
		return
	}
	os.Exit(m.Run())
}

// The beginnings of a program.
const (
	Shebang = "#!/bin/sh"
	// APE is how an actually portable executable begins: a DOS header that the
	// kernel does not run and a shell reads as an assignment.
	APE = "MZqFpD='\n'"
)

// Program writes an executable in a folder of the test's own. See fake for the
// modes.
func Program(t testing.TB, first, mode string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fake-llama-server")
	Write(t, path, first, mode)
	return path
}

// Write is Program at a path.
func Write(t testing.TB, path, first, mode string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("%s\n%s='%s' exec '%s' \"$@\"\n", first, variable, strings.ReplaceAll(mode, "'", `'\''`), self)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func argument(name string) string {
	for i, a := range os.Args {
		if a == name && i+1 < len(os.Args) {
			return os.Args[i+1]
		}
	}
	return ""
}

func say(lines ...string) { fmt.Fprintln(os.Stderr, strings.Join(lines, "\n")) }

// fake is a server with one behaviour: how it ends (exit:LOG, exit0:LOG,
// silent_exit, killed, hang), or how it lives (ok, open, load:TIME, crash:TIME,
// child, stubborn, port_once:MARK, environment:FILE, arguments:FILE).
func fake(mode string) {
	mode, arg, _ := strings.Cut(mode, ":")
	switch mode {
	case "exit":
		say(arg)
		os.Exit(1)
	case "exit0":
		say(arg)
		os.Exit(0)
	case "silent_exit":
		os.Exit(0)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "hang":
		time.Sleep(time.Minute)
		return
	case "child": // leaves a process of its own behind
		_ = exec.Command("/bin/sleep", "61").Start()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "port_once": // its first start fails as if the port were taken
		if _, err := os.Stat(arg); err != nil {
			_ = os.WriteFile(arg, nil, 0o600)
			say("srv start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 1")
			os.Exit(1)
		}
	case "environment":
		_ = os.WriteFile(arg, []byte(strings.Join(os.Environ(), "\n")), 0o600)
	case "arguments":
		_ = os.WriteFile(arg, []byte(strings.Join(os.Args[1:], "\n")), 0o600)
	}
	s := server{open: mode == "open", ready: time.Now()}
	switch mode {
	case "load":
		load, _ := time.ParseDuration(arg)
		s.ready = s.ready.Add(load)
	case "crash":
		s.life, _ = time.ParseDuration(arg)
	}
	s.serve()
}

// server is what lives.
type server struct {
	open  bool // answers without the key
	ready time.Time
	life  time.Duration // after its first answer to who has the key; 0: for ever
	key   string
}

func (s server) serve() {
	key, err := os.ReadFile(argument("--api-key-file"))
	if err != nil {
		say("cannot read the key")
		os.Exit(1)
	}
	s.key = strings.TrimSpace(string(key))
	l, err := net.Listen("tcp", net.JoinHostPort(argument("--host"), argument("--port")))
	if err != nil {
		say("couldn't bind HTTP server socket")
		os.Exit(1)
	}
	_ = http.Serve(l, s)
}

// ServeHTTP answers as llama-server does, as far as anybody here looks.
func (s server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/health" && time.Now().Before(s.ready):
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/health":
		_, _ = w.Write([]byte(`{"status":"ok"}`))
	case !s.open && r.Header.Get("Authorization") != "Bearer "+s.key:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/crash":
		say("crash as asked")
		os.Exit(139)
	default:
		s.api(w, r)
		if s.life > 0 {
			time.AfterFunc(s.life, func() { say("GGML_ASSERT: something is wrong"); os.Exit(134) })
		}
	}
}
