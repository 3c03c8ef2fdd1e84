package channel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"pawgate/internal/safehttp"
)

// API speaks HTTP with one platform's server and no other. Redirects are
// refused, so a token stays where it belongs.
type API struct {
	name    string
	base    string
	secrets []string
	header  http.Header
	http    *safehttp.Client
}

// sendTimeout covers one request. The deadline of a call may be earlier.
const sendTimeout = 15 * time.Second

// maxAnswer bounds a platform's answer, in bytes.
const maxAnswer = 1 << 20

// NewAPI is the server at base, with headers for every request. secrets are
// taken out of whatever the platform says. It does no I/O; the error is for a
// base that is no URL.
func NewAPI(name, base string, header http.Header, secrets []string, options ...safehttp.Option) (*API, error) {
	base = strings.TrimRight(base, "/")
	client, err := safehttp.Fixed(base, safehttp.Policy{Timeout: sendTimeout, MaxBytes: maxAnswer, MaxRedirects: -1}, options...)
	if err != nil {
		return nil, err
	}
	return &API{name: name, base: base, header: header, secrets: secrets, http: client}, nil
}

// Base is the server's address.
func (a *API) Base() string { return a.base }

// Bearer is the header of a token (RFC 6750 §2.1).
func Bearer(token string) http.Header {
	return http.Header{"Authorization": {"Bearer " + token}}
}

// Get asks for path.
func (a *API) Get(ctx context.Context, path string) (*safehttp.Response, error) {
	return a.do(ctx, safehttp.Request{URL: a.base + path}, nil)
}

// Post sends a JSON body to path, with more headers than the usual ones. Any
// answer is a response; the error is an *Error about a request without one.
func (a *API) Post(ctx context.Context, path string, more http.Header, body any) (*safehttp.Response, error) {
	encoded, err := Encode(body)
	if err != nil {
		return nil, &Error{Platform: a.name, Fate: Refused, Says: "the request cannot be written", cause: err}
	}
	h := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	for name, values := range more {
		h[name] = values
	}
	return a.do(ctx, safehttp.Request{Method: http.MethodPost, URL: a.base + path, Body: encoded}, h)
}

// Encode is JSON without the escapes that only a page of HTML needs: six bytes
// for each <, > and & are counted by platforms that bound a request.
func Encode(body any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(body)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// File is an uploaded part of a form.
type File struct {
	Field, Name, MediaType string
	Data                   []byte
}

// PostForm sends a multipart form (RFC 7578) with one file.
func (a *API) PostForm(ctx context.Context, path string, fields map[string]string, file File) (*safehttp.Response, error) {
	var body bytes.Buffer // which no write to can fail
	form := multipart.NewWriter(&body)
	for name, value := range fields {
		_ = form.WriteField(name, value)
	}
	w, _ := form.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {fmt.Sprintf(`form-data; name=%q; filename=%q`, file.Field, file.Name)},
		"Content-Type":        {file.MediaType},
	})
	_, _ = w.Write(file.Data)
	_ = form.Close()
	h := http.Header{"Content-Type": {form.FormDataContentType()}}
	return a.do(ctx, safehttp.Request{Method: http.MethodPost, URL: a.base + path, Body: body.Bytes()}, h)
}

func (a *API) do(ctx context.Context, r safehttp.Request, header http.Header) (*safehttp.Response, error) {
	r.Header = http.Header{}
	for _, h := range []http.Header{a.header, header} {
		for name, values := range h {
			r.Header[name] = values
		}
	}
	response, err := a.http.Do(ctx, r)
	if err == nil {
		return response, nil
	}
	// The message of a safehttp.Error names the host only; its cause may quote
	// the URL, which holds Telegram's token, and stays behind.
	e := &Error{Platform: a.name, Fate: Unknown, Says: "the request broke off"}
	var broke *safehttp.Error
	if errors.As(err, &broke) {
		e.Says, e.Code = broke.Error(), string(broke.Reason)
		if !broke.Sent {
			e.Fate, e.Do = NotSent, "try again; if it lasts, an operator checks the channel's address"
		}
	}
	return nil, e
}

// Refusal is the Error of an answer that is no success, by its status. says is
// the platform's own text, code its own code (empty: the status). Platforms
// refine it by their codes. A status below 400 is of unknown fate: the answer
// cannot be read.
func (a *API) Refusal(r *safehttp.Response, code, says string) *Error {
	e := &Error{Platform: a.name, Code: code, Says: shorten(says, a.secrets), Fate: Refused}
	if code == "" {
		e.Code = strconv.Itoa(r.Status)
	}
	switch {
	case r.Status == http.StatusTooManyRequests:
		e.Fate, e.Limited, e.Do = NotSent, true, "wait, then send it again"
		e.RetryAfter = RetryAfter(r.Header)
	case r.Status == http.StatusUnauthorized:
		e.BadLogin, e.Do = true, "an operator checks the channel's secret"
	case r.Status == http.StatusServiceUnavailable: // RFC 9110 §15.6.4: it does not handle requests now
		e.Fate, e.Do = NotSent, "try again later"
		e.RetryAfter = RetryAfter(r.Header)
	case r.Status >= 500 || r.Status == http.StatusRequestTimeout || r.Status < 400:
		e.Fate = Unknown
	}
	return e
}

// RetryAfter reads the header of that name (RFC 9110 §10.2.3): seconds, with a
// fraction on some platforms, or a time. Zero: there is none.
func RetryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return Seconds(seconds)
	}
	at, err := http.ParseTime(text)
	sent, errSent := http.ParseTime(h.Get("Date"))
	if err != nil || errSent != nil {
		return 0
	}
	return max(at.Sub(sent), 0)
}

// Seconds is a wait told as a number of seconds, up to a month.
func Seconds(n float64) time.Duration {
	const month = 31 * 24 * 3600
	return time.Duration(min(max(n, 0), month) * float64(time.Second))
}
