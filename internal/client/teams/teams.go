// Package teams sends through an incoming webhook of Microsoft Teams: one made
// with Workflows, or one of the older Office 365 connectors
// (learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors, Adaptive
// Cards in Teams).
//
// A webhook writes to its own channel or chat only, knows no idempotency key,
// answers with no message id and cannot be asked who it is. Its address is its
// secret, so no URL leaves this package. A text goes as an Adaptive Card. One
// request needs no SDK.
package teams

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"pawgate/internal/client/channel"
	"pawgate/internal/safehttp"
)

// Channel is the one destination that a webhook has.
const Channel = "channel"

// Webhook is one webhook. It implements channel.Platform.
type Webhook struct {
	api  *channel.API
	path string
}

// hosts are where webhooks are: connectors, and the two homes of Workflows.
var hosts = []string{".webhook.office.com", ".logic.azure.com", ".api.powerplatform.com"}

// New is the webhook whose whole address is the account's secret. It does no
// I/O.
func New(a channel.Account, options ...safehttp.Option) (channel.Platform, error) {
	u, err := url.Parse(a.Secret)
	if err != nil || u.Scheme != "https" || u.User != nil || len(u.Path) < 2 || !ours(u.Hostname()) {
		return nil, errors.New("the secret is no webhook's address; one begins with https:// and is of webhook.office.com, logic.azure.com or api.powerplatform.com")
	}
	api, err := channel.NewAPI("teams", cmp.Or(a.BaseURL, "https://"+u.Host), nil, []string{a.Secret, u.RequestURI(), u.Path, u.Query().Get("sig")}, options...)
	return Webhook{api, u.RequestURI()}, err
}

func ours(host string) bool {
	for _, suffix := range hosts {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// Traits: a message has at most 28 KB, which the service measures larger than
// what is sent; quotes and line breaks grow in JSON besides. A picture is shown
// by its address.
func (Webhook) Traits() channel.Traits {
	return channel.Traits{
		Name:       "teams",
		Text:       channel.Limit{Max: 4000, Unit: channel.Bytes},
		Format:     format,
		PhotoBytes: 10 << 20,
		PhotoByURL: true,
		PhotoTypes: []string{"image/jpeg", "image/png", "image/gif"},
	}
}

// format is the part of markdown that a TextBlock reads: bold, italic, links
// and lists.
var format = channel.Format{
	Text:   escape,
	Code:   escape,
	Bold:   channel.Wrap{Before: "**", After: "**"},
	Italic: channel.Wrap{Before: "_", After: "_"},
	Link:   func(label, address string) string { return "[" + label + "](" + address + ")" },
}

// escape keeps a text's own characters from being read as markup.
var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, "`", "\\`", `<`, `\<`, `#`, `\#`).Replace

// CheckTarget wants the webhook's own channel.
func (Webhook) CheckTarget(id string) error {
	if id != Channel {
		return errors.New("a Teams webhook writes to its own channel only; the chat is " + Channel)
	}
	return nil
}

// Send sends a text. A TextBlock joins lines, so each becomes a paragraph.
func (h Webhook) Send(ctx context.Context, _ string, part channel.Part, _ string) (channel.Receipt, error) {
	return h.post(ctx, textBlock(part))
}

func textBlock(part channel.Part) map[string]any {
	text := part.Text
	if !part.Markup {
		text = escape(text)
	}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\n\n", "\n"), "\n", "\n\n")
	return map[string]any{"type": "TextBlock", "text": text, "wrap": true}
}

// SendPhoto shows a picture by its address, below its caption.
func (h Webhook) SendPhoto(ctx context.Context, _ string, p channel.Photo, _ string) (channel.Receipt, error) {
	image := map[string]any{"type": "Image", "url": p.URL, "altText": p.Caption.Plain}
	if p.Caption.Text == "" {
		return h.post(ctx, image)
	}
	return h.post(ctx, textBlock(p.Caption), image)
}

// Identify cannot ask: whatever a webhook is sent, it shows.
func (h Webhook) Identify(context.Context) (channel.Identity, error) {
	return channel.Identity{}, &channel.Error{Platform: "teams", Fate: channel.Refused, Code: "not_asked",
		Says: "a webhook of Teams cannot be asked without a message being shown", Do: "send a message to see whether it works"}
}

// post sends a card. Workflows answer 202, connectors 200 with "1", and both
// may answer 200 with the failure of a server behind them in words.
func (h Webhook) post(ctx context.Context, body ...any) (channel.Receipt, error) {
	card := map[string]any{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
		"msteams": map[string]string{"width": "Full"}, "body": body}
	response, err := h.api.Post(ctx, h.path, nil, map[string]any{"type": "message", "attachments": []any{
		map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": nil, "content": card}}})
	if err != nil {
		return channel.Receipt{}, err
	}
	said := strings.TrimSpace(string(response.Body))
	switch response.Status {
	case http.StatusAccepted, http.StatusNoContent:
		return channel.Receipt{}, nil
	case http.StatusOK:
		behind := status(said)
		if behind == 0 && (said == "1" || said == "") {
			return channel.Receipt{}, nil
		}
		response.Status = cmp.Or(behind, http.StatusBadGateway)
	}
	return channel.Receipt{}, h.refusal(response, said)
}

// status reads "… endpoint returned HTTP error 429 …"; 0: there is none.
func status(said string) int {
	_, after, found := strings.Cut(said, "HTTP error ")
	if !found || len(after) < 3 {
		return 0
	}
	n, err := strconv.Atoi(after[:3])
	if err != nil {
		return 0
	}
	return n
}

func (h Webhook) refusal(response *safehttp.Response, said string) *channel.Error {
	e := h.api.Refusal(response, strconv.Itoa(response.Status), said)
	switch response.Status {
	case http.StatusRequestEntityTooLarge:
		e.Do = "the message is too large; send less at once"
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		e.BadLogin, e.Do = true, "an operator checks the webhook's address; the webhook may have been removed"
	}
	return e
}
