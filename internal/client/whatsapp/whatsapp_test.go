package whatsapp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/client/whatsapp"
)

const token = "EAAG-test-token"

// api is the Cloud API as documented. A text that is a number is answered with
// that error code.
func api(w http.ResponseWriter, r *http.Request) {
	refuse := func(status, code int, details string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":"(#%d) x","type":"OAuthException","code":%d,"error_data":{"messaging_product":"whatsapp","details":%q},"fbtrace_id":"A"}}`, code, code, details)
	}
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		refuse(401, 190, "Invalid OAuth access token")
	case r.URL.Path == "/777777":
		_, _ = io.WriteString(w, `{"id":"777777","display_phone_number":"+886 2 1234","verified_name":"Paw","quality_rating":"GREEN"}`)
	case r.URL.Path == "/777777/media" && r.FormValue("type") == "image/png":
		_, _ = io.WriteString(w, `{"id":"m1"}`)
	case r.URL.Path != "/777777/messages":
		refuse(404, 33, "unknown")
	default:
		var m struct {
			Product string `json:"messaging_product"`
			To      string
			Text    struct{ Body string }
			Image   struct{ ID, Caption string }
		}
		code := 0
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.Product != "whatsapp" || strings.HasPrefix(m.To, "+") || channel.UTF16.Count(m.Text.Body) > 4096 {
			code = 100
		}
		if _, err := fmt.Sscanf(m.Text.Body, "%d", &code); err == nil || code != 0 {
			refuse(400, code, "details of it")
			return
		}
		_, _ = io.WriteString(w, `{"messaging_product":"whatsapp","contacts":[{"input":"1","wa_id":"1"}],"messages":[{"id":"wamid.X1","message_status":"accepted"}]}`)
	}
}

func open(t *testing.T, secret string) (*channeltest.Server, channel.Platform) {
	t.Helper()
	s := channeltest.New(t, api)
	p, err := whatsapp.New(channel.Account{BaseURL: s.URL, ID: "777777", Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

func failure(t *testing.T, err error) *channel.Error {
	t.Helper()
	return channeltest.Failure(t, err, token)
}

func TestSend(t *testing.T) {
	s, phone := open(t, token)
	traits := phone.Traits()
	text := "**b** [site](https://e.example) `x`"
	part := channel.Split(channel.Parse(text), traits.Format, traits.Text, traits.Text)[0]
	if r, err := phone.Send(t.Context(), "+886912345678", part, ""); err != nil || r.MessageID != "wamid.X1" {
		t.Fatalf("got %+v %v", r, err)
	}
	if body := string(s.Requests()[0].Body); !strings.Contains(body, "*b* site (https://e.example) `x`") || !strings.Contains(body, `"to":"886912345678"`) {
		t.Errorf("sent %s", body)
	}
	photo := channel.Photo{Data: []byte("picture"), MediaType: "image/png", Caption: channel.Part{Text: "look"}}
	if r, err := phone.SendPhoto(t.Context(), "886912345678", photo, ""); err != nil || r.MessageID != "wamid.X1" {
		t.Errorf("photo: %+v %v", r, err)
	}
	if body := string(s.Requests()[2].Body); !strings.Contains(body, `"caption":"look"`) || !strings.Contains(body, `"id":"m1"`) {
		t.Errorf("sent %s", body)
	}
	photo.MediaType = "image/gif"
	_, err := phone.SendPhoto(t.Context(), "886912345678", photo, "")
	if failure(t, err).Fate == channel.Unknown {
		t.Errorf("an upload that failed sent nothing: %v", err)
	}
	if me, err := phone.Identify(t.Context()); err != nil || me.Name != "Paw +886 2 1234" {
		t.Errorf("got %+v %v", me, err)
	}
}

func TestLongText(t *testing.T) {
	s, phone := open(t, token)
	limit := phone.Traits().Text
	for i, p := range channel.Split(channel.Parse(strings.Repeat("😀", 2049)), phone.Traits().Format, limit, limit) {
		if _, err := phone.Send(t.Context(), "886912345678", p, ""); err != nil {
			t.Errorf("part %d: %v", i, err)
		}
	}
	if len(s.Requests()) != 2 {
		t.Errorf("%d messages, want 2", len(s.Requests()))
	}
	_, err := phone.Send(t.Context(), "886912345678", channel.Part{Text: strings.Repeat("a", 4097)}, "")
	if e := failure(t, err); e.Fate != channel.Refused || e.Code != "100" {
		t.Errorf("got %+v", e)
	}
}

func TestRefusalsMSG14(t *testing.T) {
	_, phone := open(t, token)
	for code, want := range map[string]struct {
		fate channel.Fate
		wait time.Duration
		do   string
	}{
		"131047": {channel.Refused, 0, "template"}, // MSG-14
		"131026": {channel.Refused, 0, "chat_id"},
		"130429": {channel.NotSent, 0, "wait"},
		"131056": {channel.NotSent, 6 * time.Second, "wait"},
		"131016": {channel.Unknown, 0, ""},
		"100":    {channel.Refused, 0, ""},
	} {
		t.Run(code, func(t *testing.T) {
			_, err := phone.Send(t.Context(), "886912345678", channel.Part{Text: code}, "")
			if e := failure(t, err); e.Fate != want.fate || e.Code != code || e.RetryAfter != want.wait || !strings.Contains(e.Do, want.do) {
				t.Errorf("got %+v", e)
			}
		})
	}
	_, wrong := open(t, "other")
	if _, err := wrong.Identify(t.Context()); !failure(t, err).BadLogin {
		t.Errorf("got %v", err)
	}
	for id, want := range map[string]bool{"+886912345678": true, "886912345678": true, "0912": false, "../x": false} {
		if got := phone.CheckTarget(id) == nil; got != want {
			t.Errorf("CheckTarget(%q) passes: %v", id, got)
		}
	}
	if _, err := whatsapp.New(channel.Account{ID: "../me", Secret: token}); err == nil {
		t.Error("a phone number id that is a path passes")
	}
}
