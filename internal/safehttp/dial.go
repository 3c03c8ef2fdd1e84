package safehttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"time"
)

const (
	connectTimeout = 4 * time.Second // for one address, so that a dead one leaves time for the next
	maxConnects    = 4               // addresses tried of one answer, so that a name cannot make us a scanner
)

// Resolver looks up the addresses of a name. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// DialFunc connects to an address that was judged.
type DialFunc func(ctx context.Context, addr netip.AddrPort) (net.Conn, error)

func dialTCP(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr.String())
}

func tlsConfig(roots *x509.CertPool) *tls.Config {
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// dialer resolves once, judges every answer, and connects by number.
type dialer struct {
	lookup  Resolver
	connect DialFunc
	opened  bool // the host is on the operator's list
	// limit ends a dial by itself: http.Transport lets one go on when the
	// request that started it has given up.
	limit time.Duration
}

// dialContext is http.Transport's hook: the one way from here to the network.
func (d dialer) dialContext(ctx context.Context, _, hostport string) (net.Conn, error) {
	host, service, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, refuse(BadURL, "", "url has no usable host and port").because(err)
	}
	portNumber, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, refuse(BadURL, host, "url has a port that is not between 1 and 65535").because(err)
	}
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	var last error
	for _, addr := range addrs[:min(len(addrs), maxConnects)] {
		conn, err := d.try(ctx, netip.AddrPortFrom(addr, uint16(portNumber)))
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		last = err
	}
	return nil, refuse(ConnectFailed, host, "%s does not accept connections on port %d", host, portNumber).because(last)
}

func (d dialer) try(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return d.connect(ctx, addr)
}

// resolve returns addresses that may be dialled. One bad answer condemns the
// name: a host that is public and private at once is an attack or a mistake.
func (d dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	addrs := []netip.Addr{}
	if addr, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, addr)
	} else if addrs, err = d.lookup.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, lookupError(ctx, host, err)
	}
	if len(addrs) == 0 {
		return nil, refuse(DNSFailed, host, "%s has no address", host)
	}
	judged := make([]netip.Addr, len(addrs))
	for i, addr := range addrs {
		c, blocked := classify(addr)
		if blocked && !(d.opened && c.open) {
			return nil, refuse(BlockedAddress, host, "%s has an address that is not public (%s)", host, c.name)
		}
		judged[i] = addr.WithZone("").Unmap()
	}
	return judged, nil
}

func lookupError(ctx context.Context, host string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return refuse(DNSFailed, host, "no host is named %s", host).because(err)
	}
	return refuse(DNSFailed, host, "the address of %s cannot be looked up at the moment", host).because(err)
}
