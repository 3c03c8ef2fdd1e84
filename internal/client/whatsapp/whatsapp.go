// Package whatsapp sends through the WhatsApp Business Cloud API of Meta's Graph
// API (developers.facebook.com/docs/whatsapp/cloud-api: messages, media, error
// codes).
//
// The API knows no idempotency key: what may have been sent is not sent again.
// Its answer says that a message was accepted; that it could not be delivered,
// for the 24 hours since the customer wrote are over (131047), is told to the
// webhook of whoever receives messages. There is no Go library of Meta's.
package whatsapp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"pawgate/internal/client/channel"
	"pawgate/internal/safehttp"
)

// BaseURL is the public API with its version.
const BaseURL = "https://graph.facebook.com/v23.0"

// Phone is one business phone number. It implements channel.Platform.
type Phone struct {
	api *channel.API
	id  string
}

var digits = regexp.MustCompile(`^[0-9]{5,20}$`)

// New is the number of an account whose ID is the phone number id and whose
// secret is an access token. It does no I/O.
func New(a channel.Account, options ...safehttp.Option) (channel.Platform, error) {
	switch {
	case a.Secret == "":
		return nil, errors.New("the secret is empty; it is an access token of a system user")
	case !digits.MatchString(a.ID):
		return nil, errors.New("the account is no phone number id, which has digits only")
	}
	api, err := channel.NewAPI("whatsapp", cmp.Or(a.BaseURL, BaseURL), channel.Bearer(a.Secret), []string{a.Secret}, options...)
	return Phone{api, a.ID}, err
}

// Traits: a body has at most 4096 characters, a caption 1024, an image (JPEG or
// PNG) 5 MB.
func (Phone) Traits() channel.Traits {
	return channel.Traits{
		Name:       "whatsapp",
		Text:       channel.Limit{Max: 4096, Unit: channel.UTF16},
		Caption:    channel.Limit{Max: 1024, Unit: channel.UTF16},
		Format:     format,
		PhotoBytes: 5 << 20,
		PhotoTypes: []string{"image/jpeg", "image/png"},
	}
}

// format is WhatsApp's. It has no escapes; a back-tick inside of code becomes
// its look-alike. Links are not hidden behind labels.
var format = channel.Format{
	Code:   func(code string) string { return strings.ReplaceAll(code, "`", "ˋ") },
	Bold:   channel.Wrap{Before: "*", After: "*"},
	Italic: channel.Wrap{Before: "_", After: "_"},
	Strike: channel.Wrap{Before: "~", After: "~"},
	Mono:   channel.Wrap{Before: "`", After: "`"},
	Fence:  func(_, code string) string { return "```\n" + code + "\n```" },
}

var target = regexp.MustCompile(`^\+?[1-9][0-9]{6,14}$`)

// CheckTarget wants a phone number (E.164).
func (Phone) CheckTarget(id string) error {
	if !target.MatchString(id) {
		return errors.New("a WhatsApp chat is a phone number with its country code, such as +886912345678")
	}
	return nil
}

type object map[string]any

// Send sends a text.
func (p Phone) Send(ctx context.Context, to string, part channel.Part, _ string) (channel.Receipt, error) {
	return p.message(ctx, to, "text", object{"body": part.Text, "preview_url": false})
}

// SendPhoto uploads a photo and sends it. An upload that fails sent nothing.
func (p Phone) SendPhoto(ctx context.Context, to string, photo channel.Photo, _ string) (channel.Receipt, error) {
	response, err := p.api.PostForm(ctx, "/"+p.id+"/media", map[string]string{"messaging_product": "whatsapp", "type": photo.MediaType},
		channel.File{Field: "file", Name: photo.Name(), MediaType: photo.MediaType, Data: photo.Data})
	var media struct{ ID string }
	if err == nil && (response.Status != http.StatusOK || json.Unmarshal(response.Body, &media) != nil || media.ID == "") {
		err = p.refusal(response)
	}
	if err != nil {
		e := *channel.ErrorOf("whatsapp", err)
		if e.Fate == channel.Unknown {
			e.Fate = channel.NotSent
		}
		return channel.Receipt{}, &e
	}
	image := object{"id": media.ID}
	if photo.Caption.Text != "" {
		image["caption"] = photo.Caption.Text
	}
	return p.message(ctx, to, "image", image)
}

func (p Phone) message(ctx context.Context, to, kind string, content object) (channel.Receipt, error) {
	response, err := p.api.Post(ctx, "/"+p.id+"/messages", nil, object{"messaging_product": "whatsapp", "recipient_type": "individual",
		"to": strings.TrimPrefix(to, "+"), "type": kind, kind: content})
	if err != nil {
		return channel.Receipt{}, err
	}
	var sent struct{ Messages []struct{ ID string } }
	if response.Status != http.StatusOK || json.Unmarshal(response.Body, &sent) != nil || len(sent.Messages) == 0 {
		return channel.Receipt{}, p.refusal(response)
	}
	return channel.Receipt{MessageID: sent.Messages[0].ID}, nil
}

// Identify asks for the phone number's own data.
func (p Phone) Identify(ctx context.Context) (channel.Identity, error) {
	response, err := p.api.Get(ctx, "/"+p.id+"?fields=display_phone_number,verified_name,quality_rating")
	if err != nil {
		return channel.Identity{}, err
	}
	var me struct {
		ID      string
		Number  string `json:"display_phone_number"`
		Name    string `json:"verified_name"`
		Quality string `json:"quality_rating"`
	}
	if response.Status != http.StatusOK || json.Unmarshal(response.Body, &me) != nil {
		return channel.Identity{}, p.refusal(response)
	}
	return channel.Identity{ID: me.ID, Name: strings.TrimSpace(me.Name + " " + me.Number), Details: map[string]string{"quality_rating": me.Quality}}, nil
}

// refusal goes by Meta's codes, as its guide says to: the HTTP status of a code
// has changed before.
func (p Phone) refusal(response *safehttp.Response) *channel.Error {
	var f struct {
		Error struct {
			Message string `json:"message"`
			Code    int    `json:"code"`
			Data    struct {
				Details string `json:"details"`
			} `json:"error_data"`
		} `json:"error"`
	}
	_ = json.Unmarshal(response.Body, &f) // no JSON: the status says enough
	code := ""
	if f.Error.Code != 0 {
		code = strconv.Itoa(f.Error.Code)
	}
	e := p.api.Refusal(response, code, cmp.Or(f.Error.Data.Details, f.Error.Message))
	switch f.Error.Code {
	case 4, 80007, 130429, 131056: // too many calls, by app, account, number, or to one person
		e.Fate, e.Limited, e.Do = channel.NotSent, true, "wait, then send it again"
		e.RetryAfter = channel.RetryAfter(response.Header)
		if f.Error.Code == 131056 && e.RetryAfter == 0 {
			e.RetryAfter = channel.Seconds(6) // one message to a person in 6 seconds
		}
	case 131047:
		e.Fate, e.Do = channel.Refused, "the customer wrote more than 24 hours ago; only an approved template may be sent until they write again"
	case 131048, 368, 131031:
		e.Fate, e.Do = channel.Refused, "the account is restricted; an operator looks into WhatsApp Manager"
	case 131026, 131030:
		e.Fate, e.Do = channel.Refused, "this number cannot be sent to; check chat_id"
	case 190:
		e.Fate, e.BadLogin, e.Do = channel.Refused, true, "an operator checks the channel's access token"
	case 131000, 131016, 1, 2: // something went wrong at Meta's, or is overloaded
		e.Fate = channel.Unknown
	}
	return e
}
