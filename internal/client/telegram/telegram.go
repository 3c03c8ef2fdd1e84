// Package telegram sends through Telegram's Bot API (core.telegram.org/bots/api,
// methods sendMessage, sendPhoto, sendDocument, sendSticker, getMe).
//
// The Bot API knows no idempotency key: what may have been sent is not sent
// again. The token is part of every path, so no URL and no cause of an error
// leaves this package. Go libraries for the Bot API put that URL into their
// errors or retry by themselves, which is why none is used.
package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"pawgate/internal/client/channel"
	"pawgate/internal/safehttp"
)

// BaseURL is the public API.
const BaseURL = "https://api.telegram.org"

// Bot is one bot. It implements channel.Platform and channel.StickerSender.
type Bot struct {
	api   *channel.API
	token string
}

var token = regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`)

// New is the bot of an account whose secret is a token of @BotFather. It does
// no I/O.
func New(a channel.Account, options ...safehttp.Option) (channel.Platform, error) {
	if !token.MatchString(a.Secret) {
		return nil, errors.New("the secret is no bot token; one looks like 123456:ABC-DEF")
	}
	api, err := channel.NewAPI("telegram", cmp.Or(a.BaseURL, BaseURL), nil, []string{a.Secret}, options...)
	return Bot{api, a.Secret}, err
}

// Traits are the limits of sendMessage (4096 characters after entities
// parsing), sendPhoto (caption 1024, upload 10 MB). A character is a UTF-16
// code unit there.
func (Bot) Traits() channel.Traits {
	return channel.Traits{
		Name:       "telegram",
		Text:       channel.Limit{Max: 4096, Unit: channel.UTF16, Visible: true},
		Caption:    channel.Limit{Max: 1024, Unit: channel.UTF16, Visible: true},
		Format:     format,
		PhotoBytes: 10_000_000,
		PhotoTypes: []string{"image/jpeg", "image/png", "image/webp", "image/gif"},
	}
}

// format is the API's HTML style.
var format = channel.Format{
	Text:   escape,
	Code:   escape,
	Bold:   channel.Wrap{Before: "<b>", After: "</b>"},
	Italic: channel.Wrap{Before: "<i>", After: "</i>"},
	Strike: channel.Wrap{Before: "<s>", After: "</s>"},
	Mono:   channel.Wrap{Before: "<code>", After: "</code>"},
	Link: func(label, address string) string {
		return `<a href="` + html.EscapeString(address) + `">` + label + "</a>"
	},
	Fence: func(lang, code string) string {
		if lang == "" {
			return "<pre>" + code + "</pre>"
		}
		return `<pre><code class="language-` + html.EscapeString(lang) + `">` + code + "</code></pre>"
	},
	Quote: func(s string) string { return "<blockquote>" + s + "</blockquote>" },
}

// escape replaces the three characters that the HTML style reserves.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

var target = regexp.MustCompile(`^(-?[0-9]{1,20}|@[A-Za-z][A-Za-z0-9_]{3,31})(/[0-9]{1,10})?$`)

// CheckTarget wants a chat's number or public name; "/7" after it names the
// topic of a forum.
func (Bot) CheckTarget(id string) error {
	if !target.MatchString(id) {
		return errors.New("a Telegram chat is a number such as -1001234567890 or a public name such as @channel, with /TOPIC for a forum's topic")
	}
	return nil
}

type message map[string]any

// address puts the chat, and its topic where there is one, into a message.
func (m message) address(to string) message {
	chat, topic, found := strings.Cut(to, "/")
	m["chat_id"] = chat
	if found {
		n, _ := strconv.Atoi(topic) // CheckTarget saw digits
		m["message_thread_id"] = n
	}
	return m
}

// Send sends a text.
func (b Bot) Send(ctx context.Context, to string, part channel.Part, _ string) (channel.Receipt, error) {
	m := message{"text": part.Text}.address(to)
	if part.Markup {
		m["parse_mode"] = "HTML"
	}
	return b.post(ctx, "sendMessage", m)
}

// maxSides is the most that a photo's width and height may sum up to; one that
// is larger, or more than 20 times as long as wide, goes as a document.
const maxSides, maxRatio = 10_000, 20

// SendPhoto uploads a photo.
func (b Bot) SendPhoto(ctx context.Context, to string, p channel.Photo, _ string) (channel.Receipt, error) {
	method, field := "sendPhoto", "photo"
	short, long := min(p.Width, p.Height), max(p.Width, p.Height)
	if short+long > maxSides || long > maxRatio*max(short, 1) && short > 0 {
		method, field = "sendDocument", "document"
	}
	fields := map[string]string{}
	for name, value := range (message{}).address(to) {
		fields[name] = text(value)
	}
	if p.Caption.Text != "" {
		fields["caption"] = p.Caption.Text
		if p.Caption.Markup {
			fields["parse_mode"] = "HTML"
		}
	}
	return b.receipt(b.api.PostForm(ctx, b.path(method), fields,
		channel.File{Field: field, Name: p.Name(), MediaType: p.MediaType, Data: p.Data}))
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	encoded, _ := json.Marshal(v) // a number
	return string(encoded)
}

// fileID has a length that is checked beside it: a counted repetition would
// cost every cold start a fifth of a millisecond.
var fileID = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// CheckSticker wants the file id of a sticker: an address would be fetched.
func (Bot) CheckSticker(s channel.Sticker) error {
	if s.Package != "" || !fileID.MatchString(s.ID) || len(s.ID) < 10 || len(s.ID) > 200 {
		return errors.New("a Telegram sticker is the file_id of a sticker that this bot has seen, without a package")
	}
	return nil
}

// SendSticker sends a sticker that the bot has seen.
func (b Bot) SendSticker(ctx context.Context, to string, s channel.Sticker, _ string) (channel.Receipt, error) {
	r, err := b.post(ctx, "sendSticker", message{"sticker": s.ID}.address(to))
	if e := (*channel.Error)(nil); errors.As(err, &e) && e.Do == adviceSticker {
		e.Do = "sticker_id " + s.ID + " is unknown to this bot; " + e.Do
	}
	return r, err
}

// Identify asks getMe.
func (b Bot) Identify(ctx context.Context) (channel.Identity, error) {
	response, err := b.api.Get(ctx, b.path("getMe"))
	if err != nil {
		return channel.Identity{}, err
	}
	var me struct {
		ID       json.Number
		Username string
	}
	if err := b.read(response, &me); err != nil {
		return channel.Identity{}, err
	}
	return channel.Identity{ID: me.ID.String(), Name: "@" + me.Username}, nil
}

func (b Bot) path(method string) string { return "/bot" + b.token + "/" + method }

func (b Bot) post(ctx context.Context, method string, m message) (channel.Receipt, error) {
	return b.receipt(b.api.Post(ctx, b.path(method), nil, m))
}

func (b Bot) receipt(response *safehttp.Response, err error) (channel.Receipt, error) {
	if err != nil {
		return channel.Receipt{}, err
	}
	var sent struct {
		ID json.Number `json:"message_id"`
	}
	if err := b.read(response, &sent); err != nil {
		return channel.Receipt{}, err
	}
	return channel.Receipt{MessageID: sent.ID.String()}, nil
}

// answer is the envelope of every method (Making requests, ResponseParameters).
type answer struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter float64 `json:"retry_after"` // seconds
		MigrateTo  int64   `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

