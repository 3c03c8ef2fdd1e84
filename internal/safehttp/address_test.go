package safehttp_test

import (
	"net/netip"
	"testing"

	"pawgate/internal/safehttp"
)

func TestBlocked(t *testing.T) {
	t.Parallel()
	// Each range by its first and last address, so that a wrong length shows.
	blocked := map[string][]string{
		"this-host":          {"0.0.0.0", "0.255.255.255", "::"},
		"private":            {"10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255", "fc00::", "fdff:ffff::1"},
		"shared (CGNAT)":     {"100.64.0.0", "100.64.0.1", "100.100.100.200", "100.127.255.254", "100.127.255.255"},
		"loopback":           {"127.0.0.0", "127.0.0.1", "127.255.255.255", "::1"},
		"cloud platform":     {"168.63.129.16"},
		"link-local":         {"169.254.0.0", "169.254.169.254", "169.254.255.255", "fe80::", "fe80::1%eth0", "febf:ffff::1"},
		"documentation":      {"192.0.2.0", "192.0.2.255", "198.51.100.7", "203.0.113.255", "2001:db8::1", "3fff::", "3fff:fff:ffff::1"},
		"6to4 relay":         {"192.88.99.0", "192.88.99.1", "192.88.99.255"},
		"benchmarking":       {"198.18.0.0", "198.18.0.1", "198.19.255.255", "2001:2::1"},
		"multicast":          {"224.0.0.0", "239.255.255.255", "ff00::", "ff02::1", "ff0e::1"},
		"reserved":           {"192.0.0.0", "192.0.0.8", "192.0.0.192", "192.31.196.1", "192.52.193.1", "192.175.48.1", "240.0.0.0", "240.0.0.1", "255.255.255.255", "2001:1::1", "2001:20::1", "2001:1ff:ffff::1", "2620:4f:8000::1", "5f00::1", "100:0:0:1::1"},
		"IPv4-compatible":    {"::2", "::7f00:1", "::8.8.8.8", "::255.255.255.255"},
		"translated":         {"::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8"},
		"discard":            {"100::", "100::1"},
		"Teredo":             {"2001::", "2001:0:ffff::1"},
		"6to4":               {"2002::", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:808:808::1", "2002:ffff::1"},
		"site-local":         {"fec0::", "fec0::1", "feff:ffff::1"},
		"cloud metadata":     {"fd00:ec2::254", "fd20:ce::254"},
		"not global unicast": {"1::1", "1fff:ffff::1", "4000::", "8000::1", "fbff::1", "64:ff9b:2::1", "64:ff9b::1:7f00:1"},
		"local NAT64":        {"64:ff9b:1::", "64:ff9b:1::1"},
	}
	for want, addrs := range blocked {
		for _, a := range addrs {
			if got, is := safehttp.Blocked(netip.MustParseAddr(a)); !is || got != want {
				t.Errorf("Blocked(%s) = %q, %v, want %q, true", a, got, is, want)
			}
		}
	}
	if got, is := safehttp.Blocked(netip.Addr{}); !is || got != "invalid" {
		t.Errorf("Blocked(no address) = %q, %v", got, is)
	}
}

// TestBlockedEmbedded looks at IPv4 addresses inside IPv6 ones.
func TestBlockedEmbedded(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, addr, want string }{
		{"SSRF-01 mapped metadata", "::ffff:169.254.169.254", "link-local"},
		{"SSRF-01 mapped loopback, hex", "::ffff:7f00:1", "loopback"},
		{"SSRF-02 NAT64 metadata", "64:ff9b::a9fe:a9fe", "link-local"},
		{"SSRF-02 NAT64 private", "64:ff9b::a00:1", "private"},
		{"CVE-2026-54450 local NAT64, /96", "64:ff9b:1::a9fe:a9fe", "link-local"},
		{"CVE-2026-54450 local NAT64, /96 in a subprefix", "64:ff9b:1:fffe::7f00:1", "loopback"},
		{"CVE-2026-54450 local NAT64, /48", "64:ff9b:1:7f00:0:100::", "loopback"},
		{"CVE-2026-54450 local NAT64, /56", "64:ff9b:1:a:0:1::", "private"},
		{"CVE-2026-54450 local NAT64, /64", "64:ff9b:1:0:a:0:100:0", "private"},
		{"CVE-2026-54450 local NAT64, /48 hidden behind a public /96", "64:ff9b:1:7f00:0:100:808:808", "loopback"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got, is := safehttp.Blocked(netip.MustParseAddr(tt.addr)); !is || got != tt.want {
				t.Errorf("Blocked(%s) = %q, %v, want %q, true", tt.addr, got, is, tt.want)
			}
		})
	}
}

// TestPublic holds the controls: the neighbours of every range, and translation
// of public addresses.
func TestPublic(t *testing.T) {
	t.Parallel()
	for _, a := range []string{
		"1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0",
		"100.63.255.255", "100.128.0.0", // SSRF-07
		"126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0",
		"172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0",
		"192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0",
		"203.0.112.255", "203.0.114.0", "223.255.255.255", "::ffff:8.8.8.8",
		"64:ff9b::808:808",      // SSRF-24
		"64:ff9b:1::808:808",    // the local prefix with /96
		"64:ff9b:1:808:8:800::", // the local prefix with /48
		"2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1", "2001:db9::1", "2003::1",
		"2606:4700:4700::1111", "2620:4f:7fff::1", "3ffe:ffff::1", "3fff:1000::1",
	} {
		if reason, is := safehttp.Blocked(netip.MustParseAddr(a)); is {
			t.Errorf("Blocked(%s) = %q, true, want a public address", a, reason)
		}
	}
}
