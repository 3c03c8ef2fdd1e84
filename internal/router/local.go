package router

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// localCredential stands in audit rows for the operating-system user.
const localCredential = "local"

type localKey struct{}

// LocalDoor is the stdio door: one client, in this very process, whose user
// owns the database anyway. It needs no key, acts as one agent, and can be
// asked a question while a call waits, because there is a way back.
type LocalDoor struct {
	agent string

	mu      sync.Mutex
	elicits bool
	asked   int
	waiting map[string]chan jsontext.Value
}

// NewLocalDoor is a door that acts as an agent.
func NewLocalDoor(agent string) *LocalDoor {
	return &LocalDoor{agent: agent, waiting: map[string]chan jsontext.Value{}}
}

// Open marks a request as come by this door. It cannot be reached from a
// network.
func (d *LocalDoor) Open(ctx context.Context) context.Context {
	return context.WithValue(ctx, localKey{}, d)
}

// meet remembers what the client can do: the handshake revisions say it once.
func (d *LocalDoor) meet(m *message) {
	capabilities := member(m.params, "capabilities")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.elicits = capabilities != nil && member(capabilities, "elicitation") != nil
}

func (d *LocalDoor) canAsk() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.elicits
}

// errNoAnswer is a client that answered a question with an error.
var errNoAnswer = errors.New("the client did not answer the question")

// ask sends a request to the client, on the stream of the call that waits,
// and gives the result that the client posts back.
func (d *LocalDoor) ask(ctx context.Context, push func([]byte) error, method string, params []byte) (jsontext.Value, error) {
	d.mu.Lock()
	d.asked++
	id := fmt.Sprintf(`"pawgate-%d"`, d.asked)
	answer := make(chan jsontext.Value, 1)
	d.waiting[id] = answer
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiting, id)
	}()
	if err := push(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)); err != nil {
		return nil, fmt.Errorf("ask client: %w", err)
	}
	select {
	case result := <-answer:
		if result == nil {
			return nil, errNoAnswer
		}
		return result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// deliver hands a reply of the client to the call that asked.
func (d *LocalDoor) deliver(m *message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if answer, ok := d.waiting[string(m.id)]; ok {
		answer <- m.result
		delete(d.waiting, string(m.id))
	}
}
