// Package line sends through LINE's Messaging API (developers.line.biz,
// reference of the Messaging API: push message, message objects, quota; "Retry
// failed API requests"; "Handle HTTP status code 429 errors").
//
// Every push carries a retry key: LINE takes a request with the same key once
// within 24 hours and answers 409 to the others, so an attempt of unknown fate
// may be repeated. line-bot-sdk-go would do as well, but brings a client of its
// own for what is one request here, and none of the SSRF guard's answer to
// whether that request left this host.
package line

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/safehttp"
)

// BaseURL is the public API.
const BaseURL = "https://api.line.me"

// Bot is one LINE Official Account. It implements channel.Platform and
// channel.StickerSender.
type Bot struct{ api *channel.API }

// New is the bot of an account whose secret is a channel access token. It does
// no I/O.
func New(a channel.Account, options ...safehttp.Option) (channel.Platform, error) {
	if a.Secret == "" {
		return nil, errors.New("the secret is empty; it is a channel access token")
	}
	api, err := channel.NewAPI("line", cmp.Or(a.BaseURL, BaseURL), channel.Bearer(a.Secret), []string{a.Secret}, options...)
	return Bot{api}, err
}

// Traits: a text has at most 5000 UTF-16 code units and no format; an image is
// a JPEG or PNG of at most 10 MB at an https address. The preview, which may
// have 1 MB, is the same file, hence the smaller bound.
func (Bot) Traits() channel.Traits {
	return channel.Traits{
		Name:       "line",
		Text:       channel.Limit{Max: 5000, Unit: channel.UTF16},
		KeyLife:    23 * time.Hour, // of 24, for clocks differ
		PhotoBytes: 1 << 20,
		PhotoByURL: true,
		PhotoTypes: []string{"image/jpeg", "image/png"},
	}
}

var target = regexp.MustCompile(`^[UCR][0-9a-f]{32}$`)

// CheckTarget wants the id of a user, group or room.
func (Bot) CheckTarget(id string) error {
	if !target.MatchString(id) {
		return errors.New("a LINE chat is the id of a user, group or room: U, C or R and 32 hexadecimal digits")
	}
	return nil
}

type object map[string]any

// Send pushes a text.
func (b Bot) Send(ctx context.Context, to string, part channel.Part, key string) (channel.Receipt, error) {
	return b.push(ctx, to, object{"type": "text", "text": part.Text}, key)
}

// SendPhoto pushes an image by its address.
func (b Bot) SendPhoto(ctx context.Context, to string, p channel.Photo, key string) (channel.Receipt, error) {
	return b.push(ctx, to, object{"type": "image", "originalContentUrl": p.URL, "previewImageUrl": p.URL}, key)
}

var number = regexp.MustCompile(`^[0-9]{1,20}$`)

// CheckSticker wants the ids of a package and of a sticker in it.
func (Bot) CheckSticker(s channel.Sticker) error {
	if !number.MatchString(s.Package) || !number.MatchString(s.ID) {
		return errors.New("a LINE sticker is a package id and a sticker id, both numbers, of LINE's list of available stickers")
	}
	return nil
}

// SendSticker pushes a sticker.
func (b Bot) SendSticker(ctx context.Context, to string, s channel.Sticker, key string) (channel.Receipt, error) {
	return b.push(ctx, to, object{"type": "sticker", "packageId": s.Package, "stickerId": s.ID}, key)
}

// push sends one message object; a request may hold five, but only one alone
// can be gone on with after a failure.
func (b Bot) push(ctx context.Context, to string, message object, key string) (channel.Receipt, error) {
	response, err := b.api.Post(ctx, "/v2/bot/message/push", http.Header{"X-Line-Retry-Key": {key}}, object{"to": to, "messages": []object{message}})
	if err != nil {
		return channel.Receipt{}, err
	}
	var answer struct {
		Sent []struct {
			ID string `json:"id"`
		} `json:"sentMessages"`
		failure
	}
	unread := json.Unmarshal(response.Body, &answer)
	switch accepted := response.Header.Get("X-Line-Accepted-Request-Id"); {
	case response.Status == http.StatusConflict && (accepted != "" || len(answer.Sent) > 0):
		r := channel.Receipt{MessageID: accepted, Repeated: true}
		if len(answer.Sent) > 0 {
			r.MessageID = answer.Sent[0].ID
		}
		return r, nil
	case response.Status == http.StatusOK && len(answer.Sent) > 0:
		return channel.Receipt{MessageID: answer.Sent[0].ID}, nil
	case response.Status == http.StatusOK && unread == nil: // an older form of the answer
		return channel.Receipt{MessageID: response.Header.Get("X-Line-Request-Id")}, nil
	}
	return channel.Receipt{}, b.refusal(response, answer.failure)
}

// failure is the body of an error response.
type failure struct {
	Message string `json:"message"`
	Details []struct {
		Message  string `json:"message"`
		Property string `json:"property"`
	} `json:"details"`
}

// refusal tells the limits of a 429 apart by the message, as LINE's guide says
// to: a used-up month does not pass by waiting a moment.
func (b Bot) refusal(response *safehttp.Response, f failure) *channel.Error {
	says := f.Message
	for _, d := range f.Details {
		says += "; " + d.Property + ": " + d.Message
	}
	e := b.api.Refusal(response, "", says)
	switch {
	case e.Limited && strings.Contains(strings.ToLower(f.Message), "monthly limit"):
		e.Fate, e.RetryAfter = channel.Refused, 0
		e.Do = "the account's messages of this month are used up; wait for the next month, or the operator raises the limit in LINE Official Account Manager"
	case e.Limited && e.RetryAfter == 0:
		e.RetryAfter = time.Second // LINE's rate limits are per second, and it names no time
	case response.Status == http.StatusServiceUnavailable:
		e.Fate = channel.Unknown // the guide counts every 5xx as one; the key makes a repetition safe
	case e.Fate == channel.Refused && !e.BadLogin:
		e.Do = "check chat_id: the person must be a friend of the account, or the account a member of the group"
	}
	return e
}

// Identify asks who the bot is, and how much of this month's quota is left.
func (b Bot) Identify(ctx context.Context) (channel.Identity, error) {
	var me struct {
		UserID      string `json:"userId"`
		BasicID     string `json:"basicId"`
		DisplayName string `json:"displayName"`
	}
	if err := b.get(ctx, "/v2/bot/info", &me); err != nil {
		return channel.Identity{}, err
	}
	identity := channel.Identity{ID: me.UserID, Name: strings.TrimSpace(me.DisplayName + " " + me.BasicID), Details: map[string]string{}}
	var quota struct {
		Type  string `json:"type"`
		Value int64  `json:"value"`
	}
	var used struct {
		Total int64 `json:"totalUsage"`
	}
	if b.get(ctx, "/v2/bot/message/quota", &quota) == nil && b.get(ctx, "/v2/bot/message/quota/consumption", &used) == nil {
		identity.Details["used_this_month"] = strconv.FormatInt(used.Total, 10)
		if quota.Type == "limited" {
			identity.Details["quota_this_month"] = strconv.FormatInt(quota.Value, 10)
		}
	}
	return identity, nil
}

func (b Bot) get(ctx context.Context, path string, result any) error {
	response, err := b.api.Get(ctx, path)
	if err != nil {
		return err
	}
	if response.Status == http.StatusOK && json.Unmarshal(response.Body, result) == nil {
		return nil
	}
	var f failure
	_ = json.Unmarshal(response.Body, &f) // no JSON: the status says enough
	return b.refusal(response, f)
}
