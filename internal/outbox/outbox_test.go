package outbox_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/fault"
	"pawgate/internal/outbox"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
)

const token = "123456:test-TOKEN-of-a-bot"

// chat is a fake Telegram that remembers what it took.
type chat struct {
	*channeltest.Server
	mu    sync.Mutex
	texts []string
}

func newChat(t testing.TB) *chat {
	c := &chat{}
	c.Server = channeltest.New(t, func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			Text string `json:"text"`
			Mode string `json:"parse_mode"`
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || strings.Contains(m.Text, "refuse me") {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}`)
			return
		}
		if m.Mode != "" && strings.Contains(m.Text, "unparsable") {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"ok":false,"error_code":400,"description":"Bad Request: can't parse entities"}`)
			return
		}
		c.mu.Lock()
		c.texts = append(c.texts, m.Text)
		id := len(c.texts)
		c.mu.Unlock()
		fmt.Fprintf(w, `{"ok":true,"result":{"message_id":%d}}`, id)
	})
	return c
}

func (c *chat) took() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.texts...)
}

// bench is one agent with a channel, and the waits that sending asked for.
type bench struct {
	*outbox.Outbox
	t     testing.TB
	db    postgres.DB
	agent string
	now   time.Time

	mu    sync.Mutex
	waits []time.Duration
}

func setup(t *testing.T, channelName, url string) *bench {
	return setupOn(t, postgrestest.New(t), channelName, url)
}

func setupOn(t *testing.T, db postgres.DB, channelName, url string) *bench {
	t.Helper()
	b := &bench{t: t, db: db, now: time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC), agent: "clerk-" + strings.ToLower(rand.Text())}
	t.Setenv("TEST_CHANNEL_TOKEN", token)
	b.Outbox = outbox.New(db, func() time.Time { return b.now })
	b.Wait = func(ctx context.Context, d time.Duration) error {
		b.mu.Lock()
		b.waits = append(b.waits, d)
		b.mu.Unlock()
		return ctx.Err()
	}
	b.exec(`insert into agents (id, allowed_tools) values ($1, '{*}')`, b.agent)
	b.exec(`insert into channels (agent_id, channel, base_url, account, secret, set_by, set_at) values ($1, $2, $3, '777', 'env://TEST_CHANNEL_TOKEN', 'test', now())`, b.agent, channelName, url)
	b.exec(`insert into channel_targets (agent_id, channel, target, name, set_by, set_at) values ($1, $2, '*', '', 'test', now())`, b.agent, channelName)
	return b
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.db.Exec(context.Background(), sql, args...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) text(text, key string) (outbox.Sent, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return b.Send(ctx, outbox.Message{Agent: b.agent, Channel: "telegram", Chat: "42", Text: text, Key: key})
}

func (b *bench) wantFault(err error, reason fault.Reason) *fault.Fault {
	b.t.Helper()
	f, ok := fault.Of(err)
	if !ok || f.Reason != reason {
		b.t.Fatalf("want a fault %s, got %v", reason, err)
	}
	if strings.Contains(fmt.Sprintf("%v %v", f.Message, f.Fields), token) {
		b.t.Errorf("the fault holds the token: %v", f)
	}
	return f
}

// three is a text of three parts.
var three = strings.Repeat("a", 4096) + "\n\n" + strings.Repeat("b", 4096) + "\n\nccc"

