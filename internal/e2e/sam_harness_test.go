//go:build e2e && sam

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// samBound is how long one run of the SAM CLI may take: a build compiles every
// function, on two busy cores.
const samBound = 10 * time.Minute

// noEngine is how .ci/lib/docker.sh exits where no engine can be had.
const noEngine = 3

// samCLI is the real SAM CLI, with an environment of its own: no account, no
// telemetry, no metadata service.
type samCLI struct {
	bin    string
	docker string // address of the engine; empty for tests that need none
	env    []string
}

func newSAM(t testing.TB, env ...string) samCLI {
	t.Helper()
	bin := os.Getenv("SAM_BIN")
	if bin == "" {
		bin = filepath.Join(repoRoot(t), ".cache", "venv", "bin", "sam")
	}
	if _, err := os.Stat(bin); err != nil {
		unavailable(t, "the SAM CLI", "run .ci/lib/sam.sh and set SAM_BIN to what it prints")
	}
	base := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GOFLAGS=" + os.Getenv("GOFLAGS"),
		"SAM_CLI_TELEMETRY=0", "AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=eu-west-1", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
	}
	return samCLI{bin: bin, env: append(base, env...)}
}

// withEngine adds a Docker engine and the image that the CLI builds on. Where
// no engine can be had the test is skipped and says why, in CI too.
func (s samCLI) withEngine(t testing.TB) samCLI {
	t.Helper()
	lib := filepath.Join(repoRoot(t), ".ci", "lib")
	address, err := runProcess(t, samBound, "", os.Environ(), filepath.Join(lib, "docker.sh"))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == noEngine {
		t.Skipf("SAM local is not tested: %s", strings.TrimSpace(address))
	}
	if err != nil {
		t.Fatalf("start Docker: %v\n%s", err, address)
	}
	s.docker = "DOCKER_HOST=" + strings.TrimSpace(address)
	s.env = append(s.env, s.docker)
	if out, err := runProcess(t, samBound, "", append(os.Environ(), s.docker), filepath.Join(lib, "stand_in_image.sh")); err != nil {
		t.Fatalf("make the stand-in image: %v\n%s", err, out)
	}
	return s
}

// with is the same CLI with more environment, which the CLI hands to every
// function whose template names the variable.
func (s samCLI) with(env ...string) samCLI {
	s.env = append(s.env[:len(s.env):len(s.env)], env...)
	return s
}

// run is one command that must succeed, at the root of the repository.
func (s samCLI) run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := runProcess(t, samBound, repoRoot(t), s.env, s.bin, args...)
	if err != nil {
		t.Fatalf("sam %s: %v\n%s", strings.Join(args, " "), err, tail(out, 4000))
	}
	return out
}

// emulatorLost is what a function says whose emulator listened too late for
// it: the emulator starts both at once. The function never saw the call.
var emulatorLost = regexp.MustCompile(`failed to get the next invoke: .*connection refused`)

// invoke is `sam local invoke FUNCTION -e EVENT`; it gives the function's answer.
func (s samCLI) invoke(t testing.TB, function, event string) []byte {
	t.Helper()
	for range 3 {
		cmd := exec.Command(s.bin, "local", "invoke", function, "-e", event)
		cmd.Dir, cmd.Env = repoRoot(t), s.env
		said := &output{}
		cmd.Stderr = said
		answer, err := cmd.Output()
		if err != nil {
			t.Fatalf("sam local invoke %s -e %s: %v\n%s", function, event, err, said)
		}
		if len(answer) > 0 || !emulatorLost.MatchString(said.String()) {
			if len(answer) == 0 {
				t.Fatalf("%s said nothing to %s\n%s", function, event, said)
			}
			return answer
		}
		t.Logf("the emulator of %s lost the race for its own port; once more", function)
	}
	t.Fatalf("the emulator of %s lost the race for its own port three times", function)
	return nil
}

var containerID = regexp.MustCompile(`SAM_CONTAINER_ID: ([0-9a-f]{64})`)

// serve runs `sam local SERVICE` until the test ends and gives its output once
// it answers.
func (s samCLI) serve(t *testing.T, service, host string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(s.bin, "local", service, "--host", host, "--port", port)
	said := &output{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = repoRoot(t), s.env, said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
		}
		for _, id := range containerID.FindAllStringSubmatch(said.String(), -1) {
			_, _ = s.dockerRun("rm", "-f", id[1]) // most are gone already
		}
		if t.Failed() {
			t.Logf("sam local %s said:\n%s", service, tail(said.String(), 12000))
		}
	})
	deadline := time.After(2 * time.Minute)
	for !strings.Contains(said.String(), "Running on http") {
		select {
		case <-exited:
			t.Fatalf("sam local %s ended:\n%s", service, said)
		case <-deadline:
			t.Fatalf("sam local %s does not answer:\n%s", service, said)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return addr
}

func (s samCLI) dockerRun(args ...string) (string, error) {
	cmd := exec.Command("docker", args...)
	cmd.Env = append(os.Environ(), s.docker)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// gateway is the host's address on the network of the containers, which only
// they and the host itself reach.
func (s samCLI) gateway(t testing.TB) string {
	t.Helper()
	out, err := s.dockerRun("network", "inspect", "bridge", "-f", "{{(index .IPAM.Config 0).Gateway}}")
	if err != nil || net.ParseIP(out) == nil {
		t.Fatalf("the containers' network has no gateway: %v: %s", err, out)
	}
	return out
}

// forContainers makes a database of the host reachable for containers, which
// do not see its loopback interface or its sockets, and gives the URL they use.
func (s samCLI) forContainers(t testing.TB, databaseURL string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	network, to := "tcp", net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port))
	if strings.HasPrefix(cfg.Host, "/") {
		network, to = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", cfg.Host, cfg.Port)
	}
	l, err := net.Listen("tcp", s.gateway(t)+":0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go forward(ctx, from, network, to)
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	u := url.URL{Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password),
		Host: "host.docker.internal:" + port, Path: "/" + cfg.Database, RawQuery: "sslmode=disable&connect_timeout=5"}
	return u.String()
}

func forward(ctx context.Context, from net.Conn, network, to string) {
	defer from.Close()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, to)
	if err != nil {
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { from.Close(); conn.Close() })
	defer stop()
	go func() { _, _ = io.Copy(conn, from); conn.Close() }()
	_, _ = io.Copy(from, conn)
}

// transformed is template.yaml as CloudFormation makes it from the SAM form,
// by the CLI's own translator.
func (s samCLI) transformed(t testing.TB) cfnTemplate {
	t.Helper()
	python := filepath.Join(filepath.Dir(s.bin), "python")
	out := runMust(t, s.env, python, "testdata/transform.py", filepath.Join(repoRoot(t), "template.yaml"))
	var tpl cfnTemplate
	if err := json.Unmarshal([]byte(out), &tpl); err != nil {
		t.Fatal(err)
	}
	return tpl
}

func runMust(t testing.TB, env []string, name string, args ...string) string {
	t.Helper()
	out, err := runProcess(t, samBound, "", env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}
