package safehttp_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

// TestFetchRefused: every row ends in a typed error and no connection at all.
func TestFetchRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, url string
		answer    []string // of the host in the URL
		reason    fault.Reason
		says      string
	}{
		{"SSRF-01 mapped", "http://[::ffff:169.254.169.254]/", nil, safehttp.BlockedAddress, "link-local"},
		{"SSRF-01 mapped, hex", "http://[::ffff:a9fe:a9fe]/", nil, safehttp.BlockedAddress, "link-local"},
		{"SSRF-01 mapped answer", "http://x.example/", []string{"::ffff:127.0.0.1"}, safehttp.BlockedAddress, "loopback"},
		{"SSRF-02 NAT64", "http://[64:ff9b::a9fe:a9fe]/", nil, safehttp.BlockedAddress, "link-local"},
		{"CVE-2026-54450 local NAT64", "http://[64:ff9b:1::a9fe:a9fe]/", nil, safehttp.BlockedAddress, "link-local"},
		{"CVE-2026-58196 metadata by name", "http://x.example/.well-known/oauth", []string{"169.254.169.254"}, safehttp.BlockedAddress, "link-local"},
		{"SSRF-03 6to4 loopback", "http://[2002:7f00:1::]/", nil, safehttp.BlockedAddress, "6to4"},
		{"SSRF-03 6to4 metadata", "http://[2002:a9fe:a9fe::1]/", nil, safehttp.BlockedAddress, "6to4"},
		{"SSRF-04 zone", "http://[fe80::1%25eth0]/", nil, safehttp.BadURL, "zone"},
		{"SSRF-04 zone in an answer", "http://x.example/", []string{"fe80::1%eth0"}, safehttp.BlockedAddress, "link-local"},
		{"SSRF-05 decimal", "http://2130706433/", []string{"127.0.0.1"}, safehttp.BadURL, "odd spelling"},
		{"SSRF-05 hex", "http://0x7f000001/", []string{"127.0.0.1"}, safehttp.BadURL, "odd spelling"},
		{"SSRF-05 octal", "http://0177.0.0.1/", []string{"127.0.0.1"}, safehttp.BadURL, "odd spelling"},
		{"SSRF-05 short", "http://127.1/", []string{"127.0.0.1"}, safehttp.BadURL, "odd spelling"},
		{"SSRF-06 zeros", "http://0.0.0.0/", nil, safehttp.BlockedAddress, "this-host"},
		{"SSRF-06 IPv6 zeros", "http://[::]/", nil, safehttp.BlockedAddress, "this-host"},
		{"SSRF-06 zero", "http://0/", []string{"0.0.0.0"}, safehttp.BadURL, "odd spelling"},
		{"SSRF-07 first shared", "http://x.example/", []string{"100.64.0.1"}, safehttp.BlockedAddress, "shared"},
		{"SSRF-07 last shared", "http://x.example/", []string{"100.127.255.254"}, safehttp.BlockedAddress, "shared"},
		{"SSRF-07 cloud metadata", "http://x.example/", []string{"100.100.100.200"}, safehttp.BlockedAddress, "shared"},
		{"SSRF-09 public first", "http://x.example/", []string{addrA, "127.0.0.1"}, safehttp.BlockedAddress, "loopback"},
		{"SSRF-09 loopback first", "http://x.example/", []string{"127.0.0.1", addrA}, safehttp.BlockedAddress, "loopback"},
		{"SSRF-13 userinfo", "http://public.example:80@169.254.169.254/", nil, safehttp.BadURL, "user name"},
		{"SSRF-14 backslash", `http://127.0.0.1:6666\@1.1.1.1/`, nil, safehttp.BadURL, "backslash"},
		{"SSRF-15 localhost", "http://localhost./", []string{"127.0.0.1"}, safehttp.BlockedAddress, "not a public host"},
		{"SSRF-15 below localhost", "http://a.localhost/", []string{addrA}, safehttp.BlockedAddress, "not a public host"},
		{"SSRF-15 address", "http://169.254.169.254./", nil, safehttp.BlockedAddress, "link-local"},
		{"SSRF-15 metadata name", "http://metadata.google.internal./", []string{"169.254.169.254"}, safehttp.BlockedAddress, "not a public host"},
		{"SSRF-23 circled", "http://①②⑦.⓪.⓪.①/", []string{"127.0.0.1"}, safehttp.BlockedAddress, "loopback"},
		{"SSRF-23 full-width dots", "http://127。0。0。1/", []string{"127.0.0.1"}, safehttp.BlockedAddress, "loopback"},
		{"SSRF-26 ssh", "http://x.example:22/", []string{addrA}, safehttp.BlockedPort, "port 22"},
		{"SSRF-26 mail", "http://x.example:25/", []string{addrA}, safehttp.BlockedPort, "port 25"},
		{"SSRF-26 redis", "https://x.example:6379/", []string{addrA}, safehttp.BlockedPort, "port 6379"},
		{"SSRF-26 memcached", "http://x.example:11211/", []string{addrA}, safehttp.BlockedPort, "port 11211"},
		{"SSRF-28 benchmarking", "http://x.example/", []string{"198.18.0.1"}, safehttp.BlockedAddress, "benchmarking"},
		{"SSRF-28 6to4 relay", "http://x.example/", []string{"192.88.99.1"}, safehttp.BlockedAddress, "6to4 relay"},
		{"SSRF-28 reserved", "http://x.example/", []string{"240.0.0.1"}, safehttp.BlockedAddress, "reserved"},
		{"SSRF-28 dummy", "http://x.example/", []string{"192.0.0.8"}, safehttp.BlockedAddress, "reserved"},
		{"SSRF-22 photo address", "http://169.254.169.254/latest/meta-data/photo.png", nil, safehttp.BlockedAddress, "link-local"},
		{"no such name", "http://x.example/", nil, safehttp.DNSFailed, "no host is named x.example"},
		{"no address", "http://x.example/", []string{}, safehttp.DNSFailed, "has no address"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tt.answer != nil {
				host := strings.Split(strings.Split(tt.url, "/")[2], ":")[0]
				w.name(host, tt.answer...)
				w.name(strings.TrimSuffix(host, "."), tt.answer...)
			}
			_, err := get(t, w.client(safehttp.Policy{}), tt.url)
			e := wantReason(t, err, tt.reason)
			if !strings.Contains(e.Error(), tt.says) {
				t.Errorf("error = %q, want it to say %q", e, tt.says)
			}
			if e.Sent {
				t.Error("Sent = true for a request that was never made")
			}
			if d := w.dialled(); len(d) > 0 {
				t.Errorf("dialled %v", d)
			}
		})
	}
}

