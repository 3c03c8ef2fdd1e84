package stdio

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// localEndpoint is the address that a transport which is itself the endpoint
// sees; its host passes a check against DNS rebinding.
const localEndpoint = "http://localhost/mcp"

// checkEndpoint refuses an address or a key that could not work or would give
// the key away. Its errors repeat neither.
func checkEndpoint(o *Options) (*url.URL, error) {
	o.Key = strings.TrimSpace(o.Key)
	if strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("PAWGATE_KEY holds characters that no key has; copy it again")
	}
	if o.URL == "" {
		if o.Transport == nil {
			return nil, errors.New("PAWGATE_URL is not set; give the router's address, like https://example.com/mcp")
		}
		return url.Parse(localEndpoint)
	}
	u, err := url.Parse(strings.TrimSpace(o.URL))
	switch {
	case err != nil || u.Hostname() == "" || u.Opaque != "":
		return nil, errors.New("PAWGATE_URL is not an address; give it like https://example.com/mcp")
	case u.User != nil:
		return nil, errors.New("PAWGATE_URL must not contain a user or password; put the key into PAWGATE_KEY")
	case u.Scheme == "https":
	case u.Scheme != "http":
		return nil, errors.New("PAWGATE_URL must begin with https://")
	case !loopback(u.Hostname()):
		return nil, fmt.Errorf("PAWGATE_URL uses http:// to %s, which would send the key in clear; use https:// (http:// is for this machine only)", u.Hostname())
	}
	u.Fragment = ""
	return u, nil
}

// loopback reports whether a host is surely this machine. Odd spellings of an
// address, which a resolver may read in its own way, are not.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// newTransport is HTTP for the bridge. It has no limit on the time of an
// answer, because a tool may take long and the client cancels; a dead peer is
// noticed by pings. Idle connections go early, before a gateway closes them
// under a request: net/http rightly does not repeat a POST that met that.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		MaxIdleConnsPerHost:    defaultInFlight,
		IdleConnTimeout:        20 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
