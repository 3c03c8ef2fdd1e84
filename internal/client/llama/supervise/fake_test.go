package supervise_test

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

// The test binary is also the fake model server: a script in a test's folder
// runs it with FAKE_LLAMA saying how it shall behave.
func TestMain(m *testing.M) {
	if mode := os.Getenv("FAKE_LLAMA"); mode != "" {
		fake(mode)
		return
	}
	os.Exit(m.Run())
}

// program writes an executable that behaves as told. first is its first line:
// a shebang, or the beginning of an APE.
func program(t *testing.T, first, mode string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fake.llamafile")
	script := fmt.Sprintf("%s\nFAKE_LLAMA='%s' exec '%s' \"$@\"\n", first, strings.ReplaceAll(mode, "'", `'\''`), self)
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	shebang = "#!/bin/sh"
	// ape is how an actually portable executable begins: a DOS header that
	// the kernel does not run and a shell reads as an assignment.
	ape = "MZqFpD='\n'"
)

func argument(name string) string {
	for i, a := range os.Args {
		if a == name && i+1 < len(os.Args) {
			return os.Args[i+1]
		}
	}
	return ""
}

func say(lines ...string) { fmt.Fprintln(os.Stderr, strings.Join(lines, "\n")) }

// fake is a model server with one behaviour: how it ends, or how it lives.
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
		c := exec.Command("/bin/sleep", "61")
		_ = c.Start()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "port_once": // fails on its first start as if the port were taken
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
	var load, life time.Duration
	switch mode {
	case "load":
		load, _ = time.ParseDuration(arg)
	case "crash":
		life, _ = time.ParseDuration(arg)
	}
	serveFake(mode, load, life)
}

func serveFake(mode string, load, life time.Duration) {
	key, err := os.ReadFile(argument("--api-key-file"))
	if err != nil {
		say("cannot read the key")
		os.Exit(1)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(argument("--host"), argument("--port")))
	if err != nil {
		say("couldn't bind HTTP server socket")
		os.Exit(1)
	}
	ready := time.Now().Add(load)
	if life > 0 {
		time.AfterFunc(life, func() { say("GGML_ASSERT: something is wrong"); os.Exit(134) })
	}
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/health" && time.Now().Before(ready):
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/health":
			_, _ = w.Write([]byte(`{"status":"ok"}`))
		case mode != "open" && r.Header.Get("Authorization") != "Bearer "+strings.TrimSpace(string(key)):
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/crash":
			say("crash as asked")
			os.Exit(139)
		default:
			_, _ = w.Write([]byte(`{}`))
		}
	}))
}