// TestFetchAllowed holds the controls: a guard that refuses these is broken too.
func TestFetchAllowed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, url string
		answer    []string
		dials     string
	}{
		{"a name", "http://x.example/", []string{addrA}, addrA + ":80"},
		{"an address", "http://" + addrA + "/", nil, addrA + ":80"},
		{"another port", "http://x.example:8080/", []string{addrA}, addrA + ":8080"},
		{"mapped public address", "http://[::ffff:8.8.8.8]/", nil, "8.8.8.8:80"},
		{"zone on a public answer", "http://x.example/", []string{"2606:4700::1%eth0"}, "[2606:4700::1]:80"},
		{"SSRF-07 below shared", "http://x.example/", []string{"100.63.255.255"}, "100.63.255.255:80"},
		{"SSRF-07 above shared", "http://x.example/", []string{"100.128.0.0"}, "100.128.0.0:80"},
		{"SSRF-24 NAT64 of a public address", "http://[64:ff9b::808:808]/", nil, "[64:ff9b::808:808]:80"},
		{"SSRF-24 only AAAA", "http://x.example/", []string{"2606:4700:4700::1111"}, "[2606:4700:4700::1111]:80"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tt.answer != nil {
				w.name("x.example", tt.answer...)
			}
			w.serve(tt.dials, text("hello"))
			r, err := get(t, w.client(safehttp.Policy{}), tt.url)
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != 200 || string(r.Body) != "hello" || r.Truncated || r.Redirects != 0 {
				t.Errorf("response = %+v", r)
			}
			if diff := cmp.Diff([]string{tt.dials}, w.dialled()); diff != "" {
				t.Errorf("dialled (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRebinding is SSRF-08 and CVE-2025-65513: the name changes its address
// between one lookup and the next.
func TestRebinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("x.example", addrA)
	w.name("x.example", "127.0.0.1")
	w.serve(addrA+":80", text("public"))
	w.serve("127.0.0.1:80", text("loopback"))
	c := w.client(safehttp.Policy{})
	r, err := get(t, c, "http://x.example/")
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Body) != "public" || w.lookups != 1 {
		t.Errorf("body %q after %d lookups, want the public one after one", r.Body, w.lookups)
	}
	c.CloseIdle()
	_, err = get(t, c, "http://x.example/")
	wantReason(t, err, safehttp.BlockedAddress)
	if diff := cmp.Diff([]string{addrA + ":80"}, w.dialled()); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
}

// TestNextAddress: a dead address is followed by the next one, up to a few.
func TestNextAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("x.example", addrA, addrB)
	w.name("dead.example", "8.0.0.1", "8.0.0.2", "8.0.0.3", "8.0.0.4", "8.0.0.5", "8.0.0.6")
	w.serve(addrB+":80", text("second"))
	c := w.client(safehttp.Policy{})
	r, err := get(t, c, "http://x.example/")
	if err != nil || string(r.Body) != "second" {
		t.Fatalf("response = %+v, %v", r, err)
	}
	_, err = get(t, c, "http://dead.example/")
	e := wantReason(t, err, safehttp.ConnectFailed)
	if e.Sent || !strings.Contains(e.Error(), "port 80") {
		t.Errorf("error = %+v", e)
	}
	if got := len(w.dialled()); got != 2+4 {
		t.Errorf("dialled %v", w.dialled())
	}
}

// TestAllowHosts: the operator's list opens what it names and no more.
func TestAllowHosts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		allow  []string
		url    string
		answer string
		want   fault.Reason // empty: allowed
	}{
		{"private name", []string{"search.internal"}, "http://search.internal/", "10.0.0.5", ""},
		{"loopback name", []string{"localhost"}, "http://localhost:8080/", "127.0.0.1", ""},
		{"case and dot", []string{"Search.Internal."}, "http://search.internal/", "10.0.0.5", ""},
		{"own port", []string{"search.internal:8888"}, "http://search.internal:8888/", "10.0.0.5", ""},
		{"address and port", []string{"10.0.0.5:8069"}, "http://10.0.0.5:8069/", "", ""},
		{"IPv6", []string{"fd00::5"}, "http://[fd00::5]/", "", ""},
		{"IPv6 and port", []string{"[fd00::5]:8069"}, "http://[fd00::5]:8069/", "", ""},
		{"shared", []string{"x.example"}, "http://x.example/", "100.64.0.9", ""},
		{"still public", []string{"x.example"}, "http://x.example/", addrA, ""},
		{"another port", []string{"search.internal:8888"}, "http://search.internal/", "10.0.0.5", safehttp.BlockedAddress},
		{"name without port keeps the list of ports", []string{"search.internal"}, "http://search.internal:22/", "10.0.0.5", safehttp.BlockedPort},
		{"another host at the same address", []string{"search.internal"}, "http://x.example/", "10.0.0.5", safehttp.BlockedAddress},
		{"below the host", []string{"search.internal"}, "http://a.search.internal/", "10.0.0.5", safehttp.BlockedAddress},
		{"metadata stays shut", []string{"x.example"}, "http://x.example/", "169.254.169.254", safehttp.BlockedAddress},
		{"metadata stays shut by number", []string{"169.254.169.254"}, "http://169.254.169.254/", "", safehttp.BlockedAddress},
		{"metadata inside unique-local stays shut", []string{"fd00:ec2::254"}, "http://[fd00:ec2::254]/", "", safehttp.BlockedAddress},
		{"multicast stays shut", []string{"x.example"}, "http://x.example/", "224.0.0.1", safehttp.BlockedAddress},
		{"no wildcard", []string{"*"}, "http://x.example/", "10.0.0.5", safehttp.BlockedAddress},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			u, err := safehttp.CheckURL(tt.url)
			if err != nil {
				t.Fatal(err)
			}
			addr := u.Hostname()
			if tt.answer != "" {
				w.name(u.Hostname(), tt.answer)
				addr = tt.answer
			}
			port := u.Port()
			if port == "" {
				port = "80"
			}
			w.serve(net.JoinHostPort(addr, port), text("opened"))
			r, err := get(t, w.client(safehttp.Policy{AllowHosts: tt.allow}), tt.url)
			if tt.want != "" {
				wantReason(t, err, tt.want)
				if d := w.dialled(); len(d) > 0 {
					t.Errorf("dialled %v", d)
				}
				return
			}
			if err != nil || string(r.Body) != "opened" {
				t.Errorf("response = %+v, %v", r, err)
			}
		})
	}
}

