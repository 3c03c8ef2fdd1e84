// Package feishu sends through the open platform of Feishu and Lark
// (open.feishu.cn/document, im/v1/messages, im/v1/images, bot/v3/info,
// auth/v3/tenant_access_token/internal).
//
// A message carries a uuid, by which the platform recognises a repetition for an
// hour. Answers carry a code, also with HTTP 200; anything but 0 is a failure.
// Texts go as posts, whose markdown has no tables; package channel writes those
// as code, so that the limit of tables in a card is never met. The platform's
// own Go library renews tokens and retries by itself, which is why it is not
// used.
package feishu

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/safehttp"
)

// BaseURL is the API of Feishu; Lark's is https://open.larksuite.com.
const BaseURL = "https://open.feishu.cn"

// App is one app with a bot. It implements channel.Platform.
type App struct {
	api     *channel.API
	id      string
	secret  string
	options []safehttp.Option

	mu      *sync.Mutex
	session *session
}

// session is the token of the moment.
type session struct {
	token string
	until time.Time
}

var appID = regexp.MustCompile(`^cli_[a-z0-9]+$`)

// New is the app of an account whose ID is the app id and whose secret is the
// app secret. It does no I/O.
func New(a channel.Account, options ...safehttp.Option) (channel.Platform, error) {
	switch {
	case !appID.MatchString(a.ID):
		return nil, errors.New("the account is no app id; one looks like cli_a1b2c3d4e5f6")
	case a.Secret == "":
		return nil, errors.New("the secret is empty; it is the app secret")
	}
	api, err := channel.NewAPI("feishu", cmp.Or(a.BaseURL, BaseURL), nil, []string{a.Secret}, options...)
	return App{api: api, id: a.ID, secret: a.Secret, options: options, mu: new(sync.Mutex), session: new(session)}, err
}

// Traits: the request for a post has at most 30 KB; a quotation mark in it takes
// four bytes, for the content is JSON in JSON. An image has at most 10 MB.
func (App) Traits() channel.Traits {
	return channel.Traits{
		Name:       "feishu",
		Text:       channel.Limit{Max: 7000, Unit: channel.Bytes},
		Format:     format,
		KeyLife:    55 * time.Minute, // of an hour
		PhotoBytes: 10_000_000,
		PhotoTypes: []string{"image/jpeg", "image/png", "image/webp", "image/gif"},
	}
}

// format is the markdown of a post's md element.
var format = channel.Format{
	Text:   quiet,
	Code:   quiet, // a run of back-ticks in it may end it
	Bold:   channel.Wrap{Before: "**", After: "**"},
	Italic: channel.Wrap{Before: "*", After: "*"},
	Strike: channel.Wrap{Before: "~~", After: "~~"},
	Mono:   channel.Wrap{Before: "`", After: "`"},
	Link:   func(label, address string) string { return "[" + label + "](" + address + ")" },
	Fence:  func(lang, code string) string { return "```" + lang + "\n" + code + "\n```" },
}

// quiet takes the meaning from <at user_id="all">, by which everybody is called.
var quiet = strings.NewReplacer("<at", "<\u200bat", "<AT", "<\u200bAT", "<At", "<\u200bAt", "<aT", "<\u200baT").Replace

// kinds are the forms of a receiver's id, whose length its argument bounds: a
// count in a pattern costs at every start what it counts.
var kinds = []struct {
	kind string
	form *regexp.Regexp
}{
	{"chat_id", regexp.MustCompile(`^oc_[a-z0-9]+$`)},
	{"open_id", regexp.MustCompile(`^ou_[a-z0-9]+$`)},
	{"union_id", regexp.MustCompile(`^on_[a-z0-9]+$`)},
	{"email", regexp.MustCompile(`^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+$`)},
}

func kindOf(id string) string {
	for _, k := range kinds {
		if k.form.MatchString(id) {
			return k.kind
		}
	}
	return ""
}

// CheckTarget wants the id of a chat or a person, or an e-mail address.
func (App) CheckTarget(id string) error {
	if kindOf(id) == "" {
		return errors.New("a Feishu chat is oc_…, a person ou_…, on_… or an e-mail address")
	}
	return nil
}

// Send sends a text as a post, or as plain text.
func (a App) Send(ctx context.Context, to string, part channel.Part, key string) (channel.Receipt, error) {
	if !part.Markup {
		return a.send(ctx, to, "text", map[string]string{"text": quiet(part.Text)}, key)
	}
	element := map[string]string{"tag": "md", "text": part.Text}
	return a.send(ctx, to, "post", map[string]any{"zh_cn": map[string]any{"content": []any{[]any{element}}}}, key)
}

// SendPhoto uploads a picture, which shows nothing yet, and sends it.
func (a App) SendPhoto(ctx context.Context, to string, p channel.Photo, key string) (channel.Receipt, error) {
	token, err := a.login(ctx)
	if err != nil {
		return channel.Receipt{}, err
	}
	uploads, err := a.bearing(token)
	if err != nil {
		return channel.Receipt{}, err
	}
	response, err := uploads.PostForm(ctx, "/open-apis/im/v1/images", map[string]string{"image_type": "message"},
		channel.File{Field: "image", Name: p.Name(), MediaType: p.MediaType, Data: p.Data})
	var image struct {
		Key string `json:"image_key"`
	}
	if err == nil {
		err = a.read(response, &image)
	}
	if err != nil {
		e := channel.ErrorOf("feishu", err)
		if e.Fate == channel.Unknown {
			e.Fate = channel.NotSent // only the upload is in doubt
		}
		return channel.Receipt{}, e
	}
	return a.send(ctx, to, "image", map[string]string{"image_key": image.Key}, key)
}

