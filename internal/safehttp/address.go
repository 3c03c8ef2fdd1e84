package safehttp

import (
	"net/netip"
	"strings"
)

// class is what the table says of an address.
type class struct {
	name string
	// open marks ranges that AllowHosts may open. Link-local, metadata,
	// multicast and reserved ranges stay shut: no server that an operator
	// means to publish lives there, but credentials of the host do.
	open bool
}

type special struct {
	prefix netip.Prefix
	class
}

func row(prefix, name string, open bool) special {
	return special{netip.MustParsePrefix(prefix), class{name, open}}
}

// specials lists the address blocks that are not public. Names are shown to
// callers. Sources: IANA special-purpose address registries, and the RFC named
// on each row. A cloud's own endpoint outside them is named as such.
var specials = []special{
	row("0.0.0.0/8", "this-host", false),             // RFC 1122 §3.2.1.3, RFC 791
	row("10.0.0.0/8", "private", true),               // RFC 1918
	row("100.64.0.0/10", "shared (CGNAT)", true),     // RFC 6598
	row("127.0.0.0/8", "loopback", true),             // RFC 1122
	row("168.63.129.16/32", "cloud platform", false), // Azure's wire server, a public number reachable only from inside
	row("169.254.0.0/16", "link-local", false),       // RFC 3927; cloud metadata
	row("172.16.0.0/12", "private", true),            // RFC 1918
	row("192.0.0.0/24", "reserved", false),           // RFC 6890; dummy RFC 7600, PCP RFC 7723, one cloud's metadata
	row("192.0.2.0/24", "documentation", false),      // RFC 5737
	row("192.31.196.0/24", "reserved", false),        // AS112, RFC 7535
	row("192.52.193.0/24", "reserved", false),        // AMT, RFC 7450
	row("192.88.99.0/24", "6to4 relay", false),       // RFC 7526
	row("192.168.0.0/16", "private", true),           // RFC 1918
	row("192.175.48.0/24", "reserved", false),        // AS112, RFC 7534
	row("198.18.0.0/15", "benchmarking", false),      // RFC 2544
	row("198.51.100.0/24", "documentation", false),   // RFC 5737
	row("203.0.113.0/24", "documentation", false),    // RFC 5737
	row("224.0.0.0/4", "multicast", false),           // RFC 5771
	row("240.0.0.0/4", "reserved", false),            // RFC 1112 §4; broadcast RFC 919

	row("::1/128", "loopback", true),                 // RFC 4291
	row("::/128", "this-host", false),                // RFC 4291
	row("::/96", "IPv4-compatible", false),           // RFC 4291 §2.5.5.1, deprecated
	row("::ffff:0:0:0/96", "translated", false),      // RFC 2765, superseded
	row("100::/64", "discard", false),                // RFC 6666
	row("100:0:0:1::/64", "reserved", false),         // RFC 9780
	row("2001::/32", "Teredo", false),                // RFC 4380
	row("2001:2::/48", "benchmarking", false),        // RFC 5180
	row("2001::/23", "reserved", false),              // RFC 2928; ORCHID RFC 7343, drone ids RFC 9374, AMT, AS112, PCP
	row("2001:db8::/32", "documentation", false),     // RFC 3849
	row("2002::/16", "6to4", false),                  // RFC 7526: refused whole, relays are gone
	row("2620:4f:8000::/48", "reserved", false),      // AS112, RFC 7534
	row("3fff::/20", "documentation", false),         // RFC 9637
	row("5f00::/16", "reserved", false),              // SRv6, RFC 9602
	row("fc00::/7", "private", true),                 // unique local, RFC 4193; metadata of some clouds at fd00:ec2::254
	row("fe80::/10", "link-local", false),            // RFC 4291
	row("fec0::/10", "site-local", false),            // RFC 3879
	row("ff00::/8", "multicast", false),              // RFC 4291
	row("fd00:ec2::/32", "cloud metadata", false),    // EC2 instance metadata over IPv6
	row("fd20:ce::254/128", "cloud metadata", false), // Google Compute Engine
}

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")       // RFC 4291, IANA IPv6 address space
	nat64         = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052
	nat64Local    = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215
)

// nat64Layouts are the places of the four IPv4 bytes for prefix lengths 96, 64,
// 56 and 48 (RFC 6052 §2.2). Which one a local prefix uses is the network's
// choice, so all are read.
var nat64Layouts = [][4]int{{12, 13, 14, 15}, {9, 10, 11, 12}, {7, 9, 10, 11}, {6, 7, 9, 10}}

// specialNames are names that never belong to a public host: RFC 6761
// (localhost), RFC 6762 (local), RFC 8375 (home.arpa), ICANN's private-use
// internal (metadata.google.internal among them), and a cloud's metadata alias.
var specialNames = []string{"localhost", "localdomain", "local", "internal", "home.arpa", "metadata.goog"}

// Blocked tells whether addr is outside the public internet, and the kind of
// range it is in: "loopback", "private", "link-local" … A zone is ignored, an
// IPv4 address inside an IPv6 one (mapped or NAT64) is judged as IPv4.
func Blocked(addr netip.Addr) (reason string, blocked bool) {
	c, blocked := classify(addr)
	return c.name, blocked
}

func classify(addr netip.Addr) (class, bool) {
	// A prefix never contains a zoned address, so the zone goes first.
	addr = addr.WithZone("").Unmap()
	if !addr.IsValid() {
		return class{name: "invalid"}, true
	}
	if c, ok := inTable(addr); ok || addr.Is4() {
		return c, ok
	}
	switch {
	case nat64.Contains(addr):
		return classify(embedded(addr, nat64Layouts[0]))
	case nat64Local.Contains(addr):
		return classifyLocal(addr)
	case !globalUnicast.Contains(addr):
		return class{name: "not global unicast"}, true
	}
	return class{}, false
}

// inTable finds the most specific row, so that a cloud's metadata address is
// not taken for an ordinary private one.
func inTable(addr netip.Addr) (found class, ok bool) {
	bits := -1
	for _, s := range specials {
		if s.prefix.Bits() > bits && s.prefix.Contains(addr) {
			found, ok, bits = s.class, true, s.prefix.Bits()
		}
	}
	return found, ok
}

// classifyLocal judges an address of the local NAT64 prefix under every layout.
// A reading in 0.0.0.0/8 is an unused layout; at least one must be used.
func classifyLocal(addr netip.Addr) (class, bool) {
	used := false
	for _, layout := range nat64Layouts {
		v4 := embedded(addr, layout)
		if v4.As4()[0] == 0 {
			continue
		}
		used = true
		if c, blocked := classify(v4); blocked {
			return c, true
		}
	}
	return class{name: "local NAT64"}, !used
}

func embedded(addr netip.Addr, layout [4]int) netip.Addr {
	b := addr.As16()
	return netip.AddrFrom4([4]byte{b[layout[0]], b[layout[1]], b[layout[2]], b[layout[3]]})
}

// specialName reports whether a folded host is one of specialNames or below it.
func specialName(host string) bool {
	for _, name := range specialNames {
		if host == name || strings.HasSuffix(host, "."+name) {
			return true
		}
	}
	return false
}
