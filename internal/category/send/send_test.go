package send_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/category/send"
	"pawgate/internal/client/channel/channeltest"
	"pawgate/internal/fault"
	"pawgate/internal/outbox"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

const token = "123456:test-TOKEN-of-a-bot"

var noon = time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)

// bench is an agent with a Telegram bot that may write to one chat, 42, named
// team, and a web server with pictures.
type bench struct {
	*channeltest.Server
	t     *testing.T
	db    postgres.DB
	cat   tool.Category
	agent string
	web   *httptest.Server
}

func setup(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, db: postgrestest.New(t), agent: "clerk-" + strings.ToLower(rand.Text())}
	t.Setenv("TEST_CHANNEL_TOKEN", token)
	b.Server = channeltest.New(t, telegram)
	b.web = httptest.NewServer(http.HandlerFunc(pictures))
	t.Cleanup(b.web.Close)
	u, _ := url.Parse(b.web.URL)
	b.cat = send.New(b.db, send.Settings{AllowHosts: []string{u.Host}}, func() time.Time { return noon })
	b.exec(`insert into agents (id, allowed_tools) values ($1, '{*}')`, b.agent)
	b.exec(`insert into channels (agent_id, channel, base_url, secret, set_by, set_at) values ($1, 'telegram', $2, 'env://TEST_CHANNEL_TOKEN', 'test', now())`, b.agent, b.URL)
	b.exec(`insert into channel_targets (agent_id, channel, target, name, set_by, set_at) values ($1, 'telegram', '42', 'team', 'test', now())`, b.agent)
	return b
}

