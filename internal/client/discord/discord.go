// Package discord sends as a bot through Discord's REST API, version 10
// (discord.com/developers/docs: Create Message, Rate Limits, Get Current User).
//
// Every message carries a nonce with enforce_nonce: for a few minutes Discord
// answers a repetition with the message that it has already. Nobody is
// mentioned, whatever the text says. Gateway libraries such as discordgo queue
// and repeat requests by themselves, which is why none is used.
package discord

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

// BaseURL is the public API. The version is part of it: answers to requests
// without one differ in their units.
const BaseURL = "https://discord.com/api/v10"

// Bot is one bot. It implements channel.Platform.
type Bot struct{ api *channel.API }

// New is the bot of an account whose secret is a bot token. It does no I/O.
func New(a channel.Account, options ...safehttp.Option) (channel.Platform, error) {
	token := strings.TrimPrefix(a.Secret, "Bot ")
	if token == "" {
		return nil, errors.New("the secret is empty; it is a bot token")
	}
	api, err := channel.NewAPI("discord", cmp.Or(a.BaseURL, BaseURL), http.Header{"Authorization": {"Bot " + token}}, []string{token}, options...)
	return Bot{api}, err
}

// Traits: content has at most 2000 characters, marks included. Counting UTF-16
// code units is the stricter of the readings.
func (Bot) Traits() channel.Traits {
	return channel.Traits{
		Name:       "discord",
		Text:       channel.Limit{Max: 2000, Unit: channel.UTF16},
		Caption:    channel.Limit{Max: 2000, Unit: channel.UTF16},
		Format:     format,
		KeyLife:    2 * time.Minute, // of "a few"
		PhotoBytes: 8 << 20,
		PhotoTypes: []string{"image/jpeg", "image/png", "image/gif", "image/webp"},
	}
}

var format = channel.Format{
	Text:   escape,
	Code:   func(code string) string { return strings.ReplaceAll(code, "`", "`\u200b") }, // no run of back-ticks closes it
	Bold:   channel.Wrap{Before: "**", After: "**"},
	Italic: channel.Wrap{Before: "*", After: "*"},
	Strike: channel.Wrap{Before: "~~", After: "~~"},
	Mono:   channel.Wrap{Before: "``", After: "``"},
	Link:   link,
	Fence:  func(lang, code string) string { return "```" + fenceLang(lang) + "\n" + code + "\n```" },
}

// link is a masked link, or the bare address where that is the label.
func link(label, address string) string {
	if bare := escape(address); label == bare {
		return address
	}
	return "[" + label + "](" + strings.NewReplacer("(", "%28", ")", "%29").Replace(address) + ")"
}

var language = regexp.MustCompile(`^[A-Za-z0-9+#-]{1,20}$`)

func fenceLang(lang string) string {
	if language.MatchString(lang) {
		return lang
	}
	return ""
}

// escape puts a backslash before what Discord's markdown reads.
var escape = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, ">", `\>`, "<", `\<`, "[", `\[`, "]", `\]`, "#", `\#`).Replace

var target = regexp.MustCompile(`^[0-9]{17,20}$`)

// CheckTarget wants a channel's snowflake: it becomes part of a path.
func (Bot) CheckTarget(id string) error {
	if !target.MatchString(id) {
		return errors.New("a Discord channel is its id, a number of 17 to 20 digits")
	}
	return nil
}

type object map[string]any

// message is what all messages have: the nonce of at most 25 characters, and no
// mentions.
func message(content, key string) object {
	return object{"content": content, "nonce": nonce(key), "enforce_nonce": true, "allowed_mentions": object{"parse": []string{}}}
}

func nonce(key string) string {
	short := strings.ReplaceAll(key, "-", "")
	return short[:min(len(short), 25)]
}

// Send creates a message.
func (b Bot) Send(ctx context.Context, to string, part channel.Part, key string) (channel.Receipt, error) {
	return b.receipt(b.api.Post(ctx, "/channels/"+to+"/messages", nil, message(part.Text, key)))
}

// SendPhoto creates a message with an attachment.
func (b Bot) SendPhoto(ctx context.Context, to string, p channel.Photo, key string) (channel.Receipt, error) {
	payload, err := json.Marshal(message(p.Caption.Text, key))
	if err != nil {
		return channel.Receipt{}, &channel.Error{Platform: "discord", Fate: channel.Refused, Says: "the message cannot be written"}
	}
	return b.receipt(b.api.PostForm(ctx, "/channels/"+to+"/messages", map[string]string{"payload_json": string(payload)},
		channel.File{Field: "files[0]", Name: p.Name(), MediaType: p.MediaType, Data: p.Data}))
}

// Identify asks for the current user.
func (b Bot) Identify(ctx context.Context) (channel.Identity, error) {
	response, err := b.api.Get(ctx, "/users/@me")
	if err != nil {
		return channel.Identity{}, err
	}
	var me struct{ ID, Username string }
	if response.Status != http.StatusOK || json.Unmarshal(response.Body, &me) != nil {
		return channel.Identity{}, b.refusal(response)
	}
	return channel.Identity{ID: me.ID, Name: me.Username}, nil
}

func (b Bot) receipt(response *safehttp.Response, err error) (channel.Receipt, error) {
	if err != nil {
		return channel.Receipt{}, err
	}
	if response.Status == http.StatusNoContent { // done, without a word about it
		return channel.Receipt{}, nil
	}
	var sent struct{ ID string }
	if response.Status >= 300 || json.Unmarshal(response.Body, &sent) != nil {
		return channel.Receipt{}, b.refusal(response)
	}
	return channel.Receipt{MessageID: sent.ID}, nil
}

// refusal reads Discord's error: a code of its own, and for a 429 the wait in
// seconds, with a fraction, in the body. The header is in whole seconds in this
// version, and was in milliseconds in others, so it counts only without a body.
func (b Bot) refusal(response *safehttp.Response) *channel.Error {
	var f struct {
		Code       int     `json:"code"`
		Message    string  `json:"message"`
		RetryAfter float64 `json:"retry_after"`
	}
	_ = json.Unmarshal(response.Body, &f) // Cloudflare's answers are no JSON
	code := ""
	if f.Code != 0 {
		code = strconv.Itoa(f.Code)
	}
	e := b.api.Refusal(response, code, f.Message)
	if e.Limited && f.RetryAfter > 0 {
		e.RetryAfter = channel.Seconds(f.RetryAfter)
	}
	switch f.Code {
	case 10003:
		e.Do = "check chat_id: there is no such channel, or the bot is not in its server"
	case 50001, 50013:
		e.Do = "the bot needs the rights to see the channel and to send messages in it"
	case 50007:
		e.Do = "this person takes no direct messages from the bot"
	}
	return e
}