func (b Bot) read(response *safehttp.Response, result any) error {
	var a answer
	err := json.Unmarshal(response.Body, &a)
	if err == nil && a.OK && response.Status == http.StatusOK {
		if err := json.Unmarshal(a.Result, result); err != nil {
			return b.api.Refusal(response, "unreadable", "the answer could not be read") // of unknown fate: the status is 200
		}
		return nil
	}
	e := b.api.Refusal(response, "", a.Description)
	if a.Code != 0 {
		e.Code = strconv.Itoa(a.Code)
	}
	if a.Parameters.RetryAfter > 0 {
		e.RetryAfter = channel.Seconds(a.Parameters.RetryAfter)
	}
	if e.Fate == channel.Refused {
		explain(e, strings.ToLower(a.Description), a.Parameters.MigrateTo)
	}
	return e
}

const adviceSticker = "use the file_id of a sticker that this bot has received"

// explain says what to do about a refusal. The API has no codes finer than the
// status; its descriptions are what there is.
func explain(e *channel.Error, says string, migrated int64) {
	switch {
	case migrated != 0:
		e.Do = "the group became a supergroup; an operator sets its new id " + strconv.FormatInt(migrated, 10)
	case e.BadLogin, e.Code == "404":
		e.BadLogin, e.Do = true, "an operator checks the bot's token"
	case strings.Contains(says, "can't parse entities"):
		e.BadMarkup = true
	case strings.Contains(says, "chat not found"):
		e.Do = "check chat_id; a person must have written to the bot first"
	case strings.Contains(says, "file identifier"), strings.Contains(says, "sticker"):
		e.Do = adviceSticker
	case strings.Contains(says, "bot was blocked"), strings.Contains(says, "kicked"), strings.Contains(says, "not a member"):
		e.Do = "the bot must be let back into the chat"
	}
}