func TestPolicyValidate(t *testing.T) {
	t.Parallel()
	good := safehttp.Policy{Ports: []int{1, 65535}, AllowHosts: []string{"a.internal", "a.internal:1", "10.0.0.1", "::1", "[::1]:80"}}
	if err := good.Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
	for want, p := range map[string]safehttp.Policy{
		"port 0":                 {Ports: []int{0}},
		"port 70000":             {Ports: []int{70000}},
		`"http://a/"`:            {AllowHosts: []string{"http://a/"}},
		`"a/b"`:                  {AllowHosts: []string{"a/b"}},
		`"a@b"`:                  {AllowHosts: []string{"a@b"}},
		`"*"`:                    {AllowHosts: []string{"*"}},
		`"127.1"`:                {AllowHosts: []string{"127.1"}},
		`""`:                     {AllowHosts: []string{""}},
		`"10.0.0.0/8"`:           {AllowHosts: []string{"10.0.0.0/8"}},
		"must not be negative":   {MaxBytes: -1},
		"and timeout must not b": {Timeout: -1},
	} {
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate = %v, want it to say %q", err, want)
		}
	}
}

// TestRequestRefused: what cannot be sent is refused before anything happens.
func TestRequestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("x.example", addrA)
	c := w.client(safehttp.Policy{})
	for name, r := range map[string]safehttp.Request{
		"method":       {Method: "CONNECT"},
		"lower case":   {Method: "get"},
		"header name":  {Header: http.Header{"X Y": {"1"}}},
		"header value": {Header: http.Header{"X": {"1\r\nHost: b"}}},
	} {
		r.URL = "http://x.example/"
		_, err := c.Do(t.Context(), r)
		if e := wantReason(t, err, safehttp.BadRequest); e.Sent || len(w.dialled()) > 0 {
			t.Errorf("%s: %+v, dialled %v", name, e, w.dialled())
		}
	}
}

