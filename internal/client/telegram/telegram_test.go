package telegram_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/client/telegram"
)

const token = "123456:test-TOKEN-of-a-bot"

var tags = regexp.MustCompile(`</?[a-z]+>`)

// api is the Bot API as documented: an envelope with ok, result, error_code,
// description and parameters.
func api(w http.ResponseWriter, r *http.Request) {
	method, found := strings.CutPrefix(r.URL.Path, "/bot"+token+"/")
	if !found {
		refuse(w, 401, "Unauthorized")
		return
	}
	var m struct {
		ChatID    string `json:"chat_id"`
		Text      string `json:"text"`
		ParseMode string `json:"parse_mode"`
		Sticker   string `json:"sticker"`
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			refuse(w, 400, "Bad Request: can't parse JSON")
			return
		}
	}
	switch {
	case method == "getMe":
		_, _ = io.WriteString(w, `{"ok":true,"result":{"id":123456,"is_bot":true,"username":"paw_bot"}}`)
	case m.ChatID == "404":
		refuse(w, 400, "Bad Request: chat not found")
	case method == "sendMessage" && channel.UTF16.Count(tags.ReplaceAllString(m.Text, "")) > 4096: // after entities parsing
		refuse(w, 400, "Bad Request: message is too long")
	case method == "sendMessage" && m.ParseMode != "" && strings.Contains(m.Text, "unparsable"):
		refuse(w, 400, "Bad Request: can't parse entities: unsupported start tag")
	case method == "sendSticker" && m.Sticker != "CAACAgIAAxkBAAE":
		refuse(w, 400, "Bad Request: wrong file identifier/HTTP URL specified")
	default:
		_, _ = io.WriteString(w, `{"ok":true,"result":{"message_id":77,"chat":{"id":1},"unknown":[1]}}`)
	}
}

func refuse(w http.ResponseWriter, code int, description string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": false, "error_code": code, "description": description})
}

func open(t *testing.T) (*channeltest.Server, channel.Platform) {
	t.Helper()
	s := channeltest.New(t, api)
	bot, err := telegram.New(channel.Account{BaseURL: s.URL, Secret: token})
	if err != nil {
		t.Fatal(err)
	}
	return s, bot
}

func failure(t *testing.T, err error) *channel.Error {
	t.Helper()
	return channeltest.Failure(t, err, token)
}

func TestSendMSG04Escapes(t *testing.T) {
	s, bot := open(t)
	part := channel.Split(channel.Parse("a_b (v1.2)! - #1 <x> **y**"), bot.Traits().Format, bot.Traits().Text, bot.Traits().Text)[0]
	receipt, err := bot.Send(t.Context(), "-100123/7", part, "")
	if err != nil || receipt.MessageID != "77" {
		t.Fatalf("got %+v %v", receipt, err)
	}
	var sent map[string]any
	if err := json.Unmarshal(s.Requests()[0].Body, &sent); err != nil {
		t.Fatal(err)
	}
	// MSG-04: what is reserved is escaped, what is not stays as it is.
	if sent["text"] != "a_b (v1.2)! - #1 &lt;x&gt; <b>y</b>" || sent["parse_mode"] != "HTML" || sent["chat_id"] != "-100123" || sent["message_thread_id"] != 7.0 {
		t.Errorf("sent %v", sent)
	}
}

func TestLongTextMSG01(t *testing.T) {
	for name, text := range map[string]string{"emoji": strings.Repeat("😀", 2049), "bold": strings.Repeat("**word** ", 820)} {
		t.Run(name, func(t *testing.T) {
			s, bot := open(t)
			limit := bot.Traits().Text
			for i, p := range channel.Split(channel.Parse(text), bot.Traits().Format, limit, limit) {
				if _, err := bot.Send(t.Context(), "1", p, ""); err != nil {
					t.Errorf("part %d: %v", i, err)
				}
			}
			if len(s.Requests()) != 2 { // marks do not count
				t.Errorf("%d messages, want 2", len(s.Requests()))
			}
		})
	}
}