// send creates a message. The content is JSON in a string.
func (a App) send(ctx context.Context, to, kind string, content any, key string) (channel.Receipt, error) {
	encoded, err := channel.Encode(content)
	if err != nil {
		return channel.Receipt{}, &channel.Error{Platform: "feishu", Fate: channel.Refused, Says: "the message cannot be written"}
	}
	token, err := a.login(ctx)
	if err != nil {
		return channel.Receipt{}, err
	}
	path := "/open-apis/im/v1/messages?receive_id_type=" + url.QueryEscape(kindOf(to))
	response, err := a.api.Post(ctx, path, channel.Bearer(token),
		map[string]string{"receive_id": to, "msg_type": kind, "content": string(encoded), "uuid": key})
	if err != nil {
		return channel.Receipt{}, err
	}
	var sent struct {
		ID string `json:"message_id"`
	}
	if err := a.read(response, &sent); err != nil {
		return channel.Receipt{}, err
	}
	return channel.Receipt{MessageID: sent.ID}, nil
}

// Identify asks for the bot.
func (a App) Identify(ctx context.Context) (channel.Identity, error) {
	token, err := a.login(ctx)
	if err != nil {
		return channel.Identity{}, err
	}
	asking, err := a.bearing(token)
	if err != nil {
		return channel.Identity{}, err
	}
	response, err := asking.Get(ctx, "/open-apis/bot/v3/info")
	if err != nil {
		return channel.Identity{}, err
	}
	// This one answer has its member beside code, not in data.
	var answer struct {
		Bot struct {
			Name string `json:"app_name"`
			ID   string `json:"open_id"`
		} `json:"bot"`
	}
	if err := a.read(response, nil); err != nil {
		return channel.Identity{}, err
	}
	if json.Unmarshal(response.Body, &answer) != nil {
		return channel.Identity{}, a.api.Refusal(response, "unreadable", "the answer could not be read")
	}
	return channel.Identity{ID: answer.Bot.ID, Name: answer.Bot.Name}, nil
}

// bearing is the same server with the token in every header.
func (a App) bearing(token string) (*channel.API, error) {
	return channel.NewAPI("feishu", a.api.Base(), channel.Bearer(token), []string{a.secret, token}, a.options...)
}

// early is how long before its end a token is renewed.
const early = 5 * time.Minute

// login gives the token of the moment. Nothing is sent by it, so every failure
// of it leaves the message unsent.
func (a App) login(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Now().Before(a.session.until) {
		return a.session.token, nil
	}
	response, err := a.api.Post(ctx, "/open-apis/auth/v3/tenant_access_token/internal", nil, map[string]string{"app_id": a.id, "app_secret": a.secret})
	var answer struct {
		Token  string  `json:"tenant_access_token"`
		Expire float64 `json:"expire"` // seconds
	}
	if err == nil {
		err = a.read(response, nil)
	}
	if err == nil && (json.Unmarshal(response.Body, &answer) != nil || answer.Token == "") {
		err = a.api.Refusal(response, "unreadable", "the answer to the login could not be read")
	}
	if err != nil {
		e := channel.ErrorOf("feishu", err)
		if e.Fate == channel.Unknown {
			e.Fate = channel.NotSent
		}
		return "", e
	}
	*a.session = session{answer.Token, time.Now().Add(channel.Seconds(answer.Expire) - early)}
	return answer.Token, nil
}

// read takes data out of an answer, or says what the code means.
func (a App) read(response *safehttp.Response, data any) error {
	var answer struct {
		Code *int            `json:"code"`
		Text string          `json:"msg"`
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(response.Body, &answer) != nil || answer.Code == nil {
		return a.api.Refusal(response, "", "")
	}
	if *answer.Code != 0 {
		return a.refusal(response, *answer.Code, answer.Text)
	}
	if data != nil && json.Unmarshal(answer.Data, data) != nil {
		return a.api.Refusal(response, "unreadable", "the answer could not be read")
	}
	return nil
}

// refusal reads the codes of the platform and of im/v1/messages.
func (a App) refusal(response *safehttp.Response, code int, says string) *channel.Error {
	e := a.api.Refusal(response, strconv.Itoa(code), says)
	if response.Status < http.StatusInternalServerError && !e.Limited {
		e.Fate = channel.Refused
	}
	switch code {
	case 99991400, 230020, 11232, 11233, 11247: // over the frequency of the app, of this chat
		e.Fate, e.Limited, e.Do = channel.NotSent, true, "wait, then send it again"
		if seconds, err := strconv.ParseFloat(response.Header.Get("X-Ogw-Ratelimit-Reset"), 64); err == nil {
			e.RetryAfter = channel.Seconds(seconds)
		}
	case 99991661, 99991663, 99991664, 99991668, 10003, 10014: // tokens, app id and secret
		e.BadLogin, e.Do = true, "an operator checks the app id and secret"
		a.forget()
	case 99991672:
		e.Do = "an operator gives the app the permission to send messages (im:message:send_as_bot)"
	case 230002:
		e.Do = "the bot must be added to the chat"
	case 230006:
		e.Do = "an operator switches on the app's bot"
	case 230013:
		e.Do = "the person is outside the range of users of the app"
	case 230025, 230099, 11310:
		e.BadMarkup = true
	}
	return e
}

// forget makes the next request log in anew. The caller of login holds the
// lock while it reads its answer, where there is nothing to forget.
func (a App) forget() {
	if a.mu.TryLock() {
		*a.session = session{}
		a.mu.Unlock()
	}
}
