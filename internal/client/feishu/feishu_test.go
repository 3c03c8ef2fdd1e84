package feishu_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/client/feishu"
)

const (
	app    = "cli_a1b2c3d4e5f60718"
	secret = "the-app-secret-0123456789"
	token  = "t-g104bearer"
	chat   = "oc_5ce6d572455d361153b7cb51da133945"
)

// api is the open platform as documented: a code in every answer, content as a
// string of JSON, one message for one uuid.
func api(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/open-apis/auth/v3/tenant_access_token/internal" {
		var m map[string]string
		if json.NewDecoder(r.Body).Decode(&m) != nil || m["app_id"] != app || m["app_secret"] != secret {
			_, _ = io.WriteString(w, `{"code":10014,"msg":"app secret invalid"}`)
			return
		}
		_, _ = io.WriteString(w, `{"code":0,"msg":"ok","tenant_access_token":"`+token+`","expire":7140}`)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"code":99991663,"msg":"token invalid"}`)
		return
	}
	switch r.URL.Path {
	case "/open-apis/bot/v3/info":
		_, _ = io.WriteString(w, `{"code":0,"msg":"ok","bot":{"app_name":"Paw","open_id":"ou_1"}}`)
	case "/open-apis/im/v1/images":
		_, _ = io.WriteString(w, `{"code":0,"msg":"ok","data":{"image_key":"img_v3_1"}}`)
	default:
		message(w, r)
	}
}

func message(w http.ResponseWriter, r *http.Request) {
	var m struct {
		To      string `json:"receive_id"`
		Kind    string `json:"msg_type"`
		Content string `json:"content"`
		UUID    string `json:"uuid"`
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &m)
	switch {
	case m.Kind == "post" && len(body) > 30<<10, r.URL.Query().Get("receive_id_type") != "chat_id" || !json.Valid([]byte(m.Content)) || m.UUID == "":
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"code":230001,"msg":"Your request contains an invalid request parameter."}`)
	case strings.Contains(m.Content, "not a member"):
		_, _ = io.WriteString(w, `{"code":230002,"msg":"Bot/User can NOT be out of the chat."}`)
	case strings.Contains(m.Content, "too often"):
		w.Header().Set("x-ogw-ratelimit-reset", "7")
		w.WriteHeader(429)
		_, _ = io.WriteString(w, `{"code":99991400,"msg":"request trigger frequency limit"}`)
	default:
		_, _ = io.WriteString(w, `{"code":0,"msg":"success","data":{"message_id":"om_`+m.Kind+`"}}`)
	}
}

