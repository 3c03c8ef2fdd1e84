package discord_test

import (
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
	"pawgate/internal/client/discord"
)

const (
	token = "test-discord-token"
	room  = "123456789012345678"
	key   = "0f0e0d0c-0b0a-4908-8706-050403020100"
)

// api is the REST API as documented: with enforce_nonce a nonce makes one
// message.
func api() http.HandlerFunc {
	var mu sync.Mutex
	byNonce := map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != "Bot "+token:
			w.WriteHeader(401)
			_, _ = io.WriteString(w, `{"message":"401: Unauthorized","code":0}`)
			return
		case r.URL.Path == "/users/@me":
			_, _ = io.WriteString(w, `{"id":"99","username":"paw","bot":true}`)
			return
		case !strings.HasPrefix(r.URL.Path, "/channels/"+room):
			w.WriteHeader(404)
			_, _ = io.WriteString(w, `{"message":"Unknown Channel","code":10003}`)
			return
		}
		var m struct {
			Content string
			Nonce   string
			Enforce bool `json:"enforce_nonce"`
		}
		payload := []byte(r.FormValue("payload_json"))
		if len(payload) == 0 {
			payload, _ = io.ReadAll(r.Body)
		}
		if json.Unmarshal(payload, &m) != nil || len(m.Nonce) > 25 || channel.UTF16.Count(m.Content) > 2000 {
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"message":"Invalid Form Body","code":50035,"errors":{}}`)
			return
		}
		if _, again := byNonce[m.Nonce]; !again || !m.Enforce {
			byNonce[m.Nonce] = 500 + len(byNonce)
		}
		fmt.Fprintf(w, `{"id":"%d","content":%q}`, byNonce[m.Nonce], m.Content)
	}
}

func open(t *testing.T, handler http.HandlerFunc) (*channeltest.Server, channel.Platform) {
	t.Helper()
	s := channeltest.New(t, handler)
	p, err := discord.New(channel.Account{BaseURL: s.URL, Secret: token})
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func failure(t *testing.T, err error) *channel.Error {
	t.Helper()
	return channeltest.Failure(t, err, token)
}

func TestSendMSG20Mentions(t *testing.T) {
	s, bot := open(t, api())
	traits := bot.Traits()
	parts := channel.Split(channel.Parse("@everyone **hi** a_b `x`"), traits.Format, traits.Text, traits.Text)
	r, err := bot.Send(t.Context(), room, parts[0], key)
	if err != nil || r.MessageID != "500" {
		t.Fatalf("got %+v %v", r, err)
	}
	var m map[string]any
	_ = json.Unmarshal(s.Requests()[0].Body, &m)
	// MSG-20: delivered, and nobody is called.
	if mentions, _ := m["allowed_mentions"].(map[string]any); m["content"] != "@everyone **hi** a\\_b ``x``" || len(mentions) != 1 || len(mentions["parse"].([]any)) != 0 {
		t.Errorf("sent %v", m)
	}
	s.Then(channeltest.In(channeltest.LateReset))
	if _, err := bot.Send(t.Context(), room, channel.Part{Text: "x"}, "another-key"); failure(t, err).Fate != channel.Unknown {
		t.Errorf("got %v", err)
	}
	first, _ := bot.Send(t.Context(), room, channel.Part{Text: "x"}, "another-key")
	if again, _ := bot.Send(t.Context(), room, channel.Part{Text: "x"}, "another-key"); again.MessageID != first.MessageID || first.MessageID != "501" {
		t.Errorf("the nonce makes one message: %+v %+v", first, again)
	}
	photo := channel.Photo{Data: []byte("picture"), MediaType: "image/png", Caption: channel.Part{Text: "look"}}
	if r, err := bot.SendPhoto(t.Context(), room, photo, "photo-key"); err != nil || r.MessageID != "502" {
		t.Errorf("photo: %+v %v", r, err)
	}
	if me, err := bot.Identify(t.Context()); err != nil || me.Name != "paw" {
		t.Errorf("got %+v %v", me, err)
	}
}

func TestLongText(t *testing.T) {
	_, bot := open(t, api())
	traits := bot.Traits()
	for name, text := range map[string]string{"MSG-13 2001 characters": strings.Repeat("a", 2001), "code": "```go\n" + strings.Repeat("x := `y` // ```\n", 300) + "```"} {
		t.Run(name, func(t *testing.T) {
			parts := channel.Split(channel.Parse(text), traits.Format, traits.Text, traits.Text)
			for i, p := range parts {
				if _, err := bot.Send(t.Context(), room, p, fmt.Sprint(name, i)[len(name):]+"-k"); err != nil {
					t.Errorf("part %d: %v", i, err)
				}
			}
			if len(parts) < 2 {
				t.Errorf("%d parts", len(parts))
			}
		})
	}
	t.Run("MSG-13 204 without a body", func(t *testing.T) {
		_, bot := open(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
		if r, err := bot.Send(t.Context(), room, channel.Part{Text: "x"}, key); err != nil {
			t.Errorf("got %+v %v", r, err)
		}
	})
}

func TestRefusalsMSG24(t *testing.T) {
	s, bot := open(t, api())
	s.Limit = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "737300") // milliseconds, as without a version
		w.WriteHeader(429)
		_, _ = io.WriteString(w, `{"message":"You are being rate limited.","retry_after":737.3,"global":false}`)
	}
	s.Then(channeltest.In(channeltest.Limited))
	_, err := bot.Send(t.Context(), room, channel.Part{Text: "x"}, key)
	if e := failure(t, err); e.Fate != channel.NotSent || !e.Limited || e.RetryAfter != 737300*time.Millisecond { // MSG-24
		t.Errorf("MSG-24: %+v", e)
	}
	_, err = bot.Send(t.Context(), "999999999999999999", channel.Part{Text: "x"}, key)
	if e := failure(t, err); e.Fate != channel.Refused || e.Code != "10003" || e.Do == "" {
		t.Errorf("got %+v", e)
	}
	for id, want := range map[string]bool{room: true, "../users/@me": false, "12": false, room + "?x=y": false, room + "/.": false} {
		if got := bot.CheckTarget(id) == nil; got != want {
			t.Errorf("CheckTarget(%q) passes: %v", id, got)
		}
	}
}
