package stdio

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// childVar makes the test binary behave as a shim does: the pump on the
// process's own stdin and stdout, stopped by signals.
const childVar = "PAWGATE_STDIO_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	g := newStage()
	err := Run(ctx, Options{In: os.Stdin, Out: os.Stdout, Transport: InProcess(http.HandlerFunc(g.ServeHTTP)),
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		os.Exit(1)
	}
}

// child starts such a process.
func child(t *testing.T) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), self)
	// The race detector otherwise sleeps a second at exit.
	cmd.Env = append(os.Environ(), childVar+"=1", "GORACE=atexit_sleep_ms=0")
	if in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, bufio.NewReader(stdout)
}

// The one-shot use from a shell: a line in, the answer out, and the end.
func TestProcessOneShot(t *testing.T) {
	t.Parallel()
	cmd, in, out := child(t)
	io.WriteString(in, call1("1", "tools/list"))
	in.Close()
	all, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
	if diff := cmp.Diff(ok("1")+"\n", string(all)); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

// A signal ends the process at once although its stdin stays open, where a read
// cannot be interrupted, and a call is running.
func TestProcessSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd, in, out := child(t)
		io.WriteString(in, call1("1", "hold")+"\n"+call1("2", "ping")+"\n")
		if line, err := out.ReadString('\n'); err != nil || strings.TrimSpace(line) != ok("2") {
			t.Fatalf("got %q, %v", line, err)
		}
		began := time.Now()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(out)
		if err != nil || len(rest) > 0 {
			t.Errorf("%s: stdout %q, %v; want nothing more", sig, rest, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: exit: %v", sig, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s: took %s", sig, took)
		}
		in.Close()
	}
}
