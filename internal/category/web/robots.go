package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"pawgate/internal/caller"
	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

// robotsAgent is our product token in robots.txt.
const robotsAgent = "pawgate"

// robotsTTL is how long a robots.txt is believed (RFC 9309 §2.4).
const robotsTTL = 24 * time.Hour

// maxRobots is how much of a robots.txt is read (RFC 9309 §2.5).
const maxRobots = 500 << 10

// checkRobots refuses an address that its host's robots.txt disallows. A host
// without one allows everything; one that cannot say allows nothing for now
// (RFC 9309 §2.3.1).
func (w web) checkRobots(ctx context.Context, who caller.Caller, u *url.URL) error {
	if u.EscapedPath() == "/robots.txt" {
		return nil
	}
	rules, err := w.robots(ctx, who, &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"})
	if err != nil {
		return err
	}
	if !allowed(rules, u) {
		return fault.New("robots_disallowed", "the robots.txt of %s disallows this address for programs; read another page", u.Host)
	}
	return nil
}

func (w web) robots(ctx context.Context, who caller.Caller, u *url.URL) ([]byte, error) {
	key := cacheKey(useRobots, u)
	own, err := w.cached(ctx, who, key)
	if err != nil {
		return nil, err
	}
	if own != nil && w.now().Sub(own.CheckedAt) <= robotsTTL {
		return own.Body, nil
	}
	r, err := w.http.Do(ctx, safehttp.Request{URL: u.String()})
	var e *safehttp.Error
	switch {
	case errors.As(err, &e) && strings.HasPrefix(string(e.Reason), "blocked_"):
		return nil, err
	case err != nil, r.Status >= 500, r.Status == http.StatusTooManyRequests:
		return nil, fault.Retry(fault.Unavailable, time.Minute, "the robots.txt of %s cannot be read, so nothing there may be fetched for now", u.Host)
	}
	c := copied{URL: r.URL.String(), Status: int16(r.Status), ContentType: "text/plain", FetchedAt: w.now(), CheckedAt: w.now()}
	if r.Status < 300 {
		c.Body = r.Body[:min(len(r.Body), maxRobots)]
	}
	if c.Body == nil { // none: kept as one that forbids nothing
		c.Body = []byte{}
	}
	return c.Body, w.keep(ctx, who, key, c)
}

// rule is one line of a group.
type rule struct {
	allow   bool
	pattern string
}

// allowed applies robots.txt to an address: of the rules that match it in our
// group, the longest decides, and allow before disallow (RFC 9309 §2.2.2).
func allowed(robots []byte, u *url.URL) bool {
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	longest, verdict := -1, true
	for _, r := range groupFor(robots) {
		if matches(r.pattern, path) && (len(r.pattern) > longest || len(r.pattern) == longest && r.allow) {
			longest, verdict = len(r.pattern), r.allow
		}
	}
	return verdict
}

// groupFor are the rules of the groups that name us; of those for everybody
// when none does.
func groupFor(robots []byte) []rule {
	var own, all []rule
	var forUs, forAny, named, inAgents bool
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(robots, []byte("\ufeff"))))
	lines.Buffer(nil, maxRobots+1)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		key, value, found := strings.Cut(text, ":")
		if !found {
			continue
		}
		value = strings.TrimSpace(value)
		switch key = strings.ToLower(strings.TrimSpace(key)); key {
		case "user-agent":
			if !inAgents {
				forUs, forAny, inAgents = false, false, true
			}
			forUs = forUs || strings.EqualFold(value, robotsAgent)
			forAny = forAny || value == "*"
			named = named || forUs
		case "allow", "disallow":
			inAgents = false
			if value == "" {
				continue
			}
			r := rule{key == "allow", value}
			if forUs {
				own = append(own, r)
			}
			if forAny {
				all = append(all, r)
			}
		}
	}
	if named {
		return own
	}
	return all
}

// matches applies a pattern, in which * is any text and a closing $ the end.
func matches(pattern, path string) bool {
	pattern, anchored := strings.CutSuffix(pattern, "$")
	parts := strings.Split(pattern, "*")
	if !strings.HasPrefix(path, parts[0]) {
		return false
	}
	rest := path[len(parts[0]):]
	for i, part := range parts[1:] {
		if anchored && i == len(parts)-2 {
			return strings.HasSuffix(rest, part)
		}
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return !anchored || rest == ""
}
