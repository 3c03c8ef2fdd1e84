package supervise

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// portTries is how often another port is tried when one was taken between our
// choice and the server's use of it.
const portTries = 3

// start brings the process up, or waits for one that was left. Exactly one of
// its results is set: the process when it is ready, why it is not, or an order
// that came in between, already carried out.
func (v *server) start(left *adopted) (*child, *Failure, want) {
	if left != nil {
		v.mu.Lock()
		v.key, v.port, v.process = left.key, left.Port, left.Process
		v.shown.LastUsed, v.shown.Note, v.shown.Restarts = left.LastUsed, left.Note, left.Restarts
		v.mu.Unlock()
	}
	v.update(func(shown *Server) { shown.State = Starting })
	for try := 1; ; try++ {
		began := time.Now()
		var c *child
		if left != nil {
			c, left = adopt(left.Process), nil
		} else {
			var failure *Failure
			if c, failure = v.spawn(began); failure != nil {
				return nil, failure, 0
			}
		}
		failure, order := v.untilReady(c, began)
		switch {
		case order != 0:
			v.obey(c, order)
			return nil, nil, order
		case failure == nil:
			return c, nil, 0
		}
		c.terminate(v.s.StopTimeout)
		if failure.Reason != PortTaken || try == portTries {
			return nil, failure, 0
		}
	}
}

// spawn starts the process, or says why it could not be.
func (v *server) spawn(began time.Time) (*child, *Failure) {
	name := v.spec.record()
	if f, bad := inspect(v.spec.Program); bad {
		return nil, &f
	}
	port, err := freePort()
	if err == nil {
		err = v.secret()
	}
	if err != nil {
		v.s.Log.Error("prepare model server", "name", v.spec.Name, "error", err)
		return nil, &Failure{Reason: ExitedEarly, Advice: "the host could not prepare the start; the operator finds why in the log", Log: []string{}}
	}
	log, err := os.OpenFile(v.s.path(name, "log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, &Failure{Reason: ExitedEarly, Advice: "the host could not write the server's log; is the disk full?", Log: []string{}}
	}
	defer log.Close()
	args := append([]string{"--host", "127.0.0.1", "--port", strconv.Itoa(port), "--api-key-file", v.s.path(name, "key")}, v.spec.Args...)
	c, shell, err := launch(v.spec.Program, args, v.environment(), log)
	if err != nil {
		f := cannotStart(v.spec.Program, err)
		return nil, &f
	}
	v.mu.Lock()
	v.process, v.port = c.id, port
	v.mu.Unlock()
	v.update(func(shown *Server) {
		shown.Phases = Phases{Spawned: time.Since(began).Milliseconds()}
		shown.Note = ""
		if shell {
			shown.Note = "started through sh, because the APE loader is not registered on this host"
		}
	})
	return c, nil
}

// passed are the variables of our environment that a server may see: how to
// find programs and GPUs, and nothing else. A database password is not its
// business.
func passed() []string {
	return []string{"PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "NVIDIA_VISIBLE_DEVICES",
		"HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION", "ROCM_PATH", "GGML_METAL_PATH_RESOURCES", "VK_ICD_FILENAMES"}
}

// environment is passed, and a home for what a llamafile unpacks.
func (v *server) environment() []string {
	env := []string{"HOME=" + v.s.Dir}
	for _, name := range passed() {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// freePort asks the system for a port of the loopback interface. Another
// program may take it before the server does; then the start is repeated.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func address(port int) string { return "http://127.0.0.1:" + strconv.Itoa(port) }

// probeEvery is how often a starting server is asked.
const probeEvery = 50 * time.Millisecond

// untilReady waits until the server proved to be ours and loaded. Exactly one
// of its results is set, or none when it is ready.
func (v *server) untilReady(c *child, began time.Time) (*Failure, want) {
	timeout := time.NewTimer(v.s.StartTimeout)
	defer timeout.Stop()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	p := probe{address: address(v.port), key: v.key, client: loopbackClient()}
	defer p.client.CloseIdleConnections()
	for {
		select {
		case order := <-v.orders:
			return nil, order
		case <-c.done:
			f := diagnose(c.exit, v.log())
			return &f, 0
		case <-timeout.C:
			f := timedOut(v.s.Root, v.spec.Program, v.log())
			return &f, 0
		case <-tick.C:
		}
		answers, ready := p.ask()
		if answers {
			v.mu.Lock()
			v.shown.Phases.Listening = cmp.Or(v.shown.Phases.Listening, time.Since(began).Milliseconds())
			v.mu.Unlock()
		}
		if ready && c.alive() {
			v.mu.Lock()
			v.address = p.address
			v.mu.Unlock()
			v.update(func(shown *Server) {
				shown.State, shown.Failure = Ready, nil
				shown.Phases.Ready = time.Since(began).Milliseconds()
			})
			return nil, 0
		}
	}
}

// probe asks a server whether it is ready, and whether it is ours.
type probe struct {
	address, key string
	client       *http.Client
}

const probeTimeout = 2 * time.Second

func loopbackClient() *http.Client {
	return &http.Client{Timeout: probeTimeout, Transport: &http.Transport{Proxy: nil},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ask reports whether anybody answers on the port, and whether it is our
// server with its model loaded: it says that it is healthy, refuses a request
// without the key, and takes one with it.
func (p probe) ask() (answers, ready bool) {
	status, body := p.get("/health", "")
	if status == 0 {
		return false, false
	}
	var health struct{ Status string }
	if status != http.StatusOK || json.Unmarshal(body, &health) != nil || health.Status != "ok" {
		return true, false
	}
	if status, _ = p.get("/props", ""); status != http.StatusUnauthorized && status != http.StatusForbidden {
		return true, false
	}
	status, _ = p.get("/props", p.key)
	return true, status == http.StatusOK
}

func (p probe) get(path, key string) (int, []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+path, nil)
	if err != nil {
		return 0, nil
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, body
}
