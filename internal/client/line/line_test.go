package line_test

import (
	"context"
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
	"pawgate/internal/client/line"
)

const (
	token = "test-channel-access-token"
	user  = "U0123456789abcdef0123456789abcdef"
)

// api is the Messaging API as documented: a retry key is taken once, then
// answered with 409 and what was sent.
func api() http.HandlerFunc {
	var mu sync.Mutex
	sent := map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(401)
			_, _ = io.WriteString(w, `{"message":"Authentication failed. Confirm that the access token in the authorization header is valid."}`)
			return
		}
		switch r.URL.Path {
		case "/v2/bot/info":
			fmt.Fprintf(w, `{"userId":%q,"basicId":"@paw","displayName":"Paw"}`, user)
		case "/v2/bot/message/quota":
			_, _ = io.WriteString(w, `{"type":"limited","value":200}`)
		case "/v2/bot/message/quota/consumption":
			_, _ = io.WriteString(w, `{"totalUsage":"many"}`)
		default:
			push(w, r, sent)
		}
	}
}

func push(w http.ResponseWriter, r *http.Request, sent map[string]int) {
	var m struct {
		To       string
		Messages []struct{ Type, Text, OriginalContentURL, PackageID string }
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || len(m.Messages) == 0 || len(m.Messages) > 5 || channel.UTF16.Count(m.Messages[0].Text) > 5000 {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"message":"The request body has 1 error(s)","details":[{"message":"Length must be between 0 and 5000","property":"messages[0].text"}]}`)
		return
	}
	key := r.Header.Get("X-Line-Retry-Key")
	if n, again := sent[key]; again && key != "" { // without a key every request is a new one
		w.Header().Set("X-Line-Accepted-Request-Id", "request-1")
		w.WriteHeader(409)
		fmt.Fprintf(w, `{"message":"The retry key is already accepted","sentMessages":[{"id":"%d"}]}`, n)
		return
	}
	sent[key] = 460 + len(sent)
	fmt.Fprintf(w, `{"sentMessages":[{"id":"%d","quoteToken":"q"}]}`, sent[key])
}

func open(t *testing.T, secret string) (*channeltest.Server, line.Bot) {
	t.Helper()
	s := channeltest.New(t, api())
	p, err := line.New(channel.Account{BaseURL: s.URL, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s, p.(line.Bot)
}

func failure(t *testing.T, err error) *channel.Error {
	t.Helper()
	return channeltest.Failure(t, err, token)
}

func TestPush(t *testing.T) {
	s, bot := open(t, token)
	for name, mishap := range map[string]channeltest.Mishap{"MSG-07 no answer": channeltest.Silence, "MSG-07 reset": channeltest.LateReset, "MSG-07 500": channeltest.LateBreak} {
		t.Run(name, func(t *testing.T) {
			s.Then(channeltest.In(mishap))
			key := "00000000-0000-4000-8000-" + fmt.Sprintf("%012d", len(s.Requests()))
			ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
			defer cancel()
			_, err := bot.Send(ctx, user, channel.Part{Text: "hi"}, key)
			if e := failure(t, err); e.Fate != channel.Unknown {
				t.Errorf("got %+v", e)
			}
			again, err := bot.Send(t.Context(), user, channel.Part{Text: "hi"}, key)
			if err != nil || !again.Repeated || again.MessageID == "" {
				t.Errorf("409 is a success: %+v %v", again, err)
			}
		})
	}
	if bot.Traits().KeyLife <= 0 || bot.Traits().KeyLife >= 24*time.Hour {
		t.Error("the key is good for less than 24 hours")
	}
}

func TestLongTextMSG08(t *testing.T) {
	// MSG-08: seven parts; no request has more than five messages or 5000 units.
	s, bot := open(t, token)
	limit := bot.Traits().Text
	parts := channel.Split(channel.Parse(strings.Repeat("😀", 17000)), bot.Traits().Format, limit, limit)
	for i, p := range parts {
		if r, err := bot.Send(t.Context(), user, p, fmt.Sprint("key-", i)); err != nil || r.MessageID == "" { // L98
			t.Fatalf("part %d: %+v %v", i, r, err)
		}
	}
	if len(parts) != 7 || len(s.Requests()) != 7 {
		t.Errorf("%d parts, %d requests", len(parts), len(s.Requests()))
	}
	_, err := bot.Send(t.Context(), user, channel.Part{Text: strings.Repeat("a", 5001)}, "long")
	if e := failure(t, err); e.Fate != channel.Refused || !strings.Contains(e.Says, "messages[0].text") {
		t.Errorf("got %+v", e)
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		fate    channel.Fate
		wait    time.Duration
	}{
		"MSG-23 L100 the month is used up": {"You have reached your monthly limit.", channel.Refused, 0},
		"MSG-23 L100 too fast":             {"The API rate limit has been exceeded. Try again later.", channel.NotSent, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s, bot := open(t, token)
			s.Then(channeltest.In(channeltest.Limited))
			s.Limit = func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(429)
				fmt.Fprintf(w, `{"message":%q}`, c.message)
			}
			_, err := bot.Send(t.Context(), user, channel.Part{Text: "hi"}, "k")
			if e := failure(t, err); e.Fate != c.fate || !e.Limited || e.RetryAfter != c.wait || (c.fate == channel.Refused) != strings.Contains(e.Do, "next month") {
				t.Errorf("got %+v", e)
			}
		})
	}
}

func TestOthers(t *testing.T) {
	s, bot := open(t, token)
	if r, err := bot.SendSticker(t.Context(), user, channel.Sticker{Package: "446", ID: "1988"}, "s"); err != nil || r.MessageID == "" || !strings.Contains(string(s.Requests()[0].Body), `"packageId":"446"`) {
		t.Errorf("sticker: %+v %v", r, err)
	}
	if r, err := bot.SendPhoto(t.Context(), user, channel.Photo{URL: "https://example.com/a.png"}, "p"); err != nil || r.MessageID == "" || !strings.Contains(string(s.Requests()[1].Body), `"originalContentUrl":"https://example.com/a.png"`) {
		t.Errorf("photo: %+v %v", r, err)
	}
	if me, err := bot.Identify(t.Context()); err != nil || me.Name != "Paw @paw" { // an unreadable quota is left out
		t.Errorf("got %+v %v", me, err)
	}
	_, wrong := open(t, "another")
	if _, err := wrong.Identify(t.Context()); !failure(t, err).BadLogin {
		t.Errorf("got %v", err)
	}
	for id, want := range map[string]bool{user: true, "C" + user[1:]: true, "X" + user[1:]: false, "me": false, user + "/..": false} {
		if got := bot.CheckTarget(id) == nil; got != want {
			t.Errorf("CheckTarget(%q) passes: %v", id, got)
		}
	}
	if bot.CheckSticker(channel.Sticker{ID: "1"}) == nil || bot.Traits().CheckPhoto(channel.Photo{Data: []byte("x"), MediaType: "image/png"}) == nil {
		t.Error("a sticker without a package or an uploaded photo passes")
	}
}
