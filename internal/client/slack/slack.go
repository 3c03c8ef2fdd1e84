// Package slack sends as an app through Slack's Web API (docs.slack.dev:
// chat.postMessage, conversations.replies, auth.test, "Formatting message
// text", "Rate limits"). Pictures are shown by their address: an upload takes
// three requests, the second of them to another host.
//
// Slack documents no idempotency key: what may have been sent is not sent
// again. A failure is an HTTP 200 with "ok": false. slack-go brings the whole
// API and its types, and a changed type of one field fails its decoding (which
// has happened); here only what is needed is read.
package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"pawgate/internal/client/channel"
	"pawgate/internal/safehttp"
)

// BaseURL is the public API.
const BaseURL = "https://slack.com/api"

// App is one app in one workspace. It implements channel.Platform.
type App struct{ api *channel.API }

// New is the app of an account whose secret is a bot token. It does no I/O.
func New(a channel.Account, options ...safehttp.Option) (channel.Platform, error) {
	if a.Secret == "" {
		return nil, errors.New("the secret is empty; it is a bot token, which begins with xoxb-")
	}
	api, err := channel.NewAPI("slack", cmp.Or(a.BaseURL, BaseURL), channel.Bearer(a.Secret), []string{a.Secret}, options...)
	return App{api}, err
}

// Traits: text should have no more than 4000 characters, and a section block
// takes 3000; the smaller one suits both. Pictures are shown by address.
func (App) Traits() channel.Traits {
	return channel.Traits{
		Name:       "slack",
		Text:       channel.Limit{Max: 3000, Unit: channel.UTF16},
		Format:     format,
		PhotoBytes: 10 << 20,
		PhotoByURL: true,
		PhotoTypes: []string{"image/jpeg", "image/png", "image/gif"},
	}
}

// format is mrkdwn. It has no escape for a back-tick, so one inside of code
// becomes its look-alike: code that ends early would let the rest be read.
var format = channel.Format{
	Text:   escape,
	Code:   func(code string) string { return escape(strings.ReplaceAll(code, "`", "ˋ")) },
	Bold:   channel.Wrap{Before: "*", After: "*"},
	Italic: channel.Wrap{Before: "_", After: "_"},
	Strike: channel.Wrap{Before: "~", After: "~"},
	Mono:   channel.Wrap{Before: "`", After: "`"},
	Link: func(label, address string) string {
		return "<" + escape(address) + "|" + strings.ReplaceAll(label, "|", "¦") + ">"
	},
	Fence: func(_, code string) string { return "```\n" + code + "\n```" },
	Quote: func(s string) string { return channel.Prefixed("> ", s) },
}

// escape replaces the three control characters: with them gone no text is a
// link, a mention or a command.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

var target = regexp.MustCompile(`^[CDGU][A-Z0-9]{6,20}(/[0-9]{10}\.[0-9]{6})?$`)

// CheckTarget wants a conversation's id; "/1712345678.000100" after it names
// the thread.
func (App) CheckTarget(id string) error {
	if !target.MatchString(id) {
		return errors.New("a Slack conversation is its id, such as C0123456789, with /THREAD_TS for a thread")
	}
	return nil
}

type object map[string]any

func address(to string, m object) object {
	conversation, thread, found := strings.Cut(to, "/")
	m["channel"] = conversation
	if found {
		m["thread_ts"] = thread
	}
	return m
}

// Send posts a text. One for a thread is posted only when the thread is there:
// Slack posts to the conversation itself otherwise, and calls that a success.
func (a App) Send(ctx context.Context, to string, part channel.Part, _ string) (channel.Receipt, error) {
	if err := a.threadExists(ctx, to); err != nil {
		return channel.Receipt{}, err
	}
	// Plain text is escaped too: "mrkdwn": false keeps marks, not links.
	m := object{"text": part.Text, "unfurl_links": false, "unfurl_media": false}
	if !part.Markup {
		m["text"], m["mrkdwn"] = escape(part.Text), false
	}
	return a.post(ctx, address(to, m))
}