func TestResumesAtTheFailedPart(t *testing.T) {
	for name, mishap := range map[string]channeltest.Mishap{"MSG-06 503 after part 1": channeltest.Away, "reset before it is done is not known": channeltest.Reset} {
		t.Run(name, func(t *testing.T) {
			c := newChat(t)
			b := setup(t, "telegram", c.URL)
			c.Then(channeltest.In("", mishap, mishap, mishap, mishap))
			want := map[channeltest.Mishap]fault.Reason{channeltest.Away: fault.Unavailable, channeltest.Reset: fault.OutcomeUnknown}[mishap]
			f := b.wantFault(second(b.text(three, "k1")), want)
			if ids := fmt.Sprint(f.Fields["message_ids"]); ids != "[1]" || f.Fields["parts"] != 3 {
				t.Errorf("the answer does not list what was sent: %v", f.Fields)
			}
			if stuck := mishap == channeltest.Reset; strings.Contains(f.Message, "goes on with part 2") == stuck ||
				strings.Contains(f.Message, "part 2 may be, and those after it are not") != stuck {
				t.Errorf("what the same call would do: %s", f.Message)
			}
			c.Then(nil)
			sent, err := b.text(three, "k1")
			if mishap == channeltest.Reset { // Telegram knows no keys: no second attempt
				b.wantFault(err, fault.OutcomeUnknown)
				if len(c.took()) != 1 {
					t.Errorf("an unknown part was sent again")
				}
				return
			}
			if err != nil || len(sent.MessageIDs) != 3 || sent.Repeated {
				t.Fatalf("got %+v %v", sent, err)
			}
			if got := c.took(); len(got) != 3 || got[0][0] != 'a' || got[1][0] != 'b' || got[2] != "ccc" {
				t.Errorf("%d messages arrived", len(got))
			}
		})
	}
}

func second(_ outbox.Sent, err error) error { return err }

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		seconds int
		waited  bool
	}{"MSG-05 34 s is longer than the call": {34, false}, "MSG-05 10072 s": {10072, false}, "3 s fits": {3, true}} {
		t.Run(name, func(t *testing.T) {
			fake := newChat(t)
			b := setup(t, "telegram", fake.URL)
			fake.Then(channeltest.In(channeltest.Limited))
			fake.Limit = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(429)
				fmt.Fprintf(w, `{"ok":false,"error_code":429,"description":"Too Many Requests","parameters":{"retry_after":%d}}`, c.seconds)
			}
			sent, err := b.text("hi", "")
			wait := time.Duration(c.seconds) * time.Second
			if c.waited {
				if err != nil || len(sent.MessageIDs) != 1 || len(b.waits) != 1 || b.waits[0] != wait {
					t.Errorf("got %+v %v, waits %v", sent, err, b.waits)
				}
				return
			}
			if f := b.wantFault(err, fault.RateLimited); f.RetryAfter != wait || len(b.waits) != 0 {
				t.Errorf("retry after %s, waits %v", f.RetryAfter, b.waits)
			}
			if len(fake.took()) != 0 {
				t.Error("it was sent")
			}
		})
	}
	t.Run("MSG-05 34 s within a longer call", func(t *testing.T) {
		fake := newChat(t)
		b := setup(t, "telegram", fake.URL)
		fake.Then(channeltest.In(channeltest.Limited))
		fake.Limit = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(429)
			_, _ = io.WriteString(w, `{"ok":false,"error_code":429,"parameters":{"retry_after":34}}`)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		sent, err := b.Send(ctx, outbox.Message{Agent: b.agent, Channel: "telegram", Chat: "42", Text: "hi"})
		if err != nil || len(sent.MessageIDs) != 1 || b.waits[0] != 34*time.Second {
			t.Errorf("got %+v %v", sent, err)
		}
	})
}

