package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/fault"
	"pawgate/internal/outbox"
	"pawgate/internal/postgres/postgrestest"
)

// world is three platforms on one server: LINE and Discord recognise a
// repeated key, Telegram does not.
type world struct {
	mu     sync.Mutex
	keys   map[string]int
	copies map[string]int // messages by text
}

func (p *world) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		Text     string
		Content  string
		Nonce    string
		Messages []struct{ Text string }
	}
	if err := json.Unmarshal(body, &m); err != nil {
		w.WriteHeader(400)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	take := func(key, text string) (id int, again bool) {
		if n, known := p.keys[key]; known && key != "" {
			return n, true
		}
		p.copies[text]++
		p.keys[key] = len(p.copies)
		return len(p.copies), false
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/push"):
		id, again := take(r.Header.Get("X-Line-Retry-Key"), m.Messages[0].Text)
		if again {
			w.Header().Set("X-Line-Accepted-Request-Id", "r")
			w.WriteHeader(409)
		}
		fmt.Fprintf(w, `{"sentMessages":[{"id":"%d"}]}`, id)
	case strings.HasPrefix(r.URL.Path, "/channels/"):
		id, _ := take(m.Nonce, m.Content)
		fmt.Fprintf(w, `{"id":"%d"}`, id)
	default:
		id, _ := take("", m.Text)
		fmt.Fprintf(w, `{"ok":true,"result":{"message_id":%d}}`, id)
	}
}

func (p *world) got(text string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.copies[text]
}

// loads is how many messages are sent, and workers how many at a time.
const loads, workers = 1000, 32

// chats are a chat of each platform.
var chats = map[string]string{"line": "U0123456789abcdef0123456789abcdef", "discord": "123456789012345678", "telegram": "42"}

// TestThousandSends: a platform that fails 30 % of all requests, in every way,
// gets each message once where it knows our key; elsewhere the answer is true:
// sent is sent once, not sent is not sent, and unknown is never sent again.
func TestThousandSends(t *testing.T) {
	p := &world{keys: map[string]int{}, copies: map[string]int{}}
	server := channeltest.New(t, p.serve)
	mishaps := []channeltest.Mishap{channeltest.Away, channeltest.Limited, channeltest.Broken, channeltest.Reset, channeltest.LateReset, channeltest.LateBreak, channeltest.Silence}
	chance := rand.New(rand.NewPCG(7, 7))
	happened := map[channeltest.Mishap]int{}
	server.Next = func(channeltest.Request) channeltest.Mishap { // under the server's lock
		if chance.Float64() >= 0.3 {
			return channeltest.None
		}
		m := mishaps[chance.IntN(len(mishaps))]
		happened[m]++
		return m
	}
	b := setupOn(t, postgrestest.Clone(t), "telegram", server.URL)
	b.now = time.Now() // it stands still: no key grows old
	for _, name := range []string{"line", "discord"} {
		b.exec(`insert into channels (agent_id, channel, base_url, secret, set_by, set_at) values ($1, $2, $3, 'env://TEST_CHANNEL_TOKEN', 'test', now())`, b.agent, name, server.URL)
		b.exec(`insert into channel_targets (agent_id, channel, target, set_by, set_at) values ($1, $2, '*', 'test', now())`, b.agent, name)
	}

	var next atomic.Int64
	var sent, unknown atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				n := next.Add(1)
				if n > loads {
					return
				}
				name := []string{"line", "discord", "telegram"}[n%3]
				if b.untilSure(p, name, fmt.Sprintf("message number %d", n)) {
					sent.Add(1)
				} else {
					unknown.Add(1)
				}
			}
		})
	}
	group.Wait()
	if sent.Load()+unknown.Load() != loads || unknown.Load() == 0 || sent.Load() < loads*8/10 {
		t.Errorf("%d sent, %d unknown", sent.Load(), unknown.Load())
	}
	for _, m := range mishaps {
		if happened[m] == 0 {
			t.Errorf("%s never happened", m)
		}
	}
	t.Logf("%d messages in %d requests: %d sent, %d reported unknown; mishaps %v", loads, len(server.Requests()), sent.Load(), unknown.Load(), happened)
}

// untilSure repeats a call, as a patient caller does, until it is sent or its
// outcome is unknown for good, and holds every answer against what arrived.
func (b *bench) untilSure(p *world, name, text string) (sent bool) {
	keyed := name != "telegram"
	for range 50 {
		ctx, cancel := context.WithTimeout(context.Background(), 2700*time.Millisecond)
		_, err := b.Send(ctx, outbox.Message{Agent: b.agent, Channel: name, Chat: chats[name], Text: text, Key: text})
		cancel()
		got := p.got(text)
		if err == nil {
			if got != 1 {
				b.t.Errorf("%s: %s is sent, and arrived %d times", name, text, got)
			}
			return true
		}
		f, ok := fault.Of(err)
		switch {
		case errors.Is(err, context.DeadlineExceeded): // a slow machine: the call never came to its point
		case !ok:
			b.t.Errorf("%s: %v", name, err)
			return false
		case got > 1:
			b.t.Errorf("%s: %s arrived %d times", name, text, got)
			return false
		case f.Reason == fault.OutcomeUnknown && !keyed && f.RetryAfter == 0:
			return false
		case f.Reason == fault.OutcomeUnknown && keyed, f.Reason == fault.InProgress:
		case f.Reason == fault.RateLimited || f.Reason == fault.Unavailable:
			if got != 0 && !keyed {
				b.t.Errorf("%s: %s is said not to be sent, and arrived", name, text)
			}
		default:
			b.t.Errorf("%s: %s: %s", name, f.Reason, f.Message)
			return false
		}
	}
	b.t.Errorf("%s: %s never came to an end", name, text)
	return false
}