// telegram takes whatever is sent, as the Bot API answers it.
func telegram(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case !strings.HasPrefix(r.URL.Path, "/bot"+token+"/"):
		w.WriteHeader(401)
		_, _ = io.WriteString(w, `{"ok":false,"error_code":401,"description":"Unauthorized"}`)
	case strings.HasSuffix(r.URL.Path, "/getMe"):
		_, _ = io.WriteString(w, `{"ok":true,"result":{"id":123456,"username":"paw_bot"}}`)
	case bytes.Contains(body, []byte("MADE_UP_STICKER")):
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"ok":false,"error_code":400,"description":"Bad Request: wrong file identifier/HTTP URL specified"}`)
	default:
		_, _ = io.WriteString(w, `{"ok":true,"result":{"message_id":77}}`)
	}
}

func pictures(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/small.png":
		_, _ = w.Write(picture(4, 3))
	case "/page":
		_, _ = io.WriteString(w, "<!doctype html><p>not a picture</p>")
	default:
		w.WriteHeader(404)
	}
}

func picture(width, height int) []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)))
	return b.Bytes()
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.db.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) who() caller.Caller { return tooltest.Who(b.agent) }

func (b *bench) last() channeltest.Request {
	b.t.Helper()
	all := b.Requests()
	if len(all) == 0 {
		b.t.Fatal("nothing was sent")
	}
	return all[len(all)-1]
}

func TestMessageMSG18MSG19MSG21(t *testing.T) {
	b := setup(t)
	sent := tooltest.OK[outbox.Sent](t, b.cat, b.who(), "send_message", map[string]any{"channel": "telegram", "chat_id": 42, "text": "**hi**", "idempotency_key": "k"})
	if sent.State != "accepted" || len(sent.MessageIDs) != 1 || sent.MessageIDs[0] != "77" || sent.ChatID != "42" { // L98: the platform's id is in the answer
		t.Errorf("got %+v", sent)
	}
	if !strings.Contains(string(b.last().Body), "<b>hi") {
		t.Errorf("sent %s", b.last().Body)
	}
	if again := tooltest.OK[outbox.Sent](t, b.cat, b.who(), "send_message", `{"channel":"telegram","chat_id":"team","text":"**hi**","idempotency_key":"k"}`); !again.Repeated {
		t.Errorf("MSG-18: %+v", again)
	}
	tooltest.Invalid(t, b.cat, b.who(), "send_message", `{"channel":"telegram","chat_id":"42","text":"\n\n"}`, "text") // MSG-21
	tooltest.Invalid(t, b.cat, b.who(), "send_message", `{"channel":"pigeon","chat_id":"42","text":"x"}`, "channel")
	tooltest.Fault(t, b.cat, b.who(), "send_message", `{"channel":"telegram","chat_id":"43","text":"x"}`, fault.Denied)
	tooltest.Fault(t, b.cat, tooltest.Who("nobody"), "send_message", `{"channel":"telegram","chat_id":"42","text":"x"}`, fault.NotConfigured)
	b.Then(channeltest.In(channeltest.LateBreak))
	f := tooltest.Fault(t, b.cat, b.who(), "send_message", `{"channel":"telegram","chat_id":"42","text":"y"}`, fault.OutcomeUnknown)
	if whole, _ := json.Marshal(f); strings.Contains(string(whole), token) { // MSG-19
		t.Errorf("the answer holds the token: %s", whole)
	}
	if n := len(b.Requests()); n != 2 {
		t.Errorf("%d requests, want 2: an unknown fate is not tried again", n)
	}
}

func TestPhotoMSG02MSG15(t *testing.T) {
	b := setup(t)
	tooltest.OK[outbox.Sent](t, b.cat, b.who(), "send_photo", map[string]any{"channel": "telegram", "chat_id": "42", "url_or_path": b.web.URL + "/small.png"})
	if !strings.HasSuffix(b.last().Path, "/sendPhoto") || !bytes.Contains(b.last().Body, picture(4, 3)) {
		t.Errorf("MSG-15: the picture was not uploaded: %s", b.last().Path)
	}
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture(9000, 2000))
	sent := tooltest.OK[outbox.Sent](t, b.cat, b.who(), "send_photo", map[string]any{"channel": "telegram", "chat_id": "42", "url_or_path": data, "caption": strings.Repeat("😀", 700)})
	if sent.Parts != 2 { // MSG-02: 512 fit a caption, the rest follows
		t.Errorf("%d parts", sent.Parts)
	}
	all := b.Requests()
	if photo, text := all[len(all)-2], all[len(all)-1]; !strings.HasSuffix(photo.Path, "/sendDocument") || strings.Count(string(photo.Body), "😀") != 512 || strings.Count(string(text.Body), "😀") != 188 {
		t.Errorf("MSG-15, MSG-02: %s with %d, then %s with %d", photo.Path, strings.Count(string(photo.Body), "😀"), text.Path, strings.Count(string(text.Body), "😀"))
	}
	for name, source := range map[string]string{"a path": "/etc/passwd", "a file": "file:///etc/passwd", "a relative path": "photo.png",
		"no picture": "data:text/plain,hello", "broken": "data:image/png;base64,%%%", "a page": b.web.URL + "/page"} {
		t.Run(name, func(t *testing.T) {
			tooltest.Invalid(t, b.cat, b.who(), "send_photo", map[string]any{"channel": "telegram", "chat_id": "42", "url_or_path": source}, "url_or_path")
		})
	}
	tooltest.Fault(t, b.cat, b.who(), "send_photo", map[string]any{"channel": "telegram", "chat_id": "42", "url_or_path": b.web.URL + "/gone"}, fault.NotFound)
	tooltest.Fault(t, b.cat, b.who(), "send_photo", map[string]any{"channel": "telegram", "chat_id": "42", "url_or_path": "http://169.254.169.254/latest/meta-data/"}, "blocked_address")
	if len(b.Requests()) != len(all) {
		t.Error("a refused picture was sent")
	}
}

// Two pictures one after the other are two messages, the same one twice is one.
func TestPhotoMSG18(t *testing.T) {
	b := setup(t)
	data := func(width int) string {
		return "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture(width, 3))
	}
	for i, c := range []struct {
		source, caption string
		repeated        bool
	}{
		{b.web.URL + "/small.png?n=1", "", false}, {b.web.URL + "/small.png?n=2", "", false}, {b.web.URL + "/small.png?n=1", "", true},
		{data(7), "", false}, {data(8), "", false}, {data(7), "", true}, {data(7), "with words", false},
	} {
		sent := tooltest.OK[outbox.Sent](t, b.cat, b.who(), "send_photo", map[string]any{"channel": "telegram", "chat_id": "42", "url_or_path": c.source, "caption": c.caption})
		if sent.Repeated != c.repeated {
			t.Errorf("picture %d: repeated is %v, want %v", i, sent.Repeated, c.repeated)
		}
	}
}

func TestStickerMSG22(t *testing.T) {
	b := setup(t)
	tooltest.OK[outbox.Sent](t, b.cat, b.who(), "send_sticker", `{"channel":"telegram","chat_id":"42","sticker_id":"CAACAgIAAxkBAAE"}`)
	if !strings.HasSuffix(b.last().Path, "/sendSticker") {
		t.Errorf("sent %s", b.last().Path)
	}
	tooltest.Invalid(t, b.cat, b.who(), "send_sticker", `{"chat_id":"42","sticker_id":"52002734"}`, "package_id")
	tooltest.Invalid(t, b.cat, b.who(), "send_sticker", `{"channel":"discord","chat_id":"42","sticker_id":"52002734"}`, "channel")
	before := len(b.Requests())
	f := tooltest.Fault(t, b.cat, b.who(), "send_sticker", `{"channel":"telegram","chat_id":"42","sticker_id":"MADE_UP_STICKER"}`, outbox.Refused)
	if !strings.Contains(f.Message, "file_id") || len(b.Requests()) != before+1 { // MSG-22
		t.Errorf("%s, %d requests", f.Message, len(b.Requests())-before)
	}
	tooltest.Invalid(t, b.cat, b.who(), "send_sticker", `{"channel":"telegram","chat_id":"42","sticker_id":"https://example.com/s.webp"}`, "sticker_id")
}

type setting struct {
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	From    string          `json:"from"`
	Changed bool            `json:"changed"`
}

func TestConfig(t *testing.T) {
	b := setup(t)
	operator := b.who()
	operator.Scopes = []string{caller.ScopeAll, caller.ScopeOperator}
	call := func(scope, key, value string) string {
		return fmt.Sprintf(`{"channel":"telegram","scope_id":%q,"key":%q,"value":%s}`, scope, key, value)
	}
	for _, c := range []struct {
		who              caller.Caller
		scope, key, sent string
		want, from       string
	}{
		{b.who(), "global", "mention_only", `true`, `true`, "global"},
		{b.who(), "42", "mention_only", `"false"`, `false`, "42"},
		{b.who(), "42", "thread_archive_minutes", `"60"`, `60`, "42"},
		{b.who(), "global", "response_mode", `"plain"`, `"plain"`, "global"},
		{b.who(), "global", "response_mode", `""`, `"auto"`, "default"},
		{operator, "global", "allowed_users", `["u1"]`, `["u1"]`, "global"},
		{operator, "global", "allowed_users", `"[]"`, `[]`, "global"},
		{operator, "global", "agent_override", fmt.Sprintf("%q", b.agent), fmt.Sprintf("%q", b.agent), "global"},
	} {
		got := tooltest.OK[setting](t, b.cat, c.who, "channel_config", call(c.scope, c.key, c.sent))
		if string(got.Value) != c.want || got.From != c.from || !got.Changed {
			t.Errorf("%s %s: got %s from %s", c.key, c.sent, got.Value, got.From)
		}
	}
	if got := tooltest.OK[setting](t, b.cat, b.who(), "channel_config", `{"channel":"telegram","scope_id":"99","key":"mention_only"}`); string(got.Value) != "true" || got.From != "global" || got.Changed {
		t.Errorf("a read says where the value is from: %+v", got)
	}
	for name, args := range map[string]string{
		"value": call("global", "mention_only", `"yes"`), "value ": call("global", "thread_archive_minutes", `61`), "value  ": call("global", "response_mode", `"loud"`),
		"key": call("global", "admin_users", `"me"`), "scope_id": call("", "mention_only", `true`), "channel": `{"channel":"x","scope_id":"global","key":"mention_only"}`,
	} {
		tooltest.Invalid(t, b.cat, b.who(), "channel_config", args, strings.TrimSpace(name))
	}
	tooltest.Invalid(t, b.cat, operator, "channel_config", call("42", "require_pairing", `true`), "scope_id")
	tooltest.Invalid(t, b.cat, operator, "channel_config", call("global", "allowed_users", `["a",""]`), "value")
	tooltest.Fault(t, b.cat, b.who(), "channel_config", call("global", "require_pairing", `false`), fault.Denied)
	tooltest.Fault(t, b.cat, operator, "channel_config", call("global", "agent_override", `"nobody-at-all"`), fault.NotFound)

	list := tooltest.OK[struct{ Settings []setting }](t, b.cat, b.who(), "channel_config_list", `{"channel":"telegram","scope_id":"42"}`)
	from := map[string]string{}
	for _, s := range list.Settings {
		from[s.Key] = s.From
	}
	if from["mention_only"] != "42" || from["allowed_users"] != "global" || from["auto_thread"] != "default" {
		t.Errorf("got %v", from)
	}
	tooltest.Invalid(t, b.cat, b.who(), "channel_config_list", `{"channel":"telegram","scope_id":"a b"}`, "scope_id")
	other := tooltest.OK[struct{ Settings []setting }](t, b.cat, tooltest.Who("another"), "channel_config_list", `{"channel":"telegram","scope_id":"42"}`)
	for _, s := range other.Settings {
		if s.From != "default" {
			t.Errorf("another agent's setting shows: %+v", s)
		}
	}
}

type status struct {
	Channels []struct {
		Channel     string          `json:"channel"`
		Works       bool            `json:"works"`
		AccountName string          `json:"account_name"`
		Problem     string          `json:"problem"`
		WorksSince  *time.Time      `json:"works_since"`
		LastError   string          `json:"last_error"`
		Chats       []outbox.Target `json:"chats"`
	} `json:"channels"`
}

func TestStatus(t *testing.T) {
	b := setup(t)
	got := tooltest.OK[status](t, b.cat, b.who(), "channel_status", `{}`)
	if len(got.Channels) != 1 || !got.Channels[0].Works || got.Channels[0].AccountName != "@paw_bot" || got.Channels[0].WorksSince == nil ||
		!got.Channels[0].WorksSince.Equal(noon) || len(got.Channels[0].Chats) != 1 || !strings.HasSuffix(b.last().Path, "/getMe") {
		t.Errorf("got %+v", got)
	}
	t.Setenv("TEST_CHANNEL_TOKEN", "999:wrong-token")
	got = tooltest.OK[status](t, b.cat, b.who(), "channel_status", `{"channel":"telegram"}`)
	if c := got.Channels[0]; c.Works || !strings.Contains(c.Problem, "Unauthorized") || c.WorksSince != nil || c.LastError == "" || strings.Contains(c.Problem, "wrong-token") {
		t.Errorf("got %+v", c)
	}
	t.Setenv("TEST_CHANNEL_TOKEN", "no token at all")
	if c := tooltest.OK[status](t, b.cat, b.who(), "channel_status", `{}`).Channels[0]; c.Works || !strings.Contains(c.Problem, "bot token") {
		t.Errorf("got %+v", c)
	}
	if none := tooltest.OK[status](t, b.cat, tooltest.Who("nobody"), "channel_status", `{}`); none.Channels == nil || len(none.Channels) != 0 {
		t.Errorf("got %+v", none)
	}
	tooltest.Fault(t, b.cat, tooltest.Who("nobody"), "channel_status", `{"channel":"telegram"}`, fault.NotConfigured)
	tooltest.Invalid(t, b.cat, b.who(), "channel_status", `{"channel":"pigeon"}`, "channel")
	// A call asks every platform, with the account that messages need.
	for _, d := range b.cat.Tools {
		if d.Name == "channel_status" && d.Class != tool.ClassExpensive {
			t.Errorf("channel_status draws on the limit of class %s", d.Class)
		}
	}
}