func TestRepetition(t *testing.T) {
	c := newChat(t)
	b := setup(t, "telegram", c.URL)
	t.Run("MSG-18 the same key", func(t *testing.T) {
		first, err := b.text("hello", "k")
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.text("hello", "k")
		if err != nil || !again.Repeated || again.MessageIDs[0] != first.MessageIDs[0] || len(c.took()) != 1 {
			t.Errorf("got %+v %v", again, err)
		}
		b.wantFault(second(b.text("another text", "k")), fault.Conflict)
	})
	t.Run("MSG-18 without a key", func(t *testing.T) {
		if _, err := b.text("ping", ""); err != nil {
			t.Fatal(err)
		}
		again, err := b.text("ping", "")
		if err != nil || !again.Repeated || !strings.Contains(again.Note, "idempotency_key") {
			t.Errorf("got %+v %v", again, err)
		}
		b.now = b.now.Add(outbox.SameFor + time.Second)
		if again, err = b.text("ping", ""); err != nil || again.Repeated {
			t.Errorf("later it is another message: %+v %v", again, err)
		}
	})
	t.Run("a repetition does not renew the time", func(t *testing.T) {
		took := len(c.took())
		for range 4 { // each within SameFor of the last, and every second one is a message of its own
			if _, err := b.text("heartbeat", ""); err != nil {
				t.Fatal(err)
			}
			b.now = b.now.Add(outbox.SameFor*2/3 + time.Second)
		}
		if sent := len(c.took()) - took; sent != 2 {
			t.Errorf("sent %d times, want 2", sent)
		}
	})
	t.Run("a call that died", func(t *testing.T) {
		if _, err := b.text("dying", "dead"); err != nil {
			t.Fatal(err)
		}
		b.exec(`update outbox set done = false, lease_until = $2 where agent_id = $1 and key = 'own:dead'`, b.agent, b.now.Add(time.Minute))
		b.exec(`update outbox_parts set state = 'sending' where outbox_id = (select id from outbox where agent_id = $1 and key = 'own:dead')`, b.agent)
		b.wantFault(second(b.text("dying", "dead")), fault.InProgress)
		b.now = b.now.Add(2 * time.Minute)
		b.wantFault(second(b.text("dying", "dead")), fault.OutcomeUnknown)
	})
	t.Run("refused, then allowed", func(t *testing.T) {
		f := b.wantFault(second(b.text("refuse me", "r")), outbox.Refused)
		if f.Fields["platform_code"] != "400" {
			t.Errorf("got %v", f.Fields)
		}
	})
}

// TestTakenOver: a call whose hold on a message is another's begins no further
// part, leaves that hold alone, and does not unsay what is sent.
func TestTakenOver(t *testing.T) {
	c := newChat(t)
	b := setup(t, "telegram", c.URL)
	c.Then(func(channeltest.Request) channeltest.Mishap {
		b.exec(`update outbox set lease_until = lease_until + interval '1 hour' where agent_id = $1`, b.agent)
		return channeltest.None
	})
	b.wantFault(second(b.text(three, "k")), fault.InProgress)
	if took := len(c.took()); took != 1 {
		t.Errorf("%d parts are sent, want the one under way", took)
	}
	b.wantFault(second(b.text(three, "k")), fault.InProgress) // still the other's

	c.Then(func(channeltest.Request) channeltest.Mishap {
		b.exec(`update outbox_parts set state = 'sent', message_id = '9' where state = 'sending' and outbox_id in (select id from outbox where agent_id = $1)`, b.agent)
		return channeltest.Reset
	})
	b.wantFault(second(b.text("one", "l")), fault.OutcomeUnknown)
	if again, err := b.text("one", "l"); err != nil || !again.Repeated || again.MessageIDs[0] != "9" {
		t.Errorf("after another has sent it: %+v, %v", again, err)
	}
}

func TestMarkupFallsBackMSG04(t *testing.T) {
	c := newChat(t)
	b := setup(t, "telegram", c.URL)
	// MSG-04: exactly one more request, in plain text.
	sent, err := b.text("**unparsable** (v1.2)!", "")
	if err != nil || len(sent.MessageIDs) != 1 || len(c.Requests()) != 2 || c.took()[0] != "unparsable (v1.2)!" {
		t.Errorf("got %+v %v %q", sent, err, c.took())
	}
	b.exec(`insert into channel_settings values ($1, 'telegram', 'global', 'response_mode', '"plain"', 'test', now())`, b.agent)
	if _, err := b.text("**bold**", ""); err != nil || c.took()[1] != "bold" {
		t.Errorf("response_mode plain: %v %q", err, c.took())
	}
}

