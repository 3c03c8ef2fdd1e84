package slack_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/client/slack"
)

const (
	token = "xoxb-test-token"
	room  = "C0123456789"
)

// api is the Web API as documented: failures are "ok": false with status 200.
func api(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+token {
		_, _ = io.WriteString(w, `{"ok":false,"error":"invalid_auth"}`)
		return
	}
	var m struct{ Channel, Text string }
	_ = json.NewDecoder(r.Body).Decode(&m)
	switch {
	case r.URL.Path == "/auth.test":
		_, _ = io.WriteString(w, `{"ok":true,"team":"Team","user":"paw","team_id":"T1","user_id":["changed"],"bot_id":"B1"}`)
	case r.URL.Path == "/conversations.replies" && r.URL.Query().Get("ts") != "1712345678.000100":
		_, _ = io.WriteString(w, `{"ok":false,"error":"thread_not_found"}`)
	case r.URL.Path == "/conversations.replies":
		_, _ = io.WriteString(w, `{"ok":true,"messages":[{}]}`)
	case m.Channel == "C9999999999":
		_, _ = io.WriteString(w, `{"ok":false,"error":"channel_not_found"}`)
	case channel.UTF16.Count(m.Text) > 4000:
		_, _ = io.WriteString(w, `{"ok":false,"error":"msg_too_long"}`)
	case strings.Contains(m.Text, "changed shape"):
		_, _ = io.WriteString(w, `{"ok":true,"channel":{"id":1},"ts":"1712345678.000200","message":"text now","warning":42}`)
	case strings.Contains(m.Text, "fatal"):
		_, _ = io.WriteString(w, `{"ok":false,"error":"fatal_error"}`)
	default:
		_, _ = io.WriteString(w, `{"ok":true,"channel":"C0123456789","ts":"1712345678.000200","message":{}}`)
	}
}

func open(t *testing.T) (*channeltest.Server, channel.Platform) {
	t.Helper()
	s := channeltest.New(t, api)
	p, err := slack.New(channel.Account{BaseURL: s.URL, Secret: token})
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func failure(t *testing.T, err error) *channel.Error {
	t.Helper()
	return channeltest.Failure(t, err, token)
}

func render(p channel.Platform, text string) []channel.Part {
	return channel.Split(channel.Parse(text), p.Traits().Format, p.Traits().Text, p.Traits().Text)
}

func TestSend(t *testing.T) {
	s, app := open(t)
	for name, c := range map[string]struct{ to, text, want string }{
		"styles":                     {room, "**b** *i* ~~s~~ [x|y](https://e.example/?a=1&b=2)", "*b* _i_ ~s~ <https://e.example/?a=1&amp;b=2|x¦y>"},
		"MSG-25 a back-tick in code": {room, "``rm `x` <https://evil.example|Approve here>``", "`rm ˋxˋ &lt;https://evil.example|Approve here&gt;`"},
		"MSG-25 a link in text":      {room, `\<https://evil.example|Approve here\> <!channel>`, "&lt;https://evil.example|Approve here&gt; &lt;!channel&gt;"},
		"L98 L101 changed types":     {room, "changed shape", "changed shape"},
		"a thread":                   {room + "/1712345678.000100", "in thread", "in thread"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := app.Send(t.Context(), c.to, render(app, c.text)[0], "")
			if err != nil || r.MessageID != "1712345678.000200" {
				t.Fatalf("got %+v %v", r, err)
			}
			all := s.Requests()
			var m map[string]any
			_ = json.Unmarshal(all[len(all)-1].Body, &m)
			thread, _ := m["thread_ts"].(string)
			if m["text"] != c.want || m["channel"] != room || (thread != "") != strings.Contains(c.to, "/") {
				t.Errorf("sent %v, want %q", m, c.want)
			}
		})
	}
	t.Run("MSG-25 the plain form", func(t *testing.T) {
		if _, err := app.Send(t.Context(), room, channel.Part{Text: "<!here> <https://evil.example|x>"}, ""); err != nil {
			t.Fatal(err)
		}
		all := s.Requests()
		if strings.Contains(string(all[len(all)-1].Body), "<") {
			t.Errorf("sent %s", all[len(all)-1].Body)
		}
	})
}

func TestLongText(t *testing.T) {
	_, app := open(t)
	for name, n := range map[string]int{"MSG-12 a section of 3001": 3001, "MSG-12 a message of 5000": 5000} {
		t.Run(name, func(t *testing.T) {
			parts := render(app, strings.Repeat("a", n))
			for _, p := range parts {
				if len(p.Text) > 3000 {
					t.Errorf("a part of %d", len(p.Text))
				}
				if _, err := app.Send(t.Context(), room, p, ""); err != nil {
					t.Error(err)
				}
			}
			if len(parts) != 2 {
				t.Errorf("%d parts", len(parts))
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	s, app := open(t)
	for name, c := range map[string]struct {
		to, text string
		fate     channel.Fate
		code     string
	}{
		"no such conversation": {"C9999999999", "x", channel.Refused, "channel_not_found"},
		"L97 no such thread":   {room + "/1700000000.000001", "x", channel.Refused, "thread_not_found"},
		"an error of Slack's":  {room, "fatal", channel.Unknown, "fatal_error"},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(s.Requests())
			_, err := app.Send(t.Context(), c.to, channel.Part{Text: c.text}, "")
			if e := failure(t, err); e.Fate != c.fate || e.Code != c.code {
				t.Errorf("got %+v", e)
			}
			for _, r := range s.Requests()[before:] {
				if strings.HasPrefix(name, "L97") && r.Path == "/chat.postMessage" {
					t.Error("something was posted")
				}
			}
		})
	}
	s.Then(channeltest.In(channeltest.Limited))
	s.Limit = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(429)
		_, _ = io.WriteString(w, `{"ok":false,"error":"ratelimited"}`)
	}
	_, err := app.Send(t.Context(), room, channel.Part{Text: "x"}, "")
	if e := failure(t, err); e.Fate != channel.NotSent || !e.Limited || e.RetryAfter != 30*time.Second {
		t.Errorf("got %+v", e)
	}
	if me, err := app.Identify(t.Context()); err != nil || me.Name != "paw" || me.Details["team"] != "Team" { // L101: user_id is of another type
		t.Errorf("got %+v %v", me, err)
	}
	if r, err := app.SendPhoto(t.Context(), room, channel.Photo{URL: "https://example.com/a.png"}, ""); err != nil || r.MessageID == "" {
		t.Errorf("photo: %+v %v", r, err)
	}
	wrong, err := slack.New(channel.Account{BaseURL: s.URL, Secret: "xoxb-other"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Identify(t.Context()); !failure(t, err).BadLogin {
		t.Errorf("got %v", err)
	}
	for id, want := range map[string]bool{room: true, room + "/1712345678.000100": true, "general": false, room + "&x=y": false, room + "/1": false} {
		if got := app.CheckTarget(id) == nil; got != want {
			t.Errorf("CheckTarget(%q) passes: %v", id, got)
		}
	}
}
