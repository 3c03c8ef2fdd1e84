package safehttp

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const maxURL = 8 << 10 // bytes; servers refuse longer ones

// names maps a host as browsers do (UTS 46: case, NFKC, ideographic full stops)
// and checks A-labels. Underscores and "r3---a" hyphens exist in real names.
var names = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false),
	idna.StrictDomainName(false), idna.CheckHyphens(false))

// CheckURL reads a URL that a caller wrote and returns it with its host folded:
// lower case, IDNA, no trailing dot, addresses in their usual spelling. It is
// the check that needs no policy and no network; whether the host may be
// reached is decided when it is dialled. The error is an *Error.
func CheckURL(raw string) (*url.URL, error) {
	u, err := checkURL(raw)
	if err != nil {
		return nil, err // not the nil *Error
	}
	return u, nil
}

func checkURL(raw string) (*url.URL, *Error) {
	raw = strings.TrimSpace(raw)
	if e := checkText(raw); e != nil {
		return nil, e
	}
	u, err := url.Parse(raw)
	if err != nil {
		// Not even as a cause: the parser's words repeat the URL.
		return nil, badURL("url cannot be read: write it as https://host/path")
	}
	if e := fold(u); e != nil {
		return nil, e
	}
	return u, nil
}

func badURL(sentence string) *Error { return refuse(BadURL, "", "%s", sentence) }

// checkText refuses what parsers disagree about, before any of them reads it.
func checkText(raw string) *Error {
	authority, _, _ := strings.Cut(raw, "?")
	authority, _, _ = strings.Cut(authority, "#")
	switch {
	case raw == "":
		return badURL("url is empty")
	case len(raw) > maxURL:
		return badURL("url is longer than 8192 bytes")
	case strings.ContainsFunc(raw, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return badURL("url contains a control character; percent-encode it")
	case strings.Contains(authority, `\`):
		return badURL("url contains a backslash; use / between its parts")
	}
	return nil
}

// fold brings a parsed URL to the one form that is checked, compared, dialled
// and sent.
func fold(u *url.URL) *Error {
	switch {
	case u.Scheme == "":
		return badURL("url must start with https:// or http://")
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse(BlockedScheme, "", "only https:// and http:// addresses are fetched")
	case u.Opaque != "" || u.Host == "":
		return badURL("url has no host: write it as https://host/path")
	case u.User != nil:
		return badURL("url must not carry a user name or password")
	}
	host, e := foldHost(u.Hostname())
	if e != nil {
		return e
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return badURL("url has a port that is not between 1 and 65535")
		}
		host += ":" + strconv.FormatUint(n, 10)
	}
	u.Host = host
	return nil
}

// foldHost maps a name and looks again whether it is an address, because the
// mapping may have made it one.
func foldHost(host string) (string, *Error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return foldAddr(addr)
	}
	folded, err := names.ToASCII(host)
	if err != nil || !utf8.ValidString(host) {
		return "", badURL("url has a host that is not a valid name")
	}
	folded = strings.TrimSuffix(folded, ".")
	if addr, err := netip.ParseAddr(folded); err == nil {
		return foldAddr(addr)
	}
	labels := strings.Split(folded, ".")
	if numeric(labels[len(labels)-1]) {
		return "", badURL("url has a host that looks like an odd spelling of an address; write it as four decimal numbers")
	}
	if len(folded) > 253 {
		return "", badURL("url has a host longer than 253 bytes")
	}
	for _, label := range labels {
		if !validLabel(label) {
			return "", badURL("url has a host that is not a valid name")
		}
	}
	return folded, nil
}

func foldAddr(addr netip.Addr) (string, *Error) {
	if addr.Zone() != "" {
		return "", badURL("url has an address with a zone, which only makes sense on one machine")
	}
	return addr.Unmap().String(), nil
}

// numeric reports whether the last label of a host makes it an address to the
// C library and to browsers (WHATWG URL, "ends in a number"): 127.1, 0x7f000001,
// 0177.0.0.1. No top-level domain looks like this.
func numeric(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return label != "" && strings.Trim(label, "0123456789") == ""
}

func validLabel(label string) bool {
	return 0 < len(label) && len(label) <= 63 &&
		strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// port is the port of a URL, also when it is the scheme's own.
func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// sameHost reports whether b may have what was meant for a: the same host and
// port, or the step from http to https on the standard ports.
func sameHost(a, b *url.URL) bool {
	if a.Hostname() != b.Hostname() {
		return false
	}
	upgrade := a.Scheme == "http" && port(a) == "80" && b.Scheme == "https" && port(b) == "443"
	return a.Scheme == b.Scheme && port(a) == port(b) || upgrade
}

// allowList holds the folded "host" and "host:port" forms of AllowHosts.
type allowList map[string]bool

func newAllowList(entries []string) allowList {
	a := allowList{}
	for _, entry := range entries {
		if key, err := allowKey(entry); err == nil {
			a[key] = true
		}
	}
	return a
}

func allowKey(entry string) (string, error) {
	entry = strings.TrimSpace(entry)
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Is6() {
		entry = "[" + entry + "]"
	}
	u, e := checkURL("http://" + entry)
	switch {
	case e != nil:
		return "", e
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return "", badURL("it has more than a host and a port")
	case u.Port() != "":
		return net.JoinHostPort(u.Hostname(), u.Port()), nil
	}
	return u.Hostname(), nil
}

func (a allowList) opens(u *url.URL) bool { return a[u.Hostname()] || a.opensPort(u) }

func (a allowList) opensPort(u *url.URL) bool { return a[net.JoinHostPort(u.Hostname(), port(u))] }
