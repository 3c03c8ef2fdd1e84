package supervise

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pawgate/internal/fault"
)

// record is a server's file: what is shown, and what finds its process again.
type record struct {
	Server
	Spec    Spec     `json:"spec"`
	Process identity `json:"process"`
	Port    int      `json:"port"`
}

// identity tells a process from a later one of the same id.
type identity struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // boot and start time, as the system tells it
}

func (s *Supervisor) path(record, ending string) string {
	return filepath.Join(s.Dir, record+"."+ending)
}

// write replaces a record as a whole; a reader sees the old one or the new.
func (s *Supervisor) write(r record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode server record: %w", err)
	}
	path := s.path(r.Spec.record(), "json")
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return fmt.Errorf("write server record: %w", err)
	}
	return os.Rename(path+".new", path)
}

func (s *Supervisor) read(name string) (record, bool) {
	b, err := os.ReadFile(s.path(name, "json"))
	if err != nil {
		return record{}, false
	}
	var r record
	if json.Unmarshal(b, &r) != nil || r.Spec.record() != name {
		return record{}, false
	}
	return r, true
}

// records are all servers on file.
func (s *Supervisor) records() []record {
	files, err := filepath.Glob(filepath.Join(s.Dir, "*.json"))
	if err != nil {
		return nil
	}
	var all []record
	for _, f := range files {
		if r, ok := s.read(strings.TrimSuffix(filepath.Base(f), ".json")); ok {
			all = append(all, r)
		}
	}
	return all
}

// remove forgets a server's files. The lock stays: another process may be
// about to take it.
func (s *Supervisor) remove(name string) {
	for _, ending := range []string{"json", "log", "key", "used", "stop"} {
		_ = os.Remove(s.path(name, ending))
	}
}

// pollForeign is how often the record of another process's server is read.
const pollForeign = 100 * time.Millisecond

// follow waits for a server that another process looks after.
func (s *Supervisor) follow(ctx context.Context, spec Spec) (Server, error) {
	tick := time.NewTicker(pollForeign)
	defer tick.Stop()
	for {
		r, ok := s.read(spec.record())
		if ok && !r.Spec.same(spec) {
			return Server{}, fault.New(fault.Conflict, "%s %s runs with other options; stop it first", spec.Kind, spec.Name)
		}
		if ok && (r.State == Ready || r.State == Failed) {
			return r.Server, nil
		}
		select {
		case <-ctx.Done():
			if !ok {
				r.Server = Server{Kind: spec.Kind, Name: spec.Name, State: Starting, Options: spec.Shown}
			}
			return r.Server, nil
		case <-tick.C:
		}
	}
}

// stopForeign asks the process that looks after a server to end it.
func (s *Supervisor) stopForeign(ctx context.Context, name string) (bool, error) {
	r, ok := s.read(name)
	if !ok {
		return false, nil
	}
	owner, err := tryLock(s.path(name, "lock"))
	if err == nil { // nobody does, and nothing was adopted: it is gone
		s.remove(name)
		return false, owner.release()
	}
	if err := os.WriteFile(s.path(name, "stop"), nil, 0o600); err != nil {
		return false, fmt.Errorf("ask for stop: %w", err)
	}
	tick := time.NewTicker(pollForeign)
	defer tick.Stop()
	for {
		if _, still := s.read(name); !still {
			return r.State.live(), nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

// adopted is a process that another supervisor left.
type adopted struct {
	record
	key string
}

// adoptAll takes over the servers whose supervisor is gone: those whose
// process still runs go on, of the others the record is removed.
func (s *Supervisor) adoptAll() {
	for _, r := range s.records() {
		name := r.Spec.record()
		s.mu.Lock()
		_, mine := s.owned[name]
		closed := s.closed
		s.mu.Unlock()
		if mine || closed {
			continue
		}
		owner, err := tryLock(s.path(name, "lock"))
		if err != nil {
			continue // somebody looks after it
		}
		if r, _ = s.read(name); r.Name == "" { // ended while we were getting here
			_ = owner.release()
			continue
		}
		key, keyErr := os.ReadFile(s.path(name, "key"))
		if r.State.live() && keyErr == nil && r.Process.running() {
			s.Log.Info("model server adopted", "name", r.Name, "state", r.State)
			s.run(r.Spec, owner, &adopted{record: r, key: strings.TrimSpace(string(key))})
			continue
		}
		s.remove(name)
		_ = owner.release()
	}
}

// sweep ends every server that nobody looks after.
func (s *Supervisor) sweep() {
	for _, r := range s.records() {
		owner, err := tryLock(s.path(r.Spec.record(), "lock"))
		if err != nil {
			continue
		}
		if r.Process.running() {
			adopt(r.Process).terminate(s.StopTimeout)
		}
		s.remove(r.Spec.record())
		_ = owner.release()
	}
}
