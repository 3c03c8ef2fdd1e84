// Package channel is what all messaging platforms have in common: the small
// interface that each of them implements (Platform), what a failed send means
// (Error), markdown and its cutting into parts (Parse, Split), and the one way
// their HTTP is spoken (API).
//
// A platform package, such as telegram, is a thin client of the few requests
// that sending needs. The platforms' own Go libraries were looked at and left:
// most of them retry by themselves, hide whether a request left this host, or
// put the token into the text of an error; each of the three breaks a promise
// that is made here.
//
// Nothing in here stores anything, decides who may send, or sends twice: a
// request is made once, and its fate is told as exactly as it is known.
package channel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Account is one configured bot or app. Secrets are resolved already.
type Account struct {
	BaseURL string // the platform's API; empty: the public one
	ID      string // what is no secret, such as WhatsApp's phone number id
	Secret  string // token, app secret or webhook address
	Second  string // a second secret where the platform has one, such as a signing key
}

// Platform sends to one messaging platform with one account. Its methods
// return an *Error, make one attempt, and are safe for concurrent use. key is
// the same for every attempt at the same message: a UUID, which a platform
// that knows such keys passes on.
type Platform interface {
	Traits() Traits
	// CheckTarget says in a sentence why an id can be none of the platform's.
	CheckTarget(id string) error
	Send(ctx context.Context, to string, part Part, key string) (Receipt, error)
	SendPhoto(ctx context.Context, to string, photo Photo, key string) (Receipt, error)
	// Identify asks the platform who the account is.
	Identify(ctx context.Context) (Identity, error)
}

// StickerSender is a platform with stickers.
type StickerSender interface {
	// CheckSticker says in a sentence what a sticker lacks.
	CheckSticker(s Sticker) error
	SendSticker(ctx context.Context, to string, s Sticker, key string) (Receipt, error)
}

// Traits are a platform's limits, from its public documentation.
type Traits struct {
	Name    string // as the argument "channel" has it
	Text    Limit
	Caption Limit // of a photo; zero: captions are sent as text
	Format  Format
	// KeyLife is how long the platform recognises a repeated key; zero: it
	// knows none, and what may have been sent must not be sent again.
	KeyLife time.Duration
	// PhotoBytes is the largest photo; PhotoByURL says that the platform
	// fetches photos itself and takes no uploads; zero PhotoBytes: no photos.
	PhotoBytes int64
	PhotoByURL bool
	PhotoTypes []string // media types it takes
}

// Part is one message of text.
type Part struct {
	Text   string // in the platform's format
	Markup bool   // false: Text is plain
	Plain  string // the same without format, for when the platform rejects Text
}

// Photo is a picture. Data is there, checked, also when URL is.
type Photo struct {
	URL           string // public https address; empty for an uploaded one
	Data          []byte
	MediaType     string
	Width, Height int // pixels; 0 when the format is unknown
	Caption       Part
}

// Name is a file name for the picture.
func (p Photo) Name() string { return "photo" + extensions[p.MediaType] }

var extensions = map[string]string{"image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp"}

// Sticker is a platform's sticker: LINE's package and sticker, Telegram's file.
type Sticker struct{ Package, ID string }

// Receipt is what the platform says of a message that it took. Accepted is not
// delivered: no platform promises that in its answer.
type Receipt struct {
	MessageID string
	// Repeated is true when the platform recognised the key of an earlier
	// attempt and sent nothing again.
	Repeated bool
}

// Identity is who the account is.
type Identity struct {
	ID   string
	Name string
	// Details are further facts that the platform tells, such as a quota.
	Details map[string]string
}

// CheckPhoto says in a sentence why the platform would not take a photo.
func (t Traits) CheckPhoto(p Photo) error {
	switch {
	case t.PhotoBytes == 0:
		return fmt.Errorf("%s takes no photos here; send a link as text", t.Name)
	case t.PhotoByURL && !strings.HasPrefix(p.URL, "https://"):
		return fmt.Errorf("%s fetches photos itself: give an https:// address that everyone can read", t.Name)
	case int64(len(p.Data)) > t.PhotoBytes:
		return fmt.Errorf("the picture has %d bytes, and %s takes at most %d", len(p.Data), t.Name, t.PhotoBytes)
	case !slices.Contains(t.PhotoTypes, p.MediaType):
		return fmt.Errorf("the content is %s, and %s takes %s", p.MediaType, t.Name, strings.Join(t.PhotoTypes, ", "))
	}
	return nil
}
