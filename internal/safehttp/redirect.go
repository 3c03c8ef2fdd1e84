package safehttp

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// crossing are the headers that may go to a host the caller did not name.
// Anything else may be a credential.
var crossing = []string{"Accept", "Accept-Encoding", "Accept-Language", "User-Agent"}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow is the hop that a redirect asks for. What is dropped on the way never
// comes back, also when the chain returns to the first host.
func (c *Client) follow(from *hop, status int, location string) (*hop, error) {
	to := *from
	to.count++
	if to.count > c.policy.MaxRedirects {
		e := refuse(TooManyRedirects, from.url.Host, "more than %d redirects", max(c.policy.MaxRedirects, 0))
		return nil, e
	}
	if e := to.resolve(from, location); e != nil {
		e.Redirects = to.count
		return nil, e
	}
	to.opened = from.opened && (c.base != nil || c.allow.opens(to.url))
	to.rewrite(status)
	if sameHost(from.url, to.url) {
		return &to, nil
	}
	if e := to.leave(status); e != nil {
		e.Redirects = to.count
		return nil, e
	}
	return &to, nil
}

// resolve reads a Location as CheckURL reads an argument.
func (h *hop) resolve(from *hop, location string) *Error {
	if e := checkText(location); e != nil {
		return e
	}
	u, err := from.url.Parse(location)
	if err != nil {
		return badURL("the address that " + from.url.Host + " redirects to cannot be read")
	}
	if e := fold(u); e != nil {
		return e
	}
	if from.url.Scheme == "https" && u.Scheme == "http" {
		return refuse(BlockedRedirect, u.Host,
			"%s leads from https to http; ask for the http address yourself if that will do", from.url.Host)
	}
	h.url = u
	return nil
}

// rewrite changes the method as browsers do (Fetch standard, HTTP-redirect
// fetch): 303 always to GET, 301 and 302 for POST.
func (h *hop) rewrite(status int) {
	toGet := status == http.StatusSeeOther && h.method != "HEAD" ||
		h.method == "POST" && (status == http.StatusMovedPermanently || status == http.StatusFound)
	if !toGet || h.method == "GET" {
		return
	}
	h.method, h.body = "GET", nil
	h.header = maps.Clone(h.header)
	maps.DeleteFunc(h.header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Content-") })
}

// leave prepares a hop to another host: the private headers stay behind. A
// redirect that insists on the same request (307, 308) is not followed when
// there is something private in it, nor is any that would repeat an effect.
func (h *hop) leave(status int) *Error {
	public := maps.Clone(h.header)
	maps.DeleteFunc(public, func(name string, _ []string) bool { return !slices.Contains(crossing, name) })
	private := len(public) < len(h.header)
	insists := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
	if len(h.body) > 0 || h.method != "GET" && h.method != "HEAD" || insists && private {
		return refuse(BlockedRedirect, h.url.Host,
			"%s is another host, which a body, credentials or custom headers are not sent on to", h.url.Host)
	}
	h.header = public
	return nil
}
