// Package safehttp is the only HTTP client that may follow a URL from an
// argument.
//
// A model, a web page or a chat message may name any address. This client
// makes sure that none of them leads it into the network it runs in:
//
//   - The check sits on the address that is dialled. A name is resolved once,
//     every answer is judged, and the connection goes to one of the judged
//     addresses as a number. There is no second lookup that could differ, and
//     no spelling of an address that only the C library understands.
//   - Every redirect is a new request and passes the same checks. Bodies,
//     credentials and custom headers stay with the host they were meant for.
//   - Proxy variables of the environment are ignored: behind a proxy it would
//     be the proxy that resolves.
//   - One deadline covers the whole call, one cap the decompressed body.
//
// An operator may open named hosts (Policy.AllowHosts); a caller never can.
// Even an opened host is never reached at a link-local, metadata, multicast or
// reserved address.
//
// Addresses are judged by the IANA special-purpose registries for IPv4 and
// IPv6 (RFC 6890, RFC 8190), multicast (RFC 5771, RFC 4291), and the deprecated
// ranges that stacks still honour: site-local (RFC 3879), 6to4 (RFC 7526),
// IPv4-compatible (RFC 4291). Outside 2000::/3 no IPv6 address is public except
// through NAT64 (RFC 6052, RFC 8215), whose embedded IPv4 address is judged.
// The table, with the source of each row, is in address.go. Registry entries
// marked globally reachable (AS112, AMT) are refused as well: they are
// infrastructure, and no page lives there.
//
// The package never keeps cookies, never sends Referer, never repeats a request
// with effects, and never puts a URL's path, query or user name into the text
// of an error.
package safehttp

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// The defaults of a Policy's zero fields.
const (
	DefaultMaxBytes     = 5 << 20
	DefaultTimeout      = 20 * time.Second
	DefaultMaxRedirects = 5
	DefaultUserAgent    = "pawgate/1.0"
)

// Policy is what an operator decides. The zero Policy is a safe one: public
// addresses on the usual web ports.
type Policy struct {
	// Ports are the TCP ports that may be dialled; 80, 443, 8080 and 8443 when
	// empty.
	Ports []int
	// AllowHosts are hosts opened although their address is private, loopback,
	// unique-local or shared: "searxng.internal", "10.0.0.5:8069",
	// "[fd00::5]:8069". An entry with a port opens exactly that port, also when
	// it is not in Ports. A redirect from a host that is not opened gains
	// nothing from an entry.
	AllowHosts []string
	// MaxBytes caps a decompressed body; 5 MiB when zero.
	MaxBytes int64
	// Timeout covers a whole call: lookups, redirects and the body; 20 s when
	// zero. An earlier deadline of the context still holds.
	Timeout time.Duration
	// MaxRedirects is how many redirects are followed: 5 when zero, none when
	// negative.
	MaxRedirects int
	// UserAgent is sent unless the request has its own.
	UserAgent string
}

// Validate says which setting is wrong. New ignores an AllowHosts entry that
// cannot be read, so configuration should be validated where it is loaded.
func (p Policy) Validate() error {
	for _, port := range p.Ports {
		if port < 1 || port > 65535 {
			return fmt.Errorf("check policy: port %d is not between 1 and 65535", port)
		}
	}
	for _, entry := range p.AllowHosts {
		if _, err := allowKey(entry); err != nil {
			return fmt.Errorf("check policy: allowed host %q must be host or host:port: %w", entry, err)
		}
	}
	if p.MaxBytes < 0 || p.Timeout < 0 {
		return fmt.Errorf("check policy: size and timeout must not be negative")
	}
	return nil
}

func (p Policy) withDefaults() Policy {
	if len(p.Ports) == 0 {
		p.Ports = []int{80, 443, 8080, 8443}
	}
	p.Ports = slices.Clone(p.Ports)
	p.MaxBytes = cmp.Or(max(p.MaxBytes, 0), DefaultMaxBytes)
	p.Timeout = cmp.Or(max(p.Timeout, 0), DefaultTimeout)
	p.MaxRedirects = cmp.Or(p.MaxRedirects, DefaultMaxRedirects)
	p.UserAgent = cmp.Or(p.UserAgent, DefaultUserAgent)
	return p
}

// Client makes guarded requests. It is safe for concurrent use.
type Client struct {
	policy Policy
	allow  allowList
	base   *url.URL // set by Fixed: the one host this client speaks to
	lookup Resolver
	dial   DialFunc
	roots  *x509.CertPool

	// Two pools of connections, because an idle connection to an opened host
	// must not serve a request that is not entitled to it.
	guarded, opened *http.Transport
}

// Option replaces a part of a Client, for tests and private certificates.
type Option func(*Client)

// WithResolver replaces the system's resolver.
func WithResolver(r Resolver) Option { return func(c *Client) { c.lookup = r } }

// WithDial replaces the TCP dialler. It is called with judged addresses only.
func WithDial(d DialFunc) Option { return func(c *Client) { c.dial = d } }

// WithRootCAs replaces the system's certificate authorities.
func WithRootCAs(pool *x509.CertPool) Option { return func(c *Client) { c.roots = pool } }

// New is a client for URLs that come from arguments. It does no I/O.
func New(p Policy, opts ...Option) *Client {
	c := &Client{
		policy: p.withDefaults(),
		allow:  newAllowList(p.AllowHosts),
		lookup: &net.Resolver{},
		dial:   dialTCP,
	}
	for _, opt := range opts {
		opt(c)
	}
	c.guarded = c.transport(dialer{c.lookup, c.dial, false, c.policy.Timeout})
	c.opened = c.transport(dialer{c.lookup, c.dial, true, c.policy.Timeout})
	return c
}

// Fixed is a client for one configured server, such as a platform's API that is
// called with our credential: it speaks to base's host and port and to nothing
// else, so neither a redirect nor a mistake of ours carries the key elsewhere.
// The host may be private, for the operator chose it. Ports and AllowHosts of
// the policy are not used. The error is for a base that CheckURL refuses.
func Fixed(base string, p Policy, opts ...Option) (*Client, error) {
	u, err := CheckURL(base)
	if err != nil {
		return nil, fmt.Errorf("read base url: %w", err)
	}
	c := New(p, opts...)
	c.base = u
	return c, nil
}

// CloseIdle closes the connections that are kept for reuse.
func (c *Client) CloseIdle() {
	c.guarded.CloseIdleConnections()
	c.opened.CloseIdleConnections()
}

func (c *Client) transport(d dialer) *http.Transport {
	return &http.Transport{
		Proxy:                  nil, // never http.ProxyFromEnvironment, see the package doc
		DialContext:            d.dialContext,
		TLSClientConfig:        tlsConfig(c.roots),
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // body.go decompresses, with a cap
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        30 * time.Second,
		MaxIdleConns:           20,
		MaxIdleConnsPerHost:    2,
		MaxResponseHeaderBytes: 256 << 10,
	}
}
