package dingtalk_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/client/dingtalk"
)

const token, secret = "0123456789abcdef0123456789abcdef", "SECsigning"

// api is the webhook as documented: HTTP 200, with errcode; the signature is
// over time and secret.
func api(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(q.Get("timestamp") + "\n" + secret))
	var m struct {
		Type     string `json:"msgtype"`
		Markdown struct{ Title, Text string }
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &m)
	switch {
	case len(body) > 20_000:
		_, _ = io.WriteString(w, `{"errcode":-1,"errmsg":"longer than 20000 bytes"}`)
	case q.Get("access_token") != token:
		_, _ = io.WriteString(w, `{"errcode":300005,"errmsg":"token is not exist"}`)
	case q.Get("sign") != base64.StdEncoding.EncodeToString(mac.Sum(nil)):
		_, _ = io.WriteString(w, `{"errcode":310000,"errmsg":"sign not match"}`)
	case strings.Contains(m.Markdown.Text, "flood"):
		_, _ = io.WriteString(w, `{"errcode":130101,"errmsg":"send too fast, exceed 20 times per minute"}`)
	case m.Type == "markdown" && m.Markdown.Title != "", m.Type == "text":
		_, _ = io.WriteString(w, `{"errcode":0,"errmsg":"ok"}`)
	default:
		_, _ = io.WriteString(w, `{"errcode":40035,"errmsg":"missing parameter msgtype"}`)
	}
}

func open(t *testing.T, a channel.Account) (*channeltest.Server, channel.Platform) {
	t.Helper()
	s := channeltest.New(t, api)
	a.BaseURL = s.URL
	robot, err := dingtalk.New(a)
	if err != nil {
		t.Fatal(err)
	}
	return s, robot
}

func failure(t *testing.T, err error) *channel.Error {
	t.Helper()
	return channeltest.Failure(t, err, token, secret)
}

func TestSend(t *testing.T) {
	s, robot := open(t, channel.Account{Secret: token, Second: secret})
	traits := robot.Traits()
	part := channel.Split(channel.Parse("**Done**\nsee [log](https://example.com/l)"), traits.Format, traits.Text, traits.Text)[0]
	if _, err := robot.Send(t.Context(), dingtalk.Group, part, ""); err != nil {
		t.Fatal(err)
	}
	if body := string(s.Requests()[0].Body); !strings.Contains(body, `"title":"Done"`) || !strings.Contains(body, `**Done**\n\nsee [log](https://example.com/l)`) {
		t.Errorf("sent %s", body)
	}
	photo := channel.Photo{URL: "https://example.com/p.png", Caption: channel.Part{Text: "a pier", Plain: "a pier"}}
	if _, err := robot.SendPhoto(t.Context(), dingtalk.Group, photo, ""); err != nil {
		t.Error(err)
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
			_, robot := open(t, channel.Account{Secret: token, Second: secret})
			traits := robot.Traits()
			for i, p := range channel.Split(channel.Parse(text), traits.Format, traits.Text, traits.Text) {
				if _, err := robot.Send(t.Context(), dingtalk.Group, p, ""); err != nil {
					t.Errorf("part %d: %v", i, err)
				}
				if _, err := robot.Send(t.Context(), dingtalk.Group, channel.Part{Text: p.Plain, Plain: p.Plain}, ""); err != nil {
					t.Errorf("part %d, plain: %v", i, err)
				}
			}
		})
	}
}

func TestMSG16TooMany(t *testing.T) {
	s, robot := open(t, channel.Account{Secret: token, Second: secret})
	_, err := robot.Send(t.Context(), dingtalk.Group, channel.Part{Text: "flood", Plain: "flood", Markup: true}, "")
	if e := failure(t, err); !e.Limited || e.Fate != channel.NotSent || e.RetryAfter != 10*time.Minute || e.Code != "130101" {
		t.Errorf("got %+v", e)
	}
	if len(s.Requests()) != 1 {
		t.Errorf("%d requests", len(s.Requests()))
	}
}

func TestMSG10FailureWithStatus200(t *testing.T) {
	for name, a := range map[string]channel.Account{"300005": {Secret: strings.Repeat("f", 32), Second: secret}, "310000": {Secret: token, Second: "wrong"}} {
		_, robot := open(t, a)
		_, err := robot.Send(t.Context(), dingtalk.Group, channel.Part{Text: "x", Plain: "x", Markup: true}, "")
		if e := failure(t, err); e.Code != name || !e.BadLogin || e.Fate != channel.Refused {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestIdentifyAndTargets(t *testing.T) {
	_, robot := open(t, channel.Account{Secret: token, Second: secret})
	if me, err := robot.Identify(t.Context()); err != nil || me.Details["checked"] == "" {
		t.Errorf("identify: %+v %v", me, err)
	}
	_, wrong := open(t, channel.Account{Secret: strings.Repeat("f", 32)})
	if _, err := wrong.Identify(t.Context()); !failure(t, err).BadLogin {
		t.Errorf("a wrong token: %v", err)
	}
	if robot.CheckTarget(dingtalk.Group) != nil || robot.CheckTarget("cid123") == nil {
		t.Error("targets")
	}
	for mishap, want := range map[channeltest.Mishap]channel.Fate{channeltest.Away: channel.NotSent, channeltest.LateBreak: channel.Unknown} {
		s, robot := open(t, channel.Account{Secret: token, Second: secret})
		s.Next = channeltest.In(mishap)
		_, err := robot.Send(t.Context(), dingtalk.Group, channel.Part{Text: "x", Plain: "x", Markup: true}, "")
		if e := failure(t, err); e.Fate != want {
			t.Errorf("%s: %+v", mishap, e)
		}
	}
}
