package safehttp_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"pawgate/internal/safehttp"
)

// FuzzGuard: whatever URL a caller writes, whatever a resolver answers and
// wherever a server redirects, nothing but a public address is dialled. The
// judge here is written apart from the table under test.
func FuzzGuard(f *testing.F) {
	loopback := netip.MustParseAddr("127.0.0.1").AsSlice()
	nat64 := netip.MustParseAddr("64:ff9b::a9fe:a9fe").AsSlice()
	public := netip.MustParseAddr(addrA).AsSlice()
	f.Add("http://x.example/", loopback, "http://127.0.0.1/")
	f.Add("https://x.example:8443/", nat64, "//[::1]/")
	f.Add("http://①②⑦.⓪.⓪.①/", public, "/")
	f.Add("http://[::ffff:a9fe:a9fe]/", public, "http://0x7f.1/")
	f.Add("http://"+addrA+"/", public, "http://[64:ff9b:1:7f00:0:100:808:808]/")
	f.Add("http://x.example/", append(public, loopback...), "http://[2002:7f00:1::]/")
	f.Fuzz(func(t *testing.T, raw string, answer []byte, location string) {
		dials := 0
		dial := func(ctx context.Context, addr netip.AddrPort) (net.Conn, error) {
			dials++
			if !public6890(addr.Addr()) {
				t.Errorf("dialled %s for %q, answer %v, location %q", addr, raw, answer, location)
			}
			if dials > 1 {
				return nil, errors.New("connection refused")
			}
			near, far := net.Pipe()
			go answerOnce(far, location)
			return near, nil
		}
		c := safehttp.New(safehttp.Policy{MaxRedirects: 2}, safehttp.WithDial(dial),
			safehttp.WithResolver(lookupFunc(func(context.Context) ([]netip.Addr, error) { return addrsOf(answer), nil })))
		defer c.CloseIdle()
		_, err := c.Do(t.Context(), safehttp.Request{URL: raw})
		var e *safehttp.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("error = %v (%T), want *safehttp.Error", err, err)
		}
	})
}

// answerOnce is a server that redirects whatever it is asked, and hangs up.
func answerOnce(conn net.Conn, location string) {
	defer func() { _ = conn.Close() }()
	buffer := make([]byte, 4096)
	if _, err := conn.Read(buffer); err != nil {
		return
	}
	r := http.Response{StatusCode: 302, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Location": {location}}, Close: true}
	_ = r.Write(conn)
}

// addrsOf cuts bytes into addresses: 16 at a time, then a rest of 4.
func addrsOf(b []byte) []netip.Addr {
	var list []netip.Addr
	for len(b) >= 4 {
		n := 4
		if len(b) >= 16 {
			n = 16
		}
		addr, _ := netip.AddrFromSlice(b[:n])
		list, b = append(list, addr), b[n:]
	}
	return list
}

// public6890 is a second opinion on what is public, by the helpers of net/netip
// and by arithmetic on bytes.
func public6890(a netip.Addr) bool {
	if a.Zone() != "" || a.Is4In6() || a.IsLoopback() || a.IsPrivate() || a.IsMulticast() || a.IsUnspecified() ||
		a.IsLinkLocalUnicast() || !a.IsGlobalUnicast() {
		return false
	}
	if a.Is4() {
		b := a.As4()
		switch {
		case b[0] == 0, b[0] >= 240,
			b[0] == 100 && b[1]&0xc0 == 64,
			b[0] == 192 && b[1] == 0 && (b[2] == 0 || b[2] == 2),
			b[0] == 192 && b[1] == 88 && b[2] == 99,
			b[0] == 198 && b[1]&0xfe == 18,
			b[0] == 198 && b[1] == 51 && b[2] == 100,
			b[0] == 203 && b[1] == 0 && b[2] == 113:
			return false
		}
		return true
	}
	b := a.As16()
	v4 := func(i, j, k, l int) bool { return public6890(netip.AddrFrom4([4]byte{b[i], b[j], b[k], b[l]})) }
	if b[0] == 0 && b[1] == 0x64 && b[2] == 0xff && b[3] == 0x9b {
		zeros := true
		for _, x := range b[4:12] {
			zeros = zeros && x == 0
		}
		local := b[4] == 0 && b[5] == 1
		return zeros && v4(12, 13, 14, 15) ||
			local && (v4(12, 13, 14, 15) || b[12] == 0) && (v4(6, 7, 9, 10) || b[6] == 0)
	}
	return b[0]&0xe0 == 0x20 && // 2000::/3
		!(b[0] == 0x20 && b[1] == 0x01 && b[2] < 2) && // 2001::/23, Teredo among it
		!(b[0] == 0x20 && b[1] == 0x01 && b[2] == 0x0d && b[3] == 0xb8) &&
		!(b[0] == 0x20 && b[1] == 0x02) && // 6to4
		!(b[0] == 0x3f && b[1] == 0xff && b[2] < 0x10)
}
