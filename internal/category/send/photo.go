package send

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	_ "image/gif"  // for the size of a picture
	_ "image/jpeg" // likewise
	_ "image/png"  // likewise
	"net/http"
	"net/url"
	"strings"

	"pawgate/internal/caller"
	"pawgate/internal/client/channel"
	"pawgate/internal/fault"
	"pawgate/internal/outbox"
	"pawgate/internal/safehttp"
)

type photoArgs struct {
	to
	Source  string `json:"url_or_path" doc:"URL or data: URI"`
	Caption string `json:"caption,omitempty" doc:"Markdown" maxlen:"4000"`
	once
}

// photo sends a picture. A path is refused: no tool reads the host's files for
// a chat.
func (s send) photo(ctx context.Context, who caller.Caller, a photoArgs) (outbox.Sent, error) {
	if _, err := s.outbox.Account(ctx, who.Agent, a.Channel); err != nil {
		return outbox.Sent{}, err // before anything is fetched
	}
	p, err := s.picture(ctx, a.Source)
	if err != nil {
		return outbox.Sent{}, err
	}
	return s.outbox.Send(ctx, outbox.Message{Agent: who.Agent, Channel: a.Channel, Chat: string(a.ChatID), Key: a.Key, Photo: &p, Caption: a.Caption})
}

func (s send) picture(ctx context.Context, source string) (channel.Photo, error) {
	scheme, rest, _ := strings.Cut(source, ":")
	var p channel.Photo
	switch strings.ToLower(scheme) {
	case "data":
		data, err := dataURI(rest)
		if err != nil {
			return p, err
		}
		p.Data = data
	case "http", "https":
		response, err := s.http.Do(ctx, safehttp.Request{URL: source, Whole: true})
		if err != nil {
			return p, err
		}
		if response.Status != http.StatusOK {
			return p, fault.New(fault.NotFound, "%s answered %d instead of a picture; check url_or_path", response.URL.Host, response.Status)
		}
		p.URL, p.Data = source, response.Body
	default:
		return p, fault.Invalid("url_or_path", "url_or_path is an https:// address or a data: URI; files of this host are not sent")
	}
	// What it is, is decided by its content: a name and a header may say anything.
	p.MediaType, _, _ = strings.Cut(http.DetectContentType(p.Data), ";")
	if !strings.HasPrefix(p.MediaType, "image/") {
		return p, fault.Invalid("url_or_path", "url_or_path leads to %s, which is no picture", p.MediaType)
	}
	if size, _, err := image.DecodeConfig(bytes.NewReader(p.Data)); err == nil {
		p.Width, p.Height = size.Width, size.Height
	}
	return p, nil
}

// dataURI is the content of a data: URI (RFC 2397), without its scheme.
func dataURI(rest string) ([]byte, error) {
	head, body, found := strings.Cut(rest, ",")
	plain, err := url.PathUnescape(body)
	data := []byte(plain)
	if err == nil && strings.HasSuffix(strings.ToLower(head), ";base64") {
		data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(plain), ""))
	}
	if !found || err != nil || len(data) == 0 {
		return nil, fault.Invalid("url_or_path", "the data: URI cannot be read; write data:image/png;base64,… with standard base64")
	}
	return data, nil
}
