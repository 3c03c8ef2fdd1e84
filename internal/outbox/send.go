package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"pawgate/internal/client/channel"
	"pawgate/internal/fault"
)

// Message is what to send. One of Text, Photo and Sticker is set; Caption goes
// with a photo.
type Message struct {
	Agent   string
	Channel string
	Chat    string // id or configured name
	// Key makes a repetition recognisable; empty: the message itself does, for
	// SameFor.
	Key     string
	Text    string // markdown
	Photo   *channel.Photo
	Caption string // markdown
	Sticker *channel.Sticker
}

// SameFor is how long a message without a key of its own, once sent, is taken
// for a repetition. One that is not sent whole is gone on with for a day.
const SameFor = 2 * time.Minute

// maxCall bounds a call without a deadline of its own.
const maxCall = 25 * time.Second

// Sent is a message that the platform accepted whole. It does not promise that
// anybody got it.
type Sent struct {
	Channel    string   `json:"channel"`
	ChatID     string   `json:"chat_id"`
	State      string   `json:"state"` // accepted
	MessageIDs []string `json:"message_ids"`
	Parts      int      `json:"parts"`
	Key        string   `json:"idempotency_key,omitzero"`
	// Repeated is true when an earlier call had sent all of it already.
	Repeated bool   `json:"repeated,omitzero"`
	Note     string `json:"note,omitzero"`
}

// Notify sends one text to a channel of an agent. name empty is the only
// channel; chat empty is the chat named "notify", or the only one. The same key
// is sent once, however often it is tried.
func (o *Outbox) Notify(ctx context.Context, agent, name, chat, text, key string) (Sent, error) {
	account, err := o.Account(ctx, agent, name)
	if err != nil {
		return Sent{}, err
	}
	return o.Send(ctx, Message{Agent: agent, Channel: account.Channel, Chat: chat, Text: text, Key: key})
}

// Send sends a message, or goes on with it. Refusals and failures are faults
// that say what was sent and whether a repetition helps.
func (o *Outbox) Send(ctx context.Context, m Message) (Sent, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, maxCall)
		defer cancel()
	}
	account, err := o.Account(ctx, m.Agent, m.Channel)
	if err != nil {
		return Sent{}, err
	}
	p, err := o.Open(ctx, account, false)
	if err != nil {
		return Sent{}, err
	}
	chat, err := o.allow(ctx, p, m.Agent, m.Channel, m.Chat)
	if err != nil {
		return Sent{}, err
	}
	m.Chat = chat
	plain, err := o.plain(ctx, m.Agent, m.Channel, chat)
	if err != nil {
		return Sent{}, err
	}
	parts, err := m.parts(p, plain)
	if err != nil {
		return Sent{}, err
	}
	d := &delivery{Outbox: o, account: account, platform: p, message: m}
	if err := d.claim(ctx, parts); err != nil {
		return Sent{}, err
	}
	return d.run(ctx)
}

// parts are the messages that a message becomes.
func (m Message) parts(p channel.Platform, plain bool) ([]part, error) {
	traits := p.Traits()
	format := traits.Format
	if plain {
		format = channel.Format{}
	}
	switch {
	case m.Sticker != nil:
		stickers, ok := p.(channel.StickerSender)
		if !ok {
			return nil, fault.Invalid("channel", "%s has no stickers; use telegram or line", traits.Name)
		}
		if err := stickers.CheckSticker(*m.Sticker); err != nil {
			return nil, fault.Invalid("sticker_id", "%s", err.Error())
		}
		return []part{{Kind: "sticker", Body: m.Sticker.ID}}, nil
	case m.Photo != nil:
		if err := traits.CheckPhoto(*m.Photo); err != nil {
			return nil, fault.Invalid("url_or_path", "%s", err.Error())
		}
		return photoParts(m.Caption, traits, format), nil
	}
	texts := channel.Split(channel.Parse(m.Text), format, traits.Text, traits.Text)
	if len(texts) == 0 {
		return nil, fault.Invalid("text", "text is blank; there is nothing to send")
	}
	if len(texts) > maxParts {
		return nil, fault.Invalid("text", "text would be %d messages on %s; send at most %d, or a link to the text", len(texts), traits.Name, maxParts)
	}
	return textParts(texts), nil
}

// maxParts keeps one call from flooding a chat.
const maxParts = 20

func textParts(texts []channel.Part) []part {
	parts := make([]part, len(texts))
	for i, t := range texts {
		parts[i] = part{Kind: "text", Body: t.Text, Markup: t.Markup, Plain: t.Plain}
	}
	return parts
}

// photoParts are the photo with what fits its caption, and the rest as text.
func photoParts(caption string, traits channel.Traits, format channel.Format) []part {
	photo := part{Kind: "photo"}
	first := traits.Caption
	if first.Max == 0 {
		first = traits.Text
	}
	texts := textParts(channel.Split(channel.Parse(caption), format, first, traits.Text))
	if traits.Caption.Max > 0 && len(texts) > 0 && traits.Caption.Unit.Count(texts[0].Plain) <= traits.Caption.Max {
		photo.Body, photo.Markup, photo.Plain = texts[0].Body, texts[0].Markup, texts[0].Plain
		texts = texts[1:]
	}
	return append([]part{photo}, texts...)
}

// hash identifies a message: to send another under the same key is a mistake.
func (m Message) hash() string {
	h := sha256.New()
	write := func(s string) { fmt.Fprintf(h, "%d:%s;", len(s), s) }
	for _, s := range []string{m.Channel, m.Chat, m.Text, m.Caption} {
		write(s)
	}
	if m.Photo != nil {
		write(m.Photo.URL)
		if m.Photo.URL == "" {
			write(string(m.Photo.Data))
		}
	}
	if m.Sticker != nil {
		write(m.Sticker.Package)
		write(m.Sticker.ID)
	}
	return hex.EncodeToString(h.Sum(nil))
}