func open(t *testing.T, secret string) (*channeltest.Server, channel.Platform) {
	t.Helper()
	s := channeltest.New(t, api)
	bot, err := feishu.New(channel.Account{BaseURL: s.URL, ID: app, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s, bot
}

func failure(t *testing.T, err error) *channel.Error {
	t.Helper()
	return channeltest.Failure(t, err, secret, token)
}

func part(bot channel.Platform, md string) channel.Part {
	traits := bot.Traits()
	return channel.Split(channel.Parse(md), traits.Format, traits.Text, traits.Text)[0]
}

func TestSend(t *testing.T) {
	s, bot := open(t, secret)
	for range 2 {
		if got, err := bot.Send(t.Context(), chat, part(bot, `**hi** <at user_id="all"></at>`), "key-1"); err != nil || got.MessageID != "om_post" {
			t.Fatalf("got %+v %v", got, err)
		}
	}
	requests := s.Requests()
	if len(requests) != 3 { // one login, two messages
		t.Errorf("%d requests", len(requests))
	}
	if body := string(requests[2].Body); !strings.Contains(body, `"uuid":"key-1"`) || strings.Contains(body, `<at`) || !strings.Contains(body, "**hi**") {
		t.Errorf("sent %s", body)
	}
	if got, err := bot.Send(t.Context(), chat, channel.Part{Text: "plain"}, "key-2"); err != nil || got.MessageID != "om_text" {
		t.Errorf("got %+v %v", got, err)
	}
	// Plain text has no marks, but it has mentions.
	if _, err := bot.Send(t.Context(), chat, channel.Part{Text: `<at user_id="all"></at> <aT user_id="all"></aT>`}, "key-4"); err != nil {
		t.Fatal(err)
	}
	all := s.Requests()
	if body := strings.ToLower(string(all[len(all)-1].Body)); strings.Contains(body, "<at") || !strings.Contains(body, "<\u200bat") {
		t.Errorf("sent %s", body)
	}
	if got, err := bot.SendPhoto(t.Context(), chat, channel.Photo{Data: []byte("picture"), MediaType: "image/png"}, "key-3"); err != nil || got.MessageID != "om_image" {
		t.Errorf("photo: %+v %v", got, err)
	}
}

// longTexts are of what takes most room, by what it is.
var longTexts = map[string]string{
	"characters of three bytes": strings.Repeat("備份完成。", 3000), "tags": strings.Repeat("<&>", 10_000),
	"quotation marks": strings.Repeat(`"`, 30_000), "short lines": strings.Repeat("a\n", 15_000),
}

func TestLongText(t *testing.T) {
	for name, text := range longTexts {
		t.Run(name, func(t *testing.T) {
			_, bot := open(t, secret)
			traits := bot.Traits()
			for i, p := range channel.Split(channel.Parse(text), traits.Format, traits.Text, traits.Text) {
				if _, err := bot.Send(t.Context(), chat, p, "key"); err != nil {
					t.Errorf("part %d: %v", i, err)
				}
			}
		})
	}
}

func TestMSG17Tables(t *testing.T) {
	s, bot := open(t, secret)
	var md strings.Builder
	for range 12 { // more than a card may hold
		md.WriteString("| a | b |\n|---|---|\n| one | two |\n\n")
	}
	traits := bot.Traits()
	for _, p := range channel.Split(channel.Parse(md.String()), traits.Format, traits.Text, traits.Text) {
		if _, err := bot.Send(t.Context(), chat, p, "k"); err != nil {
			t.Fatal(err)
		}
	}
	requests := s.Requests()
	if body := string(requests[len(requests)-1].Body); strings.Count(body, "two") != 12 || strings.Contains(body, "---") {
		t.Errorf("sent %s", body)
	}
}

func TestFailures(t *testing.T) {
	s, bot := open(t, secret)
	for _, c := range []struct {
		name, text, code string
		fate             channel.Fate
		check            func(*channel.Error) bool
	}{
		{"MSG-10 not in the chat, with status 200", "not a member", "230002", channel.Refused, func(e *channel.Error) bool { return strings.Contains(e.Do, "added") }},
		{"too often", "too often", "99991400", channel.NotSent, func(e *channel.Error) bool { return e.Limited && e.RetryAfter == 7*time.Second }},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := bot.Send(t.Context(), chat, part(bot, c.text), "k")
			if e := failure(t, err); e.Code != c.code || e.Fate != c.fate || !c.check(e) {
				t.Errorf("got %+v", e)
			}
		})
	}
	t.Run("a lost answer", func(t *testing.T) {
		s.Next = channeltest.In(channeltest.LateReset)
		_, err := bot.Send(t.Context(), chat, part(bot, "x"), "k")
		if e := failure(t, err); e.Fate != channel.Unknown {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("a login that breaks sends nothing", func(t *testing.T) {
		s, bot := open(t, secret)
		s.Next = channeltest.In(channeltest.Broken)
		_, err := bot.Send(t.Context(), chat, part(bot, "x"), "k")
		if e := failure(t, err); e.Fate != channel.NotSent {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("wrong secret", func(t *testing.T) {
		_, bot := open(t, "another")
		_, err := bot.Identify(t.Context())
		if e := failure(t, err); !e.BadLogin || e.Code != "10014" {
			t.Errorf("got %+v", e)
		}
	})
}

func TestIdentifyAndTargets(t *testing.T) {
	_, bot := open(t, secret)
	if me, err := bot.Identify(t.Context()); err != nil || me.Name != "Paw" || me.ID != "ou_1" {
		t.Errorf("got %+v %v", me, err)
	}
	for id, want := range map[string]bool{chat: true, "mei@example.com": true, "ou_7d8a6e6df7621556ce0d21922b676706": true, "../x": false, "oc_": false} {
		if got := bot.CheckTarget(id) == nil; got != want {
			t.Errorf("CheckTarget(%q) passes: %v", id, got)
		}
	}
}
