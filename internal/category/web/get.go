package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/client/search"
	"pawgate/internal/fault"
	"pawgate/internal/page"
	"pawgate/internal/safehttp"
)

// maxURL is the longest address, in bytes; safehttp takes no longer one.
const maxURL = 8192

// source is what the tools that read an address have in common.
type source struct {
	URL        string `json:"url" doc:"http(s) address" maxlen:"8192"`
	TTLSeconds *int   `json:"ttl_seconds,omitempty" doc:"Oldest copy to take; 86400 if left out, 0: ask again" min:"0" max:"2592000"`
	ObeyRobots bool   `json:"obey_robots,omitempty" doc:"Heed robots.txt"`
}

const defaultTTL = 24 * time.Hour

func (s source) ttl() time.Duration {
	if s.TTLSeconds == nil {
		return defaultTTL
	}
	return time.Duration(*s.TTLSeconds) * time.Second
}

// fetched is a page, from the server or from the caller's copy.
type fetched struct {
	copied
	asked  *url.URL
	cached bool
}

// address is the URL that the page came from.
func (f fetched) address() *url.URL {
	if u, err := url.Parse(f.URL); err == nil {
		return u
	}
	return f.asked
}

// get reads an address: the caller's own copy if it is young enough, else the
// server, which is asked only for what changed since.
func (w web) get(ctx context.Context, who caller.Caller, s source) (fetched, error) {
	u, err := safehttp.CheckURL(s.URL)
	if err != nil {
		return fetched{}, explainAddress(err)
	}
	u.Host = strings.TrimSuffix(u.Host, map[string]string{"http": ":80", "https": ":443"}[u.Scheme]) // one page, one name
	own, err := w.cached(ctx, who, cacheKey(usePage, u))
	if err != nil {
		return fetched{}, err
	}
	if own != nil && s.ttl() > 0 && w.now().Sub(own.CheckedAt) <= s.ttl() {
		return fetched{*own, u, true}, nil
	}
	if s.ObeyRobots || w.settings.ObeyRobots {
		if err := w.checkRobots(ctx, who, u); err != nil {
			return fetched{}, err
		}
	}
	response, err := w.request(ctx, u, own)
	if err != nil {
		return fetched{}, withCopy(explainAddress(err), own, w.now())
	}
	return w.take(ctx, who, u, own, response)
}

// explainAddress makes a malformed address a broken argument. Every other
// error of safehttp is a fault of its own.
func explainAddress(err error) error {
	var e *safehttp.Error
	if errors.As(err, &e) && e.Reason == safehttp.BadURL && e.Redirects == 0 {
		return fault.Invalid("url", "%s", e.Error())
	}
	return err
}

const accept = "text/html,application/xhtml+xml,application/json;q=0.9,text/plain;q=0.9,application/pdf;q=0.8,*/*;q=0.5"

// request asks the server, with the validators of the copy if there are any.
func (w web) request(ctx context.Context, u *url.URL, own *copied) (*safehttp.Response, error) {
	header := http.Header{"Accept": {accept}}
	conditional := own != nil && (own.ETag != "" || own.LastModified != "")
	if conditional {
		if own.ETag != "" {
			header.Set("If-None-Match", own.ETag)
		}
		if own.LastModified != "" {
			header.Set("If-Modified-Since", own.LastModified)
		}
	}
	r, err := w.http.Do(ctx, safehttp.Request{URL: u.String(), Header: header})
	var e *safehttp.Error
	if conditional && errors.As(err, &e) && e.Reason == safehttp.BlockedRedirect {
		// Validators do not cross hosts; without them the redirect is followed.
		return w.http.Do(ctx, safehttp.Request{URL: u.String(), Header: http.Header{"Accept": {accept}}})
	}
	return r, err
}

