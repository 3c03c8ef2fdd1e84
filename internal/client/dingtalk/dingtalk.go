// Package dingtalk sends through a DingTalk group robot's webhook
// (open.dingtalk.com/document/orgapp/custom-robot-access: message types, signed
// requests, limits).
//
// A robot writes to its own group only, knows no idempotency key and answers
// with no message id: what may have been sent is not sent again. It answers
// HTTP 200 to everything; errcode tells. Past 20 messages in a minute it is mute
// for ten, so a refusal of that kind is never tried again at once. The token is
// part of every URL, so no URL leaves this package. One request needs no SDK.
package dingtalk

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/safehttp"
)

// BaseURL is the public API.
const BaseURL = "https://oapi.dingtalk.com"

// Group is the one destination that a robot has.
const Group = "group"

// Robot is one group robot. It implements channel.Platform.
type Robot struct {
	api        *channel.API
	token      string
	signingKey string // "" when the robot asks for no signature
}

var token = regexp.MustCompile(`^[A-Za-z0-9]+$`)

// New is the robot of an account whose secret is the access_token of its
// webhook's address, and whose second secret signs requests. It does no I/O.
func New(a channel.Account, options ...safehttp.Option) (channel.Platform, error) {
	if !token.MatchString(a.Secret) {
		return nil, errors.New("the secret is no robot's token; it is what follows access_token= in the webhook's address")
	}
	api, err := channel.NewAPI("dingtalk", cmp.Or(a.BaseURL, BaseURL), nil, []string{a.Secret, a.Second}, options...)
	return Robot{api, a.Secret, a.Second}, err
}

// Traits: a message has at most 20 000 bytes, of which the envelope takes some;
// a picture is shown by its address.
func (Robot) Traits() channel.Traits {
	return channel.Traits{
		Name:       "dingtalk",
		Text:       channel.Limit{Max: 7500, Unit: channel.Bytes}, // a line break takes four bytes, a quotation mark two
		Format:     format,
		PhotoBytes: 10 << 20,
		PhotoByURL: true,
		PhotoTypes: []string{"image/jpeg", "image/png", "image/gif"},
	}
}

// format is the robot's markdown: no strikethrough, no blocks of code, no
// escapes.
var format = channel.Format{
	Bold:   channel.Wrap{Before: "**", After: "**"},
	Italic: channel.Wrap{Before: "*", After: "*"},
	Link:   func(label, address string) string { return "[" + label + "](" + address + ")" },
}

// CheckTarget wants the robot's own group.
func (Robot) CheckTarget(id string) error {
	if id != Group {
		return errors.New("a DingTalk robot writes to its own group only; the chat is " + Group)
	}
	return nil
}

// Send sends a text. Single line breaks are written so that they stay.
func (r Robot) Send(ctx context.Context, _ string, part channel.Part, _ string) (channel.Receipt, error) {
	if !part.Markup {
		return r.post(ctx, map[string]any{"msgtype": "text", "text": map[string]string{"content": part.Text}})
	}
	text := strings.ReplaceAll(strings.ReplaceAll(part.Text, "\n\n", "\n"), "\n", "\n\n")
	return r.post(ctx, map[string]any{"msgtype": "markdown", "markdown": map[string]string{"title": title(part.Plain), "text": text}})
}

// title is what the list of chats shows: the first line.
func title(plain string) string {
	const most = 40
	line, _, _ := strings.Cut(strings.TrimSpace(plain), "\n")
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return cmp.Or(line, "message")
}

// SendPhoto shows a picture by its address, above its caption.
func (r Robot) SendPhoto(ctx context.Context, _ string, p channel.Photo, _ string) (channel.Receipt, error) {
	return r.post(ctx, map[string]any{"msgtype": "markdown", "markdown": map[string]string{
		"title": title(p.Caption.Plain), "text": "![](" + p.URL + ")\n\n" + p.Caption.Text}})
}

// Identify sends a message of no type, which a robot that exists refuses with
// another code than one that does not: a webhook has no request that only
// looks. Nothing is shown in the group.
func (r Robot) Identify(ctx context.Context) (channel.Identity, error) {
	_, err := r.post(ctx, map[string]any{"msgtype": "none"})
	var e *channel.Error
	switch {
	case errors.As(err, &e) && e.Fate == channel.Refused && !e.BadLogin && e.Code != "":
		return channel.Identity{Name: "group robot", Details: map[string]string{"checked": "the token is accepted; the platform does not tell the robot's name"}}, nil
	case err != nil:
		return channel.Identity{}, err
	}
	return channel.Identity{Name: "group robot"}, nil
}

// path is the webhook's, signed with the time where the robot wants it.
func (r Robot) path(now time.Time) string {
	q := url.Values{"access_token": {r.token}}
	if r.signingKey != "" {
		stamp := strconv.FormatInt(now.UnixMilli(), 10)
		mac := hmac.New(sha256.New, []byte(r.signingKey))
		mac.Write([]byte(stamp + "\n" + r.signingKey))
		q.Set("timestamp", stamp)
		q.Set("sign", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return "/robot/send?" + q.Encode()
}

func (r Robot) post(ctx context.Context, message any) (channel.Receipt, error) {
	response, err := r.api.Post(ctx, r.path(time.Now()), nil, message)
	if err != nil {
		return channel.Receipt{}, err
	}
	var answer struct {
		Code *int   `json:"errcode"`
		Text string `json:"errmsg"`
	}
	if json.Unmarshal(response.Body, &answer) != nil || answer.Code == nil || response.Status != http.StatusOK {
		return channel.Receipt{}, r.api.Refusal(response, "", "")
	}
	if *answer.Code == 0 {
		return channel.Receipt{}, nil
	}
	return channel.Receipt{}, r.refusal(response, *answer.Code, answer.Text)
}

// muted is how long a robot is mute that sent too much.
const muted = 10 * time.Minute

// refusal reads errcode.
func (r Robot) refusal(response *safehttp.Response, code int, says string) *channel.Error {
	e := r.api.Refusal(response, strconv.Itoa(code), says)
	e.Fate = channel.Refused
	switch code {
	case 130101, 410100: // too fast
		e.Fate, e.Limited, e.RetryAfter, e.Do = channel.NotSent, true, muted, "wait; a robot that sends more than 20 messages a minute is mute for ten"
	case -1: // the system is busy
		e.Fate, e.Do = channel.NotSent, "try again later"
	case 300001, 300005, 40014, 400013, 400101: // no such token, no such group
		e.BadLogin, e.Do = true, "an operator checks the robot's token; the robot may have been removed from its group"
	case 310000: // keyword, signature or address of the sender not accepted
		e.BadLogin, e.Do = true, "the robot's security settings refuse it; an operator checks the signing secret, the keywords and the allowed addresses"
	}
	return e
}
