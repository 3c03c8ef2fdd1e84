package wecom_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/client/wecom"
)

const key = "693a91f6-7abc-4bc4-97a0-0ec2sifa5aaa"

// api is the webhook as documented: HTTP 200, with errcode.
func api(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Type     string `json:"msgtype"`
		Markdown struct{ Content string }
		Image    struct{ Base64, MD5 string }
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	switch {
	case r.URL.Path != "/cgi-bin/webhook/send" || r.URL.Query().Get("key") != key:
		_, _ = io.WriteString(w, `{"errcode":93000,"errmsg":"invalid webhook url, hint: [1], from ip: 192.0.2.7"}`)
	case m.Type == "markdown" && len(m.Markdown.Content) > 4096:
		_, _ = io.WriteString(w, `{"errcode":40058,"errmsg":"markdown.content exceed max length 4096. invalid Request Parameter"}`)
	case m.Markdown.Content == "too often":
		_, _ = io.WriteString(w, `{"errcode":45009,"errmsg":"api freq out of limit"}`)
	case m.Type == "markdown" || m.Type == "image" && m.Image.Base64 != "" && len(m.Image.MD5) == 32:
		_, _ = io.WriteString(w, `{"errcode":0,"errmsg":"ok"}`)
	default:
		_, _ = io.WriteString(w, `{"errcode":40008,"errmsg":"invalid message type"}`)
	}
}

func open(t *testing.T, secret string) (*channeltest.Server, channel.Platform) {
	t.Helper()
	s := channeltest.New(t, api)
	robot, err := wecom.New(channel.Account{BaseURL: s.URL, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s, robot
}

func failure(t *testing.T, err error) *channel.Error {
	t.Helper()
	return channeltest.Failure(t, err, key, "192.0.2.7")
}

func TestMSG09LongMarkdown(t *testing.T) {
	s, robot := open(t, key)
	traits := robot.Traits()
	text := strings.Repeat("備份完成。", 280) // 1 400 characters, 4 200 bytes
	parts := channel.Split(channel.Parse(text), traits.Format, traits.Text, traits.Text)
	var joined strings.Builder
	for _, p := range parts {
		if _, err := robot.Send(t.Context(), wecom.Group, p, ""); err != nil {
			t.Fatal(err)
		}
		joined.WriteString(p.Text)
	}
	if len(parts) != 2 || joined.String() != text || len(s.Requests()) != 2 {
		t.Errorf("%d parts, %d requests, the same text: %v", len(parts), len(s.Requests()), joined.String() == text)
	}
	// What goes without marks (response_mode plain) calls nobody either.
	if _, err := robot.Send(t.Context(), wecom.Group, channel.Part{Text: "hi <@everyone>"}, ""); err != nil {
		t.Fatal(err)
	}
	if body := string(s.Requests()[2].Body); strings.Contains(body, "<@") || !strings.Contains(body, "@everyone") {
		t.Errorf("sent %s", body)
	}
	// Sent whole all the same, it is a failure with the platform's code.
	_, err := robot.Send(t.Context(), wecom.Group, channel.Part{Text: text}, "")
	if e := failure(t, err); e.Code != "40058" || e.Fate != channel.Refused {
		t.Errorf("got %+v", e)
	}
}

func TestFailures(t *testing.T) {
	_, robot := open(t, key)
	_, err := robot.Send(t.Context(), wecom.Group, channel.Part{Text: "too often"}, "")
	if e := failure(t, err); !e.Limited || e.RetryAfter != time.Minute || e.Fate != channel.NotSent {
		t.Errorf("limited: %+v", e)
	}
	for mishap, want := range map[channeltest.Mishap]channel.Fate{channeltest.Away: channel.NotSent, channeltest.Broken: channel.Unknown, channeltest.LateReset: channel.Unknown} {
		s, robot := open(t, key)
		s.Next = channeltest.In(mishap)
		_, err := robot.Send(t.Context(), wecom.Group, channel.Part{Text: "x"}, "")
		if e := failure(t, err); e.Fate != want {
			t.Errorf("%s: %+v", mishap, e)
		}
	}
}

func TestPhotoIdentifyAndTargets(t *testing.T) {
	_, robot := open(t, key)
	if _, err := robot.SendPhoto(t.Context(), wecom.Group, channel.Photo{Data: []byte("picture"), MediaType: "image/png"}, ""); err != nil {
		t.Error(err)
	}
	if me, err := robot.Identify(t.Context()); err != nil || me.Details["checked"] == "" {
		t.Errorf("identify: %+v %v", me, err)
	}
	_, other := open(t, "another-key-0123456789")
	if _, err := other.Identify(t.Context()); !failure(t, err).BadLogin {
		t.Errorf("a wrong key: %v", err)
	}
	if robot.CheckTarget("group") != nil || robot.CheckTarget("../x") == nil {
		t.Error("targets")
	}
	if got := robot.Traits().Format.Render(channel.Parse("hi <@all> **now**")); got != "hi <\u200b@all> **now**" {
		t.Errorf("rendered %q", got)
	}
}