// take turns an answer into a page and keeps it.
func (w web) take(ctx context.Context, who caller.Caller, u *url.URL, own *copied, r *safehttp.Response) (fetched, error) {
	now, key := w.now().UTC().Truncate(time.Millisecond), cacheKey(usePage, u)
	if r.Status == http.StatusNotModified && own != nil {
		own.CheckedAt = now
		return fetched{*own, u, true}, w.confirm(ctx, who, key, now)
	}
	if r.Status < 200 || r.Status > 299 {
		return fetched{}, withCopy(w.statusFault(r), own, now)
	}
	c := copied{
		URL: r.URL.String(), Status: int16(r.Status), ContentType: storable(r.Header.Get("Content-Type")), ETag: storable(r.Header.Get("ETag")),
		LastModified: storable(r.Header.Get("Last-Modified")), Body: r.Body, Truncated: r.Truncated, FetchedAt: now, CheckedAt: now,
	}
	if r.Status != http.StatusOK || noStore(r.Header) {
		var err error
		if own != nil {
			err = w.forget(ctx, who, key)
		}
		return fetched{c, u, false}, err
	}
	return fetched{c, u, false}, w.keep(ctx, who, key, c)
}

// noStore reads the one cache directive that binds a private cache which asks
// again when told to (RFC 9111 §5.2.2.5).
func noStore(h http.Header) bool {
	for _, value := range h.Values("Cache-Control") {
		for directive := range strings.SplitSeq(strings.ToLower(value), ",") {
			if strings.TrimSpace(directive) == "no-store" {
				return true
			}
		}
	}
	return false
}

// storable is a header's value made fit for Postgres, of bounded length.
func storable(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
	if len(s) > 1024 {
		return ""
	}
	return s
}

// maxErrorText is how much of an error page is shown, in characters.
const maxErrorText = 1000

// statusFault words an answer that is no page.
func (w web) statusFault(r *safehttp.Response) *fault.Fault {
	host := r.URL.Host
	status := fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status))
	wait := search.RetryAfter(r.Header, w.now())
	var f *fault.Fault
	switch {
	case r.Status == http.StatusNotFound, r.Status == http.StatusGone:
		f = fault.New(fault.NotFound, "%s has no such page (%s)", host, status)
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden, r.Status == http.StatusProxyAuthRequired:
		f = fault.New("site_refused", "%s refuses to show this page (%s): it needs a login or does not serve programs", host, status)
	case r.Status == http.StatusTooManyRequests:
		f = fault.Retry(fault.RateLimited, max(wait, time.Minute), "%s allows no more requests for now (%s)", host, status)
	case r.Status >= 500:
		f = fault.Retry(fault.Unavailable, max(wait, 30*time.Second), "%s has a failure of its own (%s)", host, status)
	default:
		f = fault.New("http_error", "%s answered %s", host, status)
	}
	f.With("http_status", r.Status)
	if text := w.errorText(r); text != "" {
		f.With("content", page.Fence(text))
	}
	return f
}

// errorText is the beginning of what an error page says.
func (w web) errorText(r *safehttp.Response) string {
	kind := kindOf(r.Header.Get("Content-Type"), r.Body)
	text := ""
	switch kind {
	case kindHTML:
		decoded, _ := page.Decode(r.Body[:min(len(r.Body), 256<<10)], r.Header.Get("Content-Type"))
		if d, err := page.Parse(decoded, r.URL); err == nil {
			text = page.Text(d.Body())
		}
	case kindText, kindJSON, kindXML:
		text, _ = page.Decode(r.Body[:min(len(r.Body), 8<<10)], r.Header.Get("Content-Type"))
		text = page.Visible(strings.TrimSpace(text))
	}
	if runes := []rune(text); len(runes) > maxErrorText {
		text = string(runes[:maxErrorText]) + "…"
	}
	return text
}

// withCopy adds to a failure that the caller has an older copy, and how to
// read it.
func withCopy(err error, own *copied, now time.Time) error {
	f, ok := fault.Of(err)
	if own == nil || !ok {
		return err
	}
	age := int(now.Sub(own.CheckedAt)/time.Second) + 60
	kept := *f
	kept.Message += fmt.Sprintf("; a copy of %s is kept, ask with ttl_seconds %d or more to read it", own.CheckedAt.UTC().Format(time.RFC3339), age)
	return &kept
}
