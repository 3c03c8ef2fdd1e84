package supervise

import (
	"slices"
	"time"

	"pawgate/internal/fault"
)

// makeRoom evicts the servers that were idle longest.
func (s *Supervisor) makeRoom(spec Spec) error {
	for {
		live := slices.DeleteFunc(s.List(), func(v Server) bool { return !v.State.live() })
		if len(live) < s.Max {
			return nil
		}
		idle := slices.DeleteFunc(s.mine(), func(v *server) bool { return !v.evictable() })
		if len(idle) == 0 {
			return fault.Retry(fault.Conflict, 10*time.Second,
				"no room for %s: %d of %d servers are loading or busy; stop one, or try again later", spec.Name, len(live), s.Max).
				With("servers", names(live))
		}
		oldest := slices.MinFunc(idle, func(a, b *server) int { return a.lastUsed().Compare(b.lastUsed()) })
		s.Log.Info("model server evicted", "name", oldest.spec.Name, "for", spec.Name)
		oldest.end(wantStop)
		<-oldest.done
	}
}

func names(servers []Server) []string {
	list := make([]string, len(servers))
	for i, v := range servers {
		list[i] = v.Name
	}
	return list
}