func TestFailures(t *testing.T) {
	limited := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(429)
		_, _ = io.WriteString(w, `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 34","parameters":{"retry_after":34}}`)
	}
	for _, c := range []struct {
		name   string
		mishap channeltest.Mishap
		chat   string
		text   string
		fate   channel.Fate
		check  func(*channel.Error) bool
	}{
		{"no such chat", "", "404", "x", channel.Refused, func(e *channel.Error) bool { return e.Code == "400" && strings.Contains(e.Do, "chat_id") }},
		{"MSG-04 markup is not understood", "", "1", "unparsable", channel.Refused, func(e *channel.Error) bool { return e.BadMarkup }},
		{"MSG-05 limited", channeltest.Limited, "1", "x", channel.NotSent, func(e *channel.Error) bool { return e.Limited && e.RetryAfter == 34*time.Second }},
		{"away", channeltest.Away, "1", "x", channel.NotSent, nil},
		{"broken", channeltest.Broken, "1", "x", channel.Unknown, nil},
		{"reset after it was taken", channeltest.LateReset, "1", "x", channel.Unknown, nil},
		{"no answer", channeltest.Silence, "1", "x", channel.Unknown, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, bot := open(t)
			s.Next, s.Limit = channeltest.In(c.mishap), limited
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := bot.Send(ctx, c.chat, channel.Part{Text: c.text, Markup: true}, "")
			e := failure(t, err)
			if e.Fate != c.fate || c.check != nil && !c.check(e) {
				t.Errorf("got %+v", e)
			}
			if len(s.Requests()) != 1 {
				t.Errorf("%d requests; a platform package never repeats one", len(s.Requests()))
			}
		})
	}
	t.Run("MSG-19 not reachable", func(t *testing.T) {
		s := channeltest.New(t, api)
		address := s.URL
		bot, err := telegram.New(channel.Account{BaseURL: strings.Replace(address, "127.0.0.1", "nowhere.invalid", 1), Secret: token})
		if err != nil {
			t.Fatal(err)
		}
		_, err = bot.Send(t.Context(), "1", channel.Part{Text: "x"}, "")
		if e := failure(t, err); e.Fate != channel.NotSent {
			t.Errorf("got %+v", e)
		}
	})
}

func TestPhoto(t *testing.T) {
	s, bot := open(t)
	for _, c := range []struct {
		name, method  string
		width, height int
	}{
		{"a photo", "/sendPhoto", 800, 600},
		{"MSG-15 width and height over 10000", "/sendDocument", 6000, 5000},
		{"a ratio over 20", "/sendDocument", 2100, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			photo := channel.Photo{Data: []byte("picture"), MediaType: "image/png", Width: c.width, Height: c.height, Caption: channel.Part{Text: "hi"}}
			if r, err := bot.SendPhoto(t.Context(), "1", photo, ""); err != nil || r.MessageID != "77" {
				t.Fatalf("got %+v %v", r, err)
			}
			requests := s.Requests()
			last := requests[len(requests)-1]
			if !strings.HasSuffix(last.Path, c.method) || !strings.Contains(string(last.Body), "picture") || !strings.Contains(string(last.Body), "photo.png") {
				t.Errorf("sent %s %q", last.Path, last.Body)
			}
		})
	}
}

func TestSticker(t *testing.T) {
	s, bot := open(t)
	stickers := bot.(channel.StickerSender)
	if r, err := stickers.SendSticker(t.Context(), "1", channel.Sticker{ID: "CAACAgIAAxkBAAE"}, ""); err != nil || r.MessageID != "77" {
		t.Errorf("got %+v %v", r, err)
	}
	t.Run("MSG-22 a made-up sticker", func(t *testing.T) {
		_, err := stickers.SendSticker(t.Context(), "1", channel.Sticker{ID: "MADE_UP_STICKER"}, "")
		if e := failure(t, err); e.Fate != channel.Refused || !strings.Contains(e.Do, "sticker_id MADE_UP_STICKER is") || !strings.Contains(e.Do, "file_id") {
			t.Errorf("got %+v", e)
		}
		if stickers.CheckSticker(channel.Sticker{ID: "https://example.com/s.webp"}) == nil {
			t.Error("an address passes as a sticker")
		}
		if len(s.Requests()) != 2 {
			t.Errorf("%d requests, want 2", len(s.Requests()))
		}
	})
}

func TestIdentifyAndTargets(t *testing.T) {
	_, bot := open(t)
	if me, err := bot.Identify(t.Context()); err != nil || me.ID != "123456" || me.Name != "@paw_bot" {
		t.Errorf("got %+v %v", me, err)
	}
	for id, want := range map[string]bool{"-1001234567890": true, "42/7": true, "@a_channel": true, "../getUpdates": false, "": false, "1 2": false, "@x?y": false} {
		if got := bot.CheckTarget(id) == nil; got != want {
			t.Errorf("CheckTarget(%q) passes: %v", id, got)
		}
	}
	s := channeltest.New(t, api)
	wrong, err := telegram.New(channel.Account{BaseURL: s.URL, Secret: "1:another-token"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = wrong.Identify(t.Context()); !failure(t, err).BadLogin {
		t.Errorf("got %v", err)
	}
}