func TestDestinations(t *testing.T) {
	c := newChat(t)
	b := setup(t, "telegram", c.URL)
	b.exec(`update channel_targets set target = '42', name = 'Team' where agent_id = $1`, b.agent)
	to := func(chat string) error {
		_, err := b.Send(t.Context(), outbox.Message{Agent: b.agent, Channel: "telegram", Chat: chat, Text: "to " + chat})
		return err
	}
	for _, chat := range []string{"42", "team", "#Team"} {
		if err := to(chat); err != nil {
			t.Errorf("%s: %v", chat, err)
		}
	}
	for _, chat := range []string{"43", "42/7", "*", "../getMe", "@team"} {
		if f := b.wantFault(to(chat), fault.Denied); !strings.Contains(f.Message, "Team") {
			t.Errorf("%s: %s", chat, f.Message)
		}
	}
	if _, err := b.Notify(t.Context(), b.agent, "", "", "done", "n1"); err != nil {
		t.Errorf("Notify to the only chat: %v", err)
	}
	if again, err := b.Notify(t.Context(), b.agent, "telegram", "team", "done", "n1"); err != nil || !again.Repeated {
		t.Errorf("Notify twice: %+v %v", again, err)
	}
	b.wantFault(second(b.Notify(t.Context(), "nobody", "telegram", "", "x", "")), fault.NotConfigured)
	b.exec(`update channels set secret = 'env://NO_SUCH_VARIABLE_HERE' where agent_id = $1`, b.agent)
	if f := b.wantFault(to("42"), fault.NotConfigured); strings.Contains(f.Message, "NO_SUCH") {
		t.Errorf("the fault names where the secret lies: %s", f.Message)
	}
}

func TestSentenceOfChannelError(t *testing.T) {
	e := &channel.Error{Platform: "x", Fate: channel.Refused, Says: "no", Code: "7", Do: "ask"}
	if got := e.Error(); got != "x refused: no (code 7); ask" {
		t.Errorf("got %q", got)
	}
}

// A repetition that was refused does not tell what became of the first attempt.
func TestUnknownStaysUnknown(t *testing.T) {
	p := &world{keys: map[string]int{}, copies: map[string]int{}}
	s := channeltest.New(t, p.serve)
	b := setup(t, "line", s.URL)
	s.Then(channeltest.In(channeltest.LateBreak, channeltest.Away, channeltest.Limited, channeltest.Limited))
	send := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := b.Send(ctx, outbox.Message{Agent: b.agent, Channel: "line", Chat: chats["line"], Text: "once"})
		return err
	}
	b.Wait = func(context.Context, time.Duration) error { return context.Canceled } // one attempt a call
	for range 3 {
		if f := b.wantFault(send(), fault.OutcomeUnknown); f.RetryAfter == 0 {
			t.Errorf("a repetition is safe, and the answer does not say so: %s", f.Message)
		}
	}
	b.now = b.now.Add(23*time.Hour + time.Minute) // LINE may have forgotten the key
	if f := b.wantFault(send(), fault.OutcomeUnknown); f.RetryAfter != 0 || p.got("once") != 1 {
		t.Errorf("%s; arrived %d times", f.Message, p.got("once"))
	}
}

func TestCallsAtOnce(t *testing.T) {
	c := newChat(t)
	b := setupOn(t, postgrestest.Clone(t), "telegram", c.URL)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for {
				sent, err := b.text("only once", "same")
				if err == nil {
					if len(sent.MessageIDs) != 1 || sent.MessageIDs[0] != "1" {
						t.Errorf("got %+v", sent)
					}
					return
				}
				if f, ok := fault.Of(err); !ok || f.Reason != fault.InProgress {
					t.Errorf("got %v", err)
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	group.Wait()
	if got := c.took(); len(got) != 1 {
		t.Errorf("it arrived %d times", len(got))
	}
}
