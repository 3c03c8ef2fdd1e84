// Package wecom sends through a WeCom group robot's webhook
// (developer.work.weixin.qq.com/document/path/91770).
//
// A robot writes to its own group only, knows no idempotency key and answers
// with no message id: what may have been sent is not sent again. It answers
// HTTP 200 to everything; errcode tells. The key is part of every URL, so no URL
// leaves this package. One request needs no SDK.
package wecom

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // the protocol's checksum, no security
	"encoding/base64"
	"encoding/hex"
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
const BaseURL = "https://qyapi.weixin.qq.com"

// Group is the one destination that a robot has.
const Group = "group"

// Robot is one group robot. It implements channel.Platform.
type Robot struct {
	api *channel.API
	key string
}

var key = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// New is the robot of an account whose secret is the key of its webhook's
// address. It does no I/O.
func New(a channel.Account, options ...safehttp.Option) (channel.Platform, error) {
	if !key.MatchString(a.Secret) {
		return nil, errors.New("the secret is no robot's key; it is what follows key= in the webhook's address")
	}
	api, err := channel.NewAPI("wecom", cmp.Or(a.BaseURL, BaseURL), nil, []string{a.Secret}, options...)
	return Robot{api, a.Secret}, err
}

// Traits: markdown of at most 4096 bytes; a JPEG or PNG of 2 MB before it is
// encoded.
func (Robot) Traits() channel.Traits {
	return channel.Traits{
		Name:       "wecom",
		Text:       channel.Limit{Max: 4096, Unit: channel.Bytes},
		Format:     format,
		PhotoBytes: 2 << 20,
		PhotoTypes: []string{"image/jpeg", "image/png"},
	}
}

// format is the robot's markdown, which has bold, links, quotes and code in a
// line, and no escapes.
var format = channel.Format{
	Text: quiet,
	Code: quiet,
	Bold: channel.Wrap{Before: "**", After: "**"},
	Mono: channel.Wrap{Before: "`", After: "`"},
	Link: func(label, address string) string { return "[" + label + "](" + address + ")" },
}

// quiet takes the meaning from <@everyone> and from tags: the robot's markdown
// calls people by them.
var quiet = strings.NewReplacer("<@", "<\u200b@", "<font", "<\u200bfont").Replace

// CheckTarget wants the robot's own group.
func (Robot) CheckTarget(id string) error {
	if id != Group {
		return errors.New("a WeCom robot writes to its own group only; the chat is " + Group)
	}
	return nil
}

// Send sends a text.
func (r Robot) Send(ctx context.Context, _ string, part channel.Part, _ string) (channel.Receipt, error) {
	text := part.Text
	if !part.Markup { // it is read as markdown all the same
		text = quiet(text)
	}
	return r.post(ctx, map[string]any{"msgtype": "markdown", "markdown": map[string]string{"content": text}})
}

// SendPhoto sends a picture inside the message.
func (r Robot) SendPhoto(ctx context.Context, _ string, p channel.Photo, _ string) (channel.Receipt, error) {
	sum := md5.Sum(p.Data) //nolint:gosec // see above
	return r.post(ctx, map[string]any{"msgtype": "image", "image": map[string]string{
		"base64": base64.StdEncoding.EncodeToString(p.Data), "md5": hex.EncodeToString(sum[:])}})
}

// Identify sends a message of no type, which a robot that exists refuses with
// another code than one that does not: a webhook has no request that only
// looks. Nothing is shown in the group.
func (r Robot) Identify(ctx context.Context) (channel.Identity, error) {
	_, err := r.post(ctx, map[string]any{"msgtype": "none"})
	var e *channel.Error
	switch {
	case errors.As(err, &e) && e.Fate == channel.Refused && !e.BadLogin && e.Code != "":
		return channel.Identity{Name: "group robot", Details: map[string]string{"checked": "the key is accepted; the platform does not tell the robot's name"}}, nil
	case err != nil:
		return channel.Identity{}, err
	}
	return channel.Identity{Name: "group robot"}, nil
}

func (r Robot) post(ctx context.Context, message any) (channel.Receipt, error) {
	response, err := r.api.Post(ctx, "/cgi-bin/webhook/send?key="+url.QueryEscape(r.key), nil, message)
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

// window is the time in which a robot takes 20 messages.
const window = time.Minute

// refusal reads errcode (path/90313, global error codes).
func (r Robot) refusal(response *safehttp.Response, code int, says string) *channel.Error {
	// Only the first words: the rest is a hint with the address of this host.
	says, _, _ = strings.Cut(says, ", hint:")
	e := r.api.Refusal(response, strconv.Itoa(code), says)
	e.Fate = channel.Refused
	switch code {
	case 45009, 45033: // over the frequency, over the concurrency
		e.Fate, e.Limited, e.RetryAfter, e.Do = channel.NotSent, true, window, "wait; a robot takes 20 messages a minute"
	case -1: // the system is busy
		e.Fate, e.Do = channel.NotSent, "try again later"
	case 93000: // no such robot, or it was removed
		e.BadLogin, e.Do = true, "an operator checks the robot's key; the robot may have been removed from its group"
	case 40058, 45002:
		e.Do = "the text is too long for one message"
	}
	return e
}
