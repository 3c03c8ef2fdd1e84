package supervise

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"pawgate/internal/plural"
)

// want is what a server's loop is told to do.
type want int

const (
	wantStop  want = iota + 1 // end the process
	wantLeave                 // let it go on without us
)

// server is a server that this process looks after.
type server struct {
	s     *Supervisor
	spec  Spec
	owner *lock

	orders chan want     // the first order counts
	settle chan struct{} // closed when the first start came to an end
	done   chan struct{} // closed when nothing is looked after any more

	mu       sync.Mutex
	shown    Server
	address  string // http://127.0.0.1:port, once it is ready
	key      string
	process  identity
	port     int
	settled  bool
	inflight int
	crashes  []time.Time
}

func newServer(s *Supervisor, spec Spec, owner *lock) *server {
	now := time.Now()
	return &server{s: s, spec: spec, owner: owner,
		orders: make(chan want, 1), settle: make(chan struct{}), done: make(chan struct{}),
		shown: Server{Kind: spec.Kind, Name: spec.Name, State: Starting, Since: now, Options: spec.Shown,
			TTL: int64(spec.TTL.Seconds()), LastUsed: now}}
}

func (v *server) snapshot() Server {
	v.mu.Lock()
	defer v.mu.Unlock()
	shown := v.shown
	shown.Busy = v.inflight
	return shown
}

func (v *server) live() bool { return v.snapshot().State.live() }

// evictable: a server that is loading, restarting or answering is not.
func (v *server) evictable() bool {
	shown := v.snapshot()
	return shown.State == Ready && shown.Busy == 0
}

// end gives an order. Later ones are dropped.
func (v *server) end(w want) {
	select {
	case v.orders <- w:
	default:
	}
}

// wait returns when the first start has ended, or ctx has.
func (v *server) wait(ctx context.Context) Server {
	select {
	case <-v.settle:
	case <-ctx.Done():
	}
	return v.snapshot()
}

// update changes what is shown and writes it down.
func (v *server) update(change func(*Server)) {
	v.mu.Lock()
	before := v.shown.State
	change(&v.shown)
	if v.shown.State != before {
		v.shown.Since = time.Now()
	}
	if !v.settled && (v.shown.State == Ready || v.shown.State == Failed || v.shown.State == Stopped) {
		v.settled = true
		close(v.settle)
	}
	r := record{Server: v.shown, Spec: v.spec, Process: v.process, Port: v.port}
	v.mu.Unlock()
	if err := v.s.write(r); err != nil {
		v.s.Log.Error("write server record", "name", v.spec.Name, "error", err)
	}
}

// run is the life of a server: start, watch, start again after a crash.
func (v *server) run(left *adopted) {
	defer close(v.done)
	order := v.keep(left)
	if order == wantLeave {
		v.s.leave(v)
		return
	}
	if v.snapshot().State == Failed {
		return // stays listed until it is started or stopped again
	}
	v.update(func(shown *Server) { shown.State = Stopped })
	v.s.drop(v)
}

// keep runs the server until an order, a failure for good (then the state is
// Failed), or the end of its idle time. What fails before it was ever ready
// failed for good: it would fail again. What was ready before is started again.
func (v *server) keep(left *adopted) want {
	served := left != nil && left.State != Starting
	for {
		c, failure, order := v.start(left)
		left = nil
		if order == 0 && failure == nil {
			served = true
			if order = v.watch(c); order == 0 {
				f := diagnose(c.exit, v.log())
				failure = &f
			}
		}
		if order == 0 && served {
			order = v.recover(*failure)
		} else if order == 0 {
			v.fail(*failure)
		}
		if order != 0 || v.snapshot().State == Failed {
			return order
		}
	}
}

// log is the end of the server's log. Of the paths in it those that we know are
// taken out first: one with a space in it looks like two.
func (v *server) log() []string {
	known := []string{v.s.Dir + string(filepath.Separator), filepath.Dir(v.spec.Program) + string(filepath.Separator)}
	for _, arg := range v.spec.Args {
		if filepath.IsAbs(arg) {
			known = append(known, filepath.Dir(arg)+string(filepath.Separator))
		}
	}
	return tail(v.s.path(v.spec.record(), "log"), known)
}

// watch waits for an order, which it carries out, or for a crash.
func (v *server) watch(c *child) want {
	select {
	case order := <-v.orders:
		v.obey(c, order)
		return order
	case <-c.done:
		return 0
	}
}

func (v *server) obey(c *child, order want) {
	if order == wantStop {
		v.update(func(shown *Server) { shown.State = Stopping })
		c.terminate(v.s.StopTimeout)
	}
}

// recover waits after a crash as long as the restart policy says, or gives
// the server up.
func (v *server) recover(f Failure) want {
	now := time.Now()
	v.mu.Lock()
	for len(v.crashes) > 0 && now.Sub(v.crashes[0]) > CrashWindow {
		v.crashes = v.crashes[1:]
	}
	v.crashes = append(v.crashes, now)
	recent := len(v.crashes)
	v.mu.Unlock()
	v.s.Log.Warn("model server crashed", "name", v.spec.Name, "reason", f.Reason, "crashes", recent)
	if recent > v.s.MaxRestarts {
		f.Reason, f.Advice = Crashed, fmt.Sprintf("it crashed %s within %s, last with %s: %s", plural.Of(recent, "time"), CrashWindow, f.Reason, f.Advice)
		v.fail(f)
		return 0
	}
	v.update(func(shown *Server) {
		shown.State, shown.Failure = Restarting, &f
		shown.Restarts++
	})
	select {
	case order := <-v.orders:
		return order
	case <-time.After(v.s.Backoff(recent - 1)):
		return 0
	}
}

func (v *server) fail(f Failure) {
	v.s.Log.Warn("model server failed", "name", v.spec.Name, "reason", f.Reason)
	v.update(func(shown *Server) { shown.State, shown.Failure = Failed, &f })
}

// secret makes the server's key and puts it where only this user can read it.
func (v *server) secret() error {
	key := rand.Text()
	v.mu.Lock()
	v.key = key
	v.mu.Unlock()
	return os.WriteFile(v.s.path(v.spec.record(), "key"), []byte(key+"\n"), 0o600)
}
