package teams_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"pawgate/internal/client/channel"
	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/client/teams"
)

const address = "https://prod-01.westeurope.logic.azure.com/workflows/0a1b2c/triggers/manual/paths/invoke?api-version=2016-06-01&sig=SIGNATURE-of-it"

// most is what the service takes. It measures what it gets twice as large, as
// it has been seen to with characters outside of ASCII.
const most = 28 << 10

type card struct {
	Attachments []struct {
		Content struct {
			Body []struct{ Type, Text, URL string }
		}
	}
}

// api is a webhook of Workflows as documented.
func api(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m card
	switch {
	case r.URL.Query().Get("sig") != "SIGNATURE-of-it":
		w.WriteHeader(401)
		_, _ = io.WriteString(w, `{"error":{"code":"DirectApiAuthorizationRequired","message":"The request must be authenticated only by Shared Access scheme."}}`)
	case len(body) > most:
		w.WriteHeader(413)
	case json.Unmarshal(body, &m) != nil || len(m.Attachments) != 1 || len(m.Attachments[0].Content.Body) == 0:
		w.WriteHeader(400)
	case strings.Contains(m.Attachments[0].Content.Body[0].Text, "too often"):
		_, _ = io.WriteString(w, "Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429 with ContextId tcid=0")
	default:
		w.WriteHeader(202)
	}
}

func open(t *testing.T, secret string) (*channeltest.Server, channel.Platform) {
	t.Helper()
	s := channeltest.New(t, api)
	hook, err := teams.New(channel.Account{BaseURL: s.URL, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s, hook
}

func failure(t *testing.T, err error) *channel.Error {
	t.Helper()
	return channeltest.Failure(t, err, "SIGNATURE", "0a1b2c")
}

func split(hook channel.Platform, md string) []channel.Part {
	traits := hook.Traits()
	return channel.Split(channel.Parse(md), traits.Format, traits.Text, traits.Text)
}

func TestMSG11SizeWithMargin(t *testing.T) {
	for name, text := range map[string]string{
		"lines":    strings.Repeat("a\n", 14_000),
		"quotes":   strings.Repeat(`"`, 27_900),
		"brackets": strings.Repeat("<", 27_900),
		"Chinese":  strings.Repeat("備", 9_300),
	} {
		s, hook := open(t, address)
		for _, p := range split(hook, text) {
			if _, err := hook.Send(t.Context(), teams.Channel, p, ""); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, r := range s.Requests() {
			if len(r.Body) > most-most/8 {
				t.Errorf("%s: a message of %d bytes", name, len(r.Body))
			}
		}
	}
}

func TestMSG25Literal(t *testing.T) {
	s, hook := open(t, address)
	text := "run `rm` then <https://evil.example|Approve here> and [x](https://evil.example)"
	if _, err := hook.Send(t.Context(), teams.Channel, channel.Part{Text: text, Plain: text}, ""); err != nil {
		t.Fatal(err)
	}
	var m card
	if err := json.Unmarshal(s.Requests()[0].Body, &m); err != nil {
		t.Fatal(err)
	}
	if got := m.Attachments[0].Content.Body[0].Text; got != "run \\`rm\\` then \\<https://evil.example|Approve here> and \\[x\\](https://evil.example)" {
		t.Errorf("sent %q", got)
	}
}

func TestFailures(t *testing.T) {
	s, hook := open(t, address)
	_, err := hook.Send(t.Context(), teams.Channel, channel.Part{Text: "too often", Markup: true}, "")
	if e := failure(t, err); !e.Limited || e.Fate != channel.NotSent || e.Code != "429" {
		t.Errorf("a 429 inside of a 200: %+v", e)
	}
	for mishap, want := range map[channeltest.Mishap]channel.Fate{channeltest.Away: channel.NotSent, channeltest.LateReset: channel.Unknown, channeltest.Broken: channel.Unknown} {
		s.Next = channeltest.In(mishap)
		_, err := hook.Send(t.Context(), teams.Channel, channel.Part{Text: "x"}, "")
		if e := failure(t, err); e.Fate != want {
			t.Errorf("%s: %+v", mishap, e)
		}
	}
	_, wrong := open(t, strings.Replace(address, "SIGNATURE-of-it", "other", 1))
	_, err = wrong.Send(t.Context(), teams.Channel, channel.Part{Text: "x"}, "")
	if e := failure(t, err); !e.BadLogin || e.Fate != channel.Refused {
		t.Errorf("a wrong signature: %+v", e)
	}
}

func TestPhotoTargetsAndAddresses(t *testing.T) {
	s, hook := open(t, address)
	if _, err := hook.SendPhoto(t.Context(), teams.Channel, channel.Photo{URL: "https://example.com/p.png", Caption: channel.Part{Text: "a pier", Plain: "a pier"}}, ""); err != nil {
		t.Fatal(err)
	}
	if body := string(s.Requests()[0].Body); !strings.Contains(body, `"https://example.com/p.png"`) || !strings.Contains(body, "a pier") {
		t.Errorf("sent %s", body)
	}
	if _, err := hook.Identify(t.Context()); failure(t, err).Code != "not_asked" || len(s.Requests()) != 1 {
		t.Error("a webhook was asked")
	}
	if hook.CheckTarget(teams.Channel) != nil || hook.CheckTarget("19:abc@thread.tacv2") == nil {
		t.Error("targets")
	}
	for _, secret := range []string{"", "http://x.webhook.office.com/a", "https://evil.example/webhook.office.com", "https://webhook.office.com.evil.example/x"} {
		if _, err := teams.New(channel.Account{Secret: secret}); err == nil {
			t.Errorf("%q passes as an address", secret)
		}
	}
}
