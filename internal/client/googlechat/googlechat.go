// Package googlechat sends through an incoming webhook of a Google Chat space
// (developers.google.com/workspace/chat: webhooks, format messages,
// spaces.messages.create).
//
// A webhook writes to its own space only, to any thread of it. requestId makes
// a repetition give the message that is there. The webhook's address holds a key
// and a token, so no URL leaves this package. Google's library for the API is
// for apps that act as a user or a service, not for webhooks.
package googlechat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/safehttp"
)

// BaseURL is the public API.
const BaseURL = "https://chat.googleapis.com"

// Webhook is one webhook. It implements channel.Platform.
type Webhook struct {
	api   *channel.API
	space string // spaces/…
	query url.Values
}

var path = regexp.MustCompile(`^/v1/(spaces/[A-Za-z0-9_-]+)/messages$`)

// New is the webhook whose whole address is the account's secret. It does no
// I/O.
func New(a channel.Account, options ...safehttp.Option) (channel.Platform, error) {
	wrong := errors.New("the secret is no webhook's address; one looks like " + BaseURL + "/v1/spaces/SPACE/messages?key=KEY&token=TOKEN")
	u, err := url.Parse(a.Secret)
	if err != nil {
		return nil, wrong
	}
	space := path.FindStringSubmatch(u.Path)
	key, token := u.Query().Get("key"), u.Query().Get("token")
	if space == nil || key == "" || token == "" || "https://"+u.Host != BaseURL {
		return nil, wrong
	}
	api, err := channel.NewAPI("googlechat", cmp.Or(a.BaseURL, BaseURL), nil, []string{key, token}, options...)
	return Webhook{api, space[1], url.Values{"key": {key}, "token": {token}}}, err
}

// Traits: the size of a text is 4096, read as bytes because characters are not
// promised; a picture is shown by its address.
func (Webhook) Traits() channel.Traits {
	return channel.Traits{
		Name:       "googlechat",
		Text:       channel.Limit{Max: 4096, Unit: channel.Bytes},
		Format:     format,
		KeyLife:    time.Hour,
		PhotoBytes: 10 << 20,
		PhotoByURL: true,
		PhotoTypes: []string{"image/jpeg", "image/png", "image/gif"},
	}
}

// format is Chat's own markup, which has no escapes.
var format = channel.Format{
	Text:   quiet,
	Code:   quiet,
	Bold:   channel.Wrap{Before: "*", After: "*"},
	Italic: channel.Wrap{Before: "_", After: "_"},
	Strike: channel.Wrap{Before: "~", After: "~"},
	Mono:   channel.Wrap{Before: "`", After: "`"},
	Link: func(label, address string) string {
		return "<" + strings.NewReplacer("|", "%7C", ">", "%3E").Replace(address) + "|" + strings.NewReplacer("|", "/", ">", "").Replace(label) + ">"
	},
	Fence: func(_, code string) string { return "```\n" + code + "\n```" },
}

// quiet takes the meaning from <users/all>, by which everybody is called, and
// from links that the text only quotes.
var quiet = strings.NewReplacer("<", "<\u200b").Replace

// calm is quiet for text that goes without marks, where code is not to grow.
var calm = strings.NewReplacer("<users/", "<\u200busers/").Replace

var target = regexp.MustCompile(`^spaces/[A-Za-z0-9_-]+(/threads/[A-Za-z0-9_.-]+)?$`)

// CheckTarget wants a space, or a thread of one.
func (h Webhook) CheckTarget(id string) error {
	switch {
	case !target.MatchString(id):
		return errors.New("a Google Chat space is spaces/SPACE, a thread spaces/SPACE/threads/THREAD")
	case h.space != "" && id != h.space && !strings.HasPrefix(id, h.space+"/"):
		return errors.New("this webhook writes to its own space only, " + h.space)
	}
	return nil
}

// Send sends a text.
func (h Webhook) Send(ctx context.Context, to string, part channel.Part, key string) (channel.Receipt, error) {
	text := part.Text
	if !part.Markup { // Chat reads its markup all the same
		text = calm(text)
	}
	return h.post(ctx, to, map[string]any{"text": text}, key)
}

// SendPhoto shows a picture by its address on a card, below its caption.
func (h Webhook) SendPhoto(ctx context.Context, to string, p channel.Photo, key string) (channel.Receipt, error) {
	message := map[string]any{"cardsV2": []any{map[string]any{"cardId": "photo", "card": map[string]any{"sections": []any{
		map[string]any{"widgets": []any{map[string]any{"image": map[string]any{"imageUrl": p.URL}}}}}}}}}
	if p.Caption.Text != "" {
		message["text"] = p.Caption.Text
		if !p.Caption.Markup {
			message["text"] = calm(p.Caption.Text)
		}
	}
	return h.post(ctx, to, message, key)
}

// Identify sends a message without content, which the API refuses as invalid
// for a webhook that exists and as forbidden for one that does not: a webhook
// has no request that only looks. Nothing is shown in the space.
func (h Webhook) Identify(ctx context.Context) (channel.Identity, error) {
	_, err := h.post(ctx, h.space, map[string]any{}, "")
	var e *channel.Error
	switch {
	case errors.As(err, &e) && e.Code == "INVALID_ARGUMENT":
		return channel.Identity{ID: h.space, Name: "webhook", Details: map[string]string{"checked": "the address is accepted; the platform does not tell the webhook's name"}}, nil
	case err != nil:
		return channel.Identity{}, err
	}
	return channel.Identity{ID: h.space, Name: "webhook"}, nil
}

func (h Webhook) post(ctx context.Context, to string, message map[string]any, key string) (channel.Receipt, error) {
	q := url.Values{}
	for name, values := range h.query {
		q[name] = values
	}
	if key != "" {
		q.Set("requestId", key)
	}
	threaded := strings.Contains(to, "/threads/")
	if threaded { // where the thread is gone nothing is posted: a new one is another place, with other readers
		message["thread"] = map[string]string{"name": to}
		q.Set("messageReplyOption", "REPLY_MESSAGE_OR_FAIL")
	}
	response, err := h.api.Post(ctx, "/v1/"+h.space+"/messages?"+q.Encode(), nil, message)
	if err != nil {
		return channel.Receipt{}, err
	}
	var answer struct {
		Name  string
		Error struct {
			Status  string
			Message string
		}
	}
	if json.Unmarshal(response.Body, &answer) == nil && response.Status == http.StatusOK && answer.Name != "" {
		return channel.Receipt{MessageID: answer.Name}, nil
	}
	e := h.api.Refusal(response, answer.Error.Status, answer.Error.Message)
	switch status := answer.Error.Status; {
	case status == "NOT_FOUND" && threaded:
		e.Do = "nothing was posted: the thread is gone, or the webhook is (channel_status tells); " + h.space + " starts a new thread"
	case status == "PERMISSION_DENIED" || status == "NOT_FOUND" || status == "UNAUTHENTICATED":
		e.BadLogin, e.Do = true, "an operator checks the webhook's address; the webhook may have been removed"
	case status == "RESOURCE_EXHAUSTED":
		e.RetryAfter = max(e.RetryAfter, time.Second) // one message a second for a space
	}
	return channel.Receipt{}, e
}
