package googlechat_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"pawgate/internal/client/channel"
	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/client/googlechat"
)

const address = "https://chat.googleapis.com/v1/spaces/AAAAbbbb/messages?key=AIzaKEY123&token=TOKEN-of-a-webhook"

// api is the webhook as documented: Google's error envelope, one message for
// one requestId.
func api(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Text   string
		Cards  []any `json:"cardsV2"`
		Thread struct{ Name string }
	}
	_ = json.NewDecoder(r.Body).Decode(&m)
	switch {
	case r.URL.Query().Get("token") != "TOKEN-of-a-webhook":
		refuse(w, 403, "PERMISSION_DENIED", "The caller does not have permission")
	case m.Text == "" && len(m.Cards) == 0:
		refuse(w, 400, "INVALID_ARGUMENT", "Message cannot be empty. Discarding empty create message request in spaces/AAAAbbbb.")
	case len(m.Text) > 4096:
		refuse(w, 400, "INVALID_ARGUMENT", "Message is too long")
	case strings.HasSuffix(m.Thread.Name, "/gone") && r.URL.Query().Get("messageReplyOption") == "REPLY_MESSAGE_OR_FAIL":
		refuse(w, 404, "NOT_FOUND", "Thread not found.")
	case m.Text == "too often":
		refuse(w, 429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota).")
	default:
		_, _ = io.WriteString(w, `{"name":"spaces/AAAAbbbb/messages/`+r.URL.Query().Get("requestId")+`","thread":{"name":"`+m.Thread.Name+`"}}`)
	}
}

func refuse(w http.ResponseWriter, code int, status, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": code, "status": status, "message": message}})
}

func open(t *testing.T, secret string) (*channeltest.Server, channel.Platform) {
	t.Helper()
	s := channeltest.New(t, api)
	hook, err := googlechat.New(channel.Account{BaseURL: s.URL, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s, hook
}

func failure(t *testing.T, err error) *channel.Error {
	t.Helper()
	return channeltest.Failure(t, err, "TOKEN", "AIza")
}

func TestMSG26LongText(t *testing.T) {
	s, hook := open(t, address)
	traits := hook.Traits()
	text := strings.Repeat("備份完成。", 600) // 9 000 bytes
	parts := channel.Split(channel.Parse(text), traits.Format, traits.Text, traits.Text)
	var joined strings.Builder
	for _, p := range parts {
		if _, err := hook.Send(t.Context(), "spaces/AAAAbbbb", p, "k"); err != nil {
			t.Fatal(err)
		}
		joined.WriteString(p.Text)
	}
	if len(s.Requests()) != 3 || joined.String() != text {
		t.Errorf("%d requests, the same text: %v", len(s.Requests()), joined.String() == text)
	}
}

func TestSend(t *testing.T) {
	s, hook := open(t, address)
	traits := hook.Traits()
	part := channel.Split(channel.Parse("**hi** <users/all> [here](https://example.com/a)"), traits.Format, traits.Text, traits.Text)[0]
	got, err := hook.Send(t.Context(), "spaces/AAAAbbbb/threads/T1", part, "key-1")
	if err != nil || got.MessageID != "spaces/AAAAbbbb/messages/key-1" {
		t.Fatalf("got %+v %v", got, err)
	}
	sent := s.Requests()[0]
	var m struct {
		Text   string
		Thread struct{ Name string }
	}
	if err := json.Unmarshal(sent.Body, &m); err != nil {
		t.Fatal(err)
	}
	if m.Text != "*hi* <\u200busers/all> <https://example.com/a|here>" || m.Thread.Name != "spaces/AAAAbbbb/threads/T1" || !strings.Contains(sent.Path, "messageReplyOption=REPLY_MESSAGE_OR_FAIL") {
		t.Errorf("sent %q to %s", m.Text, sent.Path)
	}
	// What goes without marks (response_mode plain) calls nobody either.
	plain := channel.Part{Text: "hi <users/all>, 1 < 2"}
	if _, err := hook.Send(t.Context(), "spaces/AAAAbbbb", plain, "key-3"); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(s.Requests()[1].Body, &m); err != nil || m.Text != "hi <\u200busers/all>, 1 < 2" {
		t.Errorf("sent %q, %v", m.Text, err)
	}
	if _, err := hook.SendPhoto(t.Context(), "spaces/AAAAbbbb", channel.Photo{URL: "https://example.com/p.png"}, "key-2"); err != nil {
		t.Error(err)
	}
}

func TestFailures(t *testing.T) {
	s, hook := open(t, address)
	_, err := hook.Send(t.Context(), "spaces/AAAAbbbb", channel.Part{Text: "too often"}, "k")
	if e := failure(t, err); !e.Limited || e.Fate != channel.NotSent || e.RetryAfter == 0 {
		t.Errorf("limited: %+v", e)
	}
	// As L97: nothing is posted elsewhere, and the account is not to blame.
	_, err = hook.Send(t.Context(), "spaces/AAAAbbbb/threads/gone", channel.Part{Text: "x"}, "k")
	if e := failure(t, err); e.Fate != channel.Refused || e.BadLogin || !strings.Contains(e.Answer(), "nothing was posted") {
		t.Errorf("a thread that is gone: %+v", e)
	}
	for mishap, want := range map[channeltest.Mishap]channel.Fate{channeltest.Away: channel.NotSent, channeltest.LateReset: channel.Unknown} {
		s.Next = channeltest.In(mishap)
		_, err := hook.Send(t.Context(), "spaces/AAAAbbbb", channel.Part{Text: "x"}, "k")
		if e := failure(t, err); e.Fate != want {
			t.Errorf("%s: %+v", mishap, e)
		}
	}
}

func TestIdentifyAndTargets(t *testing.T) {
	_, hook := open(t, address)
	if me, err := hook.Identify(t.Context()); err != nil || me.ID != "spaces/AAAAbbbb" {
		t.Errorf("got %+v %v", me, err)
	}
	_, wrong := open(t, strings.Replace(address, "TOKEN-of", "OTHER", 1))
	if _, err := wrong.Identify(t.Context()); !failure(t, err).BadLogin {
		t.Errorf("a wrong token: %v", err)
	}
	for id, want := range map[string]bool{"spaces/AAAAbbbb": true, "spaces/AAAAbbbb/threads/x": true, "spaces/OTHER": false, "spaces/AAAAbbbbX": false, "../x": false} {
		if got := hook.CheckTarget(id) == nil; got != want {
			t.Errorf("CheckTarget(%q) passes: %v", id, got)
		}
	}
	if (googlechat.Webhook{}).CheckTarget("spaces/OTHER") != nil {
		t.Error("without an account any space has the form of one")
	}
	for _, secret := range []string{"", "https://evil.example/v1/spaces/A/messages?key=a&token=b", "https://chat.googleapis.com/v1/spaces/A/messages?key=a"} {
		if _, err := googlechat.New(channel.Account{Secret: secret}); err == nil {
			t.Errorf("%q passes as an address", secret)
		}
	}
}