// TestUpstreamHeader is CVE-2026-34476 and CVE-2026-26118: no header of a caller
// chooses the server, and the connection's own headers stay ours.
func TestUpstreamHeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("x.example", addrA)
	var got *http.Request
	w.serve(addrA+":80", func(_ http.ResponseWriter, r *http.Request) { got = r })
	_, err := w.client(safehttp.Policy{UserAgent: "test/1"}).Do(t.Context(), safehttp.Request{
		URL: "http://x.example/", Header: http.Header{"host": {"169.254.169.254"}, "Transfer-Encoding": {"chunked"},
			"Connection": {"X-Kept"}, "Proxy-Authorization": {"Basic x"}, "x-kept": {"1"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{"User-Agent": {"test/1"}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip, deflate"}, "X-Kept": {"1"}}
	if diff := cmp.Diff(want, got.Header); diff != "" || got.Host != "x.example" {
		t.Errorf("host %q, headers (-want +got):\n%s", got.Host, diff)
	}
}

// TestRealNetwork uses the system's resolver and real sockets: a server on
// loopback that must see nothing, in whatever way its address is spelt.
func TestRealNetwork(t *testing.T) {
	t.Parallel()
	var accepted atomic.Int32
	server := httptest.NewUnstartedServer(text("loopback"))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			accepted.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	_, portText, _ := net.SplitHostPort(server.Listener.Addr().String())
	c := safehttp.New(safehttp.Policy{Ports: []int{port}})
	t.Cleanup(c.CloseIdle)
	for _, host := range []string{"127.0.0.1", "localhost", "localhost.", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0",
		"0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "①②⑦.⓪.⓪.①", "127。0。0。1", "ⓛocalhost"} {
		if r, err := get(t, c, "http://"+host+":"+portText+"/"); err == nil {
			t.Errorf("%s: fetched %+v", host, r)
		}
	}
	if n := accepted.Load(); n != 0 {
		t.Errorf("%d connections reached loopback", n)
	}
	opened := safehttp.New(safehttp.Policy{AllowHosts: []string{"127.0.0.1:" + portText}})
	t.Cleanup(opened.CloseIdle)
	if r, err := get(t, opened, server.URL); err != nil || string(r.Body) != "loopback" || accepted.Load() != 1 {
		t.Errorf("opened by the operator: %+v, %v, %d connections", r, err, accepted.Load())
	}
}

// TestFault: the error is its own answer to a tool call.
func TestFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("x.example", "10.0.0.1")
	_, err := get(t, w.client(safehttp.Policy{}), "http://x.example/?key=s3cret")
	f, ok := fault.Of(err)
	if !ok {
		t.Fatalf("fault.Of(%v) found none", err)
	}
	want := fault.New("blocked_address", "x.example has an address that is not public (private)")
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("fault (-want +got):\n%s", diff)
	}
}