// SendPhoto posts an image block.
func (a App) SendPhoto(ctx context.Context, to string, p channel.Photo, _ string) (channel.Receipt, error) {
	if err := a.threadExists(ctx, to); err != nil {
		return channel.Receipt{}, err
	}
	image := object{"type": "image", "image_url": p.URL, "alt_text": "picture"}
	return a.post(ctx, address(to, object{"text": "picture", "blocks": []object{image}}))
}

func (a App) threadExists(ctx context.Context, to string) error {
	conversation, thread, found := strings.Cut(to, "/")
	if !found {
		return nil
	}
	response, err := a.api.Get(ctx, "/conversations.replies?limit=1&channel="+conversation+"&ts="+thread)
	if err != nil {
		e := *channel.ErrorOf("slack", err)
		e.Fate = channel.NotSent // only a question was asked
		return &e
	}
	if _, err := a.read(response); err != nil {
		e := channel.ErrorOf("slack", err)
		if e.Fate == channel.Unknown {
			e.Fate = channel.NotSent
		}
		return e
	}
	return nil
}

func (a App) post(ctx context.Context, m object) (channel.Receipt, error) {
	response, err := a.api.Post(ctx, "/chat.postMessage", nil, m)
	if err != nil {
		return channel.Receipt{}, err
	}
	members, err := a.read(response)
	if err != nil {
		return channel.Receipt{}, err
	}
	return channel.Receipt{MessageID: members.text("ts")}, nil
}

// Identify asks auth.test.
func (a App) Identify(ctx context.Context) (channel.Identity, error) {
	response, err := a.api.Post(ctx, "/auth.test", nil, object{})
	if err != nil {
		return channel.Identity{}, err
	}
	m, err := a.read(response)
	if err != nil {
		return channel.Identity{}, err
	}
	return channel.Identity{ID: m.text("bot_id"), Name: m.text("user"), Details: map[string]string{"team": m.text("team"), "team_id": m.text("team_id")}}, nil
}

// members are an answer's, each read only when it is wanted: Slack changes the
// types of others now and then.
type members map[string]json.RawMessage

func (m members) text(name string) string {
	var s string
	_ = json.Unmarshal(m[name], &s) // another type: left out
	return s
}

// advice is what to do about Slack's own codes.
var advice = map[string]string{
	"channel_not_found": "check chat_id, and invite the app to the conversation if it is private",
	"not_in_channel":    "invite the app to the conversation",
	"is_archived":       "the conversation is archived; use another",
	"thread_not_found":  "check the thread's ts; nothing was posted",
	"msg_too_long":      "send less at once",
	"missing_scope":     "an operator gives the app the scope that Slack names",
	"no_text":           "give a text",
}

var badLogin = map[string]bool{"invalid_auth": true, "not_authed": true, "account_inactive": true, "token_revoked": true, "token_expired": true}

// unclear are errors of Slack's own servers, after which a message may stand.
var unclear = map[string]bool{"internal_error": true, "fatal_error": true, "request_timeout": true}

func (a App) read(response *safehttp.Response) (members, error) {
	var m members
	unread := json.Unmarshal(response.Body, &m)
	if unread == nil && string(m["ok"]) == "true" && response.Status == http.StatusOK {
		return m, nil
	}
	code := m.text("error")
	e := a.api.Refusal(response, code, strings.ReplaceAll(code, "_", " "))
	switch {
	case code == "ratelimited" || code == "rate_limited" || code == "message_limit_exceeded":
		e.Fate, e.Limited, e.RetryAfter = channel.NotSent, true, channel.RetryAfter(response.Header)
		e.Do = "wait, then send it again"
	case code == "service_unavailable":
		e.Fate = channel.NotSent
	case unclear[code] || code == "" && response.Status == http.StatusOK:
		e.Fate = channel.Unknown
	case code != "" && response.Status < 500:
		e.Fate, e.Do, e.BadLogin = channel.Refused, advice[code], badLogin[code]
		if e.BadLogin {
			e.Do = "an operator checks the channel's secret"
		}
		e.BadMarkup = code == "invalid_blocks_format" || code == "markdown_text_conflict"
	}
	return nil, e
}
