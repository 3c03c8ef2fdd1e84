package safehttp

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"
)

// Request is what to ask for.
type Request struct {
	Method string // GET when empty
	URL    string // as the caller wrote it; CheckURL reads it
	Header http.Header
	Body   []byte
	// Whole refuses a body over MaxBytes with TooLarge instead of cutting it:
	// half a picture is no use.
	Whole bool
}

// Response is an answer with its body read.
type Response struct {
	Status int
	Header http.Header
	URL    *url.URL // where the answer came from, after redirects
	Body   []byte   // decompressed, at most MaxBytes
	// Truncated is true when the body was longer than MaxBytes and was cut.
	Truncated bool
	Redirects int
}

// Do makes the request, follows redirects within the policy, and reads the
// body. An answer with any status is a Response; the error is an *Error.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	h, err := c.firstHop(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.policy.Timeout)
	defer cancel()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})

	seen := map[string]bool{}
	for {
		seen[h.key()] = true
		response, next, err := c.step(ctx, h)
		switch {
		case err != nil:
			return nil, explain(ctx, h, sent.Load(), err)
		case next == nil:
			return response, nil
		case seen[next.key()]:
			return nil, explain(ctx, next, true, refuse(TooManyRedirects, next.url.Host, "%s redirects in a loop", next.url.Host))
		}
		h = next
	}
}

// hop is one request of a chain.
type hop struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	whole  bool
	count  int  // redirects before this one
	opened bool // entitled to the operator's list
}

// key identifies a hop for the detection of loops. Without cookies the same
// request gets the same redirect.
func (h *hop) key() string {
	u := *h.url
	u.Fragment, u.RawFragment = "", ""
	return h.method + " " + u.String()
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// notForwarded are the headers that are the connection's business, or that
// would choose another server than the URL does.
var notForwarded = []string{"Host", "Connection", "Proxy-Connection", "Proxy-Authorization", "Keep-Alive", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Accept-Encoding", "Expect"}

func (c *Client) firstHop(r Request) (*hop, error) {
	u, e := checkURL(r.URL)
	if e != nil {
		return nil, e
	}
	h := &hop{method: cmp.Or(r.Method, "GET"), url: u, header: http.Header{}, body: r.Body, whole: r.Whole}
	h.opened = c.base != nil || c.allow.opens(u)
	if !slices.Contains(methods, h.method) {
		return nil, refuse(BadRequest, u.Host, "the method must be one of %s", strings.Join(methods, ", "))
	}
	h.header.Set("User-Agent", c.policy.UserAgent)
	h.header.Set("Accept", "*/*")
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, invalidValue) {
			return nil, refuse(BadRequest, u.Host, "a header has a name or value that HTTP does not allow")
		}
		h.header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	maps.DeleteFunc(h.header, func(name string, _ []string) bool { return slices.Contains(notForwarded, name) })
	h.header.Set("Accept-Encoding", "gzip, deflate")
	return h, nil
}

func invalidValue(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }

// step makes one hop: it returns the response, or the hop to make next.
func (c *Client) step(ctx context.Context, h *hop) (*Response, *hop, error) {
	if e := c.admit(h); e != nil {
		return nil, nil, e
	}
	request, err := http.NewRequestWithContext(ctx, h.method, h.url.String(), bytes.NewReader(h.body))
	if err != nil {
		return nil, nil, refuse(BadRequest, h.url.Host, "the request to %s cannot be written", h.url.Host).because(err)
	}
	request.URL, request.Header = h.url, h.header.Clone()
	pool := c.guarded
	if h.opened {
		pool = c.opened
	}
	response, err := pool.RoundTrip(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	if location := response.Header.Get("Location"); location != "" && redirects(response.StatusCode) {
		next, err := c.follow(h, response.StatusCode, location)
		return nil, next, err
	}
	body, truncated, err := readBody(response, c.policy.MaxBytes, h.whole)
	if err != nil {
		return nil, nil, err
	}
	return &Response{Status: response.StatusCode, Header: response.Header, URL: h.url,
		Body: body, Truncated: truncated, Redirects: h.count}, nil, nil
}

// admit applies what can be said of a URL before its address is known.
func (c *Client) admit(h *hop) *Error {
	host := h.url.Host
	if c.base != nil {
		if !sameHost(c.base, h.url) {
			return refuse(BlockedRedirect, host, "%s is not %s, the one host that is configured here", host, c.base.Host)
		}
		return nil
	}
	n, _ := strconv.Atoi(port(h.url)) // fold made it a number
	if !slices.Contains(c.policy.Ports, n) && !(h.opened && c.allow.opensPort(h.url)) {
		return refuse(BlockedPort, host, "port %d is not one that is fetched from; allowed are %s", n, ports(c.policy.Ports))
	}
	if !h.opened && specialName(h.url.Hostname()) {
		return refuse(BlockedAddress, host, "%s is not a public host", host)
	}
	return nil
}

func ports(list []int) string {
	text := make([]string, len(list))
	for i, n := range list {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ", ")
}
