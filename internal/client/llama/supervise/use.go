package supervise

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

	"pawgate/internal/fault"
)

// Lease is the right to talk to a ready server. While it is held the server is
// neither evicted nor ended for being idle.
type Lease struct {
	Kind    Kind
	Name    string
	URL     string // http://127.0.0.1:port
	Key     string
	Release func()
}

// Lease gives a ready server: the one of that name, or with an empty name the
// one used last. It fails with fault.NotFound when there is none, and with
// fault.Unavailable when it is not ready yet.
func (s *Supervisor) Lease(name string) (Lease, error) {
	ready := slices.DeleteFunc(s.mine(), func(v *server) bool {
		return v.snapshot().State != Ready || name != "" && v.spec.Name != name
	})
	if len(ready) > 0 {
		return slices.MaxFunc(ready, func(a, b *server) int { return a.lastUsed().Compare(b.lastUsed()) }).lease(), nil
	}
	var best *record
	for _, r := range s.records() {
		if name == "" || r.Name == name {
			best = cmp.Or(best, &r)
			if r.State == Ready {
				return s.leaseForeign(r)
			}
		}
	}
	switch {
	case best == nil && name == "":
		return Lease{}, fault.New(fault.NotFound, "no model is loaded; load one with model_load or llamafile_start")
	case best == nil:
		return Lease{}, fault.New(fault.NotFound, "%s is not loaded; load it with model_load or llamafile_start", name)
	case best.State == Failed:
		return Lease{}, fault.New(fault.Unavailable, "%s failed: %s", best.Name, best.Failure.Advice)
	}
	return Lease{}, fault.Retry(fault.Unavailable, 2*time.Second, "%s is %s; try again in a few seconds", best.Name, best.State)
}

func (v *server) lease() Lease {
	v.mu.Lock()
	v.inflight++
	v.shown.LastUsed = time.Now()
	l := Lease{Kind: v.spec.Kind, Name: v.spec.Name, URL: v.address, Key: v.key}
	v.mu.Unlock()
	released := false
	l.Release = func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if !released {
			released = true
			v.inflight--
			v.shown.LastUsed = time.Now()
		}
	}
	return l
}

// leaseForeign uses a server that another process looks after, and tells it so
// by the time of a file.
func (s *Supervisor) leaseForeign(r record) (Lease, error) {
	name := r.Spec.record()
	key, err := os.ReadFile(s.path(name, "key"))
	if err != nil {
		return Lease{}, fault.Retry(fault.Unavailable, time.Second, "%s is being stopped", r.Name)
	}
	touch := func() { _ = os.WriteFile(s.path(name, "used"), nil, 0o600) }
	touch()
	return Lease{Kind: r.Kind, Name: r.Name, URL: address(r.Port), Key: strings.TrimSpace(string(key)), Release: touch}, nil
}

// lastUsed is the last use by this process or another.
func (v *server) lastUsed() time.Time {
	used := v.snapshot().LastUsed
	if info, err := os.Stat(v.s.path(v.spec.record(), "used")); err == nil && info.ModTime().After(used) {
		used = info.ModTime()
	}
	return used
}

// maxLog is how long a server's log may grow, in bytes.
const maxLog = 8 << 20

// tend does what is due between events: another process's wish to stop, the
// end of the idle time, the length of the log.
func (v *server) tend() {
	name := v.spec.record()
	if _, err := os.Stat(v.s.path(name, "stop")); err == nil {
		v.end(wantStop)
		if v.snapshot().State == Failed {
			v.s.drop(v)
		}
		return
	}
	if v.spec.TTL > 0 && v.evictable() && time.Since(v.lastUsed()) > v.spec.TTL {
		v.s.Log.Info("model server idle", "name", v.spec.Name)
		v.end(wantStop)
	}
	if info, err := os.Stat(v.s.path(name, "log")); err == nil && info.Size() > maxLog {
		_ = os.Truncate(v.s.path(name, "log"), 0) // the server appends
	}
}

// Answers reports whether a server that is said to be ready takes requests. It
// does not count as use.
func (s *Supervisor) Answers(v Server) bool {
	r, ok := s.read(Spec{Kind: v.Kind, Name: v.Name}.record())
	key, err := os.ReadFile(s.path(Spec{Kind: v.Kind, Name: v.Name}.record(), "key"))
	if !ok || err != nil {
		return false
	}
	p := probe{address: address(r.Port), key: strings.TrimSpace(string(key)), client: loopbackClient()}
	defer p.client.CloseIdleConnections()
	_, ready := p.ask()
	return ready
}
