// Package supervise keeps model servers running: llama-server processes and
// llamafiles, each on a loopback port of its own, in a process group of its
// own, behind a key that only this package knows.
//
// What is known of a server lies in a folder, one record each, and whoever
// holds the lock of a record looks after that server. So several pawgate
// processes share a host: each sees all servers, starts and stops them, and
// when one dies, even by kill −9, another adopts what it left or ends it. A
// process that is only in the record's place (a reused process id) is never
// touched: it is told by its start time.
//
// A server is ready only when it proved to be ours: it refuses a request
// without the key and takes one with it. Another program that answers 200 on
// the port is not taken for it.
//
// The package never shows a path, a key or a port in an error, passes the
// environment of pawgate on to no child, and never evicts a server that is
// still loading.
package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"pawgate/internal/fault"
)

// Config is how servers are kept. Zero fields have defaults.
type Config struct {
	Dir          string        // of the records; made when missing
	Root         fs.FS         // the host's files, to explain a start that hangs
	Log          *slog.Logger  // hears of crashes and adoptions
	Max          int           // servers at a time; 1
	StartTimeout time.Duration // until a server must be ready; 5 minutes
	StopTimeout  time.Duration // until a server that is told to end is killed; 10 s
	MaxRestarts  int           // crashes in CrashWindow until a server is given up; 5
	Backoff      func(restart int) time.Duration
	Tick         time.Duration // how often records are looked at; 1 s
}

// CrashWindow is how long a crash counts.
const CrashWindow = 10 * time.Minute

func (c Config) withDefaults() Config {
	c.Root = cmp.Or[fs.FS](c.Root, os.DirFS("/"))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Max = cmp.Or(c.Max, 1)
	c.StartTimeout = cmp.Or(c.StartTimeout, 5*time.Minute)
	c.StopTimeout = cmp.Or(c.StopTimeout, 10*time.Second)
	c.MaxRestarts = cmp.Or(c.MaxRestarts, 5)
	c.Tick = cmp.Or(c.Tick, time.Second)
	if c.Backoff == nil {
		c.Backoff = func(restart int) time.Duration { return min(time.Second<<min(restart, 6), time.Minute) }
	}
	return c
}

// Supervisor is one process's view of the servers of a host.
type Supervisor struct {
	Config
	members *lock // shared by every process on the folder

	starting sync.Mutex // one decision about room at a time
	mu       sync.Mutex
	owned    map[string]*server // by record name
	closed   bool

	stop context.CancelFunc
	done chan struct{}
}

// Open begins to look after a folder's servers and takes over those whose
// process is gone.
func Open(cfg Config) (*Supervisor, error) {
	s := &Supervisor{Config: cfg.withDefaults(), owned: map[string]*server{}, done: make(chan struct{})}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make server folder: %w", err)
	}
	members, err := lockShared(filepath.Join(s.Dir, "members"))
	if err != nil {
		return nil, fmt.Errorf("join the host's servers: %w", err)
	}
	s.members = members
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.adoptAll()
	go s.loop(ctx)
	return s, nil
}

func (s *Supervisor) loop(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(s.Tick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, v := range s.mine() {
				v.tend()
			}
			s.adoptAll()
		}
	}
}

func (s *Supervisor) mine() []*server {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*server, 0, len(s.owned))
	for _, v := range s.owned {
		all = append(all, v)
	}
	return all
}

// Close lets go of the servers. The last process on the folder ends them;
// otherwise one of the others adopts them.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.stop()
	<-s.done
	last := s.members.upgrade()
	var all sync.WaitGroup
	for _, v := range s.mine() {
		all.Go(func() {
			if last {
				v.end(wantStop)
			} else {
				v.end(wantLeave)
			}
			<-v.done
		})
	}
	all.Wait()
	if last {
		s.sweep() // what another left a moment ago
		return s.members.release()
	}
	if err := s.members.release(); err != nil {
		return err
	}
	// Two that close at the same time each see the other. The last lock
	// decides who clears up.
	if alone, err := tryLock(filepath.Join(s.Dir, "members")); err == nil {
		s.sweep()
		return alone.release()
	}
	return nil
}

// Start makes sure that a server runs and waits until it is ready, has failed,
// or ctx ends; then the server is still starting. A second start of the same
// server waits for the first. It fails with fault.Conflict when the server
// runs with other options, or when there is no room because others are busy
// or loading.
func (s *Supervisor) Start(ctx context.Context, spec Spec) (Server, error) {
	v, err := s.begin(spec)
	if err != nil {
		return Server{}, err
	}
	if v == nil { // another process looks after it
		return s.follow(ctx, spec)
	}
	return v.wait(ctx), nil
}

func (s *Supervisor) begin(spec Spec) (*server, error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	s.mu.Lock()
	v, closed := s.owned[spec.record()], s.closed
	s.mu.Unlock()
	if v != nil && v.snapshot().State == Stopping {
		<-v.done
		v = nil
	}
	switch {
	case closed:
		return nil, fault.New(fault.Unavailable, "the host is shutting down")
	case v != nil && v.live():
		if !v.spec.same(spec) {
			return nil, fault.New(fault.Conflict, "%s %s runs with other options; stop it first", spec.Kind, spec.Name)
		}
		return v, nil
	}
	if v != nil { // failed before
		s.drop(v)
	}
	owner, err := tryLock(s.path(spec.record(), "lock"))
	if errors.Is(err, errLocked) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock server: %w", err)
	}
	if err := s.makeRoom(spec); err != nil {
		_ = owner.release()
		return nil, err
	}
	return s.run(spec, owner, nil), nil
}

// run starts to look after a server, whose lock is held: a new one, or the
// process that another supervisor left.
func (s *Supervisor) run(spec Spec, owner *lock, left *adopted) *server {
	v := newServer(s, spec, owner)
	s.mu.Lock()
	s.owned[spec.record()] = v
	s.mu.Unlock()
	go v.run(left)
	return v
}

// drop forgets a server that has ended, with its files, and gives up its lock.
func (s *Supervisor) drop(v *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owned[v.spec.record()] == v {
		delete(s.owned, v.spec.record())
		s.remove(v.spec.record())
		_ = v.owner.release()
	}
}

// leave forgets a server that goes on without this process.
func (s *Supervisor) leave(v *server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owned, v.spec.record())
	_ = v.owner.release()
}

// Stop ends a server and waits until it is gone. ok is false when there was
// none.
func (s *Supervisor) Stop(ctx context.Context, kind Kind, name string) (ok bool, err error) {
	record := Spec{Kind: kind, Name: name}.record()
	s.mu.Lock()
	v := s.owned[record]
	s.mu.Unlock()
	if v == nil {
		return s.stopForeign(ctx, record)
	}
	live := v.live()
	v.end(wantStop)
	select {
	case <-v.done:
		s.drop(v)
		return live, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// List is every server of the host, by name: also those that failed, until
// they are started or stopped again.
func (s *Supervisor) List() []Server {
	var all []Server
	s.mu.Lock()
	for _, v := range s.owned {
		all = append(all, v.snapshot())
	}
	s.mu.Unlock()
	for _, r := range s.records() {
		if !slices.ContainsFunc(all, func(v Server) bool { return v.Kind == r.Kind && v.Name == r.Name }) {
			all = append(all, r.Server)
		}
	}
	slices.SortFunc(all, func(a, b Server) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind)) })
	return all
}
