package settings

import (
	"context"
	"sync"
	"time"
)

// maxSecretAge is how long a resolved secret is kept in this process: reading
// one from the region's store takes longer than most calls that need it.
const maxSecretAge = time.Minute

// Secrets resolves references that are set in the database, and keeps the
// values for a minute. It is safe for concurrent use.
type Secrets struct {
	resolve func(context.Context, string) (string, error)
	now     func() time.Time
	mu      sync.Mutex
	kept    map[string]keptSecret
}

type keptSecret struct {
	value string
	at    time.Time
}

// NewSecrets keeps what resolve finds, such as Resolve.
func NewSecrets(resolve func(context.Context, string) (string, error), now func() time.Time) *Secrets {
	return &Secrets{resolve: resolve, now: now, kept: map[string]keptSecret{}}
}

// Get is the value behind a reference.
func (s *Secrets) Get(ctx context.Context, reference string) (string, error) {
	s.mu.Lock()
	kept, ok := s.kept[reference]
	s.mu.Unlock()
	if ok && s.now().Sub(kept.at) < maxSecretAge {
		return kept.value, nil
	}
	value, err := s.resolve(ctx, reference)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	s.kept[reference] = keptSecret{value, s.now()}
	s.mu.Unlock()
	return value, nil
}

// Forget drops a value that was refused, so that the next Get reads it anew.
func (s *Secrets) Forget(reference string) {
	s.mu.Lock()
	delete(s.kept, reference)
	s.mu.Unlock()
}
