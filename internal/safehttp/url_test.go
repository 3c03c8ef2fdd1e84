package safehttp_test

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"pawgate/internal/fault"
	"pawgate/internal/safehttp"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, want string }{
		{"plain", "https://example.com/a?b=c#d", "https://example.com/a?b=c#d"},
		{"spaces around", "  https://example.com/\n", "https://example.com/"},
		{"case", "HTTPS://EXAMPLE.Com/A", "https://example.com/A"},
		{"no path", "http://example.com", "http://example.com"},
		{"port", "http://example.com:0080/", "http://example.com:80/"},
		{"empty port", "http://example.com:/", "http://example.com/"},
		{"SSRF-15 trailing dot", "http://localhost./", "http://localhost/"},
		{"SSRF-15 trailing dot on an address", "http://169.254.169.254./", "http://169.254.169.254/"},
		{"SSRF-15 ideographic trailing dot", "http://metadata.google.internal。/", "http://metadata.google.internal/"},
		{"SSRF-23 circled digits", "http://①②⑦.⓪.⓪.①/", "http://127.0.0.1/"},
		{"SSRF-23 superscript", "http://¹27.0.0.1/", "http://127.0.0.1/"},
		{"SSRF-23 full-width dots", "http://127。0。0。1/", "http://127.0.0.1/"},
		{"SSRF-23 full-width digits, percent-encoded", "http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1/", "http://127.0.0.1/"},
		{"SSRF-23 soft hyphen", "http://12\u00ad7.0.0.1/", "http://127.0.0.1/"},
		{"SSRF-23 full-width name", "http://ｌocalhost/", "http://localhost/"},
		{"SSRF-01 mapped", "http://[::ffff:169.254.169.254]/", "http://169.254.169.254/"},
		{"SSRF-01 mapped hex", "http://[::ffff:a9fe:a9fe]/", "http://169.254.169.254/"},
		{"IPv6", "http://[2606:4700:0::1111]:8080/", "http://[2606:4700::1111]:8080/"},
		{"IDN", "https://Bücher.example/", "https://xn--bcher-kva.example/"},
		{"IDN Chinese", "https://例え.テスト/", "https://xn--r8jz45g.xn--zckzah/"},
		{"A-label", "https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"},
		{"underscore", "https://my_bucket.example/", "https://my_bucket.example/"},
		{"hyphens", "https://r3---sn-abc.example/", "https://r3---sn-abc.example/"},
		{"at in the path", "https://example.com/@user", "https://example.com/@user"},
		{"backslash in the query", `https://example.com/?q=a\b`, `https://example.com/?q=a\b`},
		{"backslash in the fragment", `https://example.com/#a\b`, "https://example.com/#a%5Cb"},
		{"space in the path", "https://example.com/a b", "https://example.com/a%20b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := safehttp.CheckURL(tt.raw)
			if err != nil {
				t.Fatalf("CheckURL(%q): %v", tt.raw, err)
			}
			if got.String() != tt.want {
				t.Errorf("CheckURL(%q) = %q, want %q", tt.raw, got, tt.want)
			}
		})
	}
}

func TestCheckURLRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, raw string
		reason    fault.Reason
		says      string
	}{
		{"empty", "", safehttp.BadURL, "empty"},
		{"blank", " \t", safehttp.BadURL, "empty"},
		{"too long", "http://a.example/" + strings.Repeat("a", 8200), safehttp.BadURL, "8192"},
		{"no scheme", "example.com/path", safehttp.BadURL, "must start with https://"},
		{"protocol-relative", "//example.com/", safehttp.BadURL, "must start with https://"},
		{"no host", "http:///path", safehttp.BadURL, "no host"},
		{"one slash", "http:/example.com", safehttp.BadURL, "no host"},
		{"no slash", "http:example.com", safehttp.BadURL, "no host"},
		{"only a port", "http://:80/", safehttp.BadURL, "not a valid name"},
		{"SSRF-11 file", "file:///etc/passwd", safehttp.BlockedScheme, "only https:// and http://"},
		{"SSRF-11 gopher", "gopher://example.com/_x", safehttp.BlockedScheme, "only https:// and http://"},
		{"SSRF-11 ftp", "ftp://example.com/", safehttp.BlockedScheme, "only https:// and http://"},
		{"SSRF-11 data", "data:text/html,hi", safehttp.BlockedScheme, "only https:// and http://"},
		{"SSRF-11 javascript", "javascript:alert(1)", safehttp.BlockedScheme, "only https:// and http://"},
		{"SSRF-13 userinfo", "http://public.example:80@169.254.169.254/", safehttp.BadURL, "user name or password"},
		{"SSRF-13 user only", "http://public.example@169.254.169.254/", safehttp.BadURL, "user name or password"},
		{"SSRF-13 two at signs", "http://a@b@169.254.169.254/", safehttp.BadURL, ""},
		{"SSRF-14 backslash", `http://127.0.0.1:6666\@1.1.1.1/`, safehttp.BadURL, "backslash"},
		{"SSRF-14 backslashes for slashes", `http:\\127.0.0.1\`, safehttp.BadURL, "backslash"},
		{"SSRF-04 zone", "http://[fe80::1%25eth0]/", safehttp.BadURL, "zone"},
		{"SSRF-05 decimal", "http://2130706433/", safehttp.BadURL, "odd spelling"},
		{"SSRF-05 hex", "http://0x7f000001/", safehttp.BadURL, "odd spelling"},
		{"SSRF-05 hex, capital", "http://0X7F000001/", safehttp.BadURL, "odd spelling"},
		{"SSRF-05 octal", "http://0177.0.0.1/", safehttp.BadURL, "odd spelling"},
		{"SSRF-05 short", "http://127.1/", safehttp.BadURL, "odd spelling"},
		{"SSRF-05 mixed", "http://0x7f.0.0x0.01/", safehttp.BadURL, "odd spelling"},
		{"SSRF-05 trailing dot", "http://127.1./", safehttp.BadURL, "odd spelling"},
		{"SSRF-05 full-width decimal", "http://２１３０７０６４３３/", safehttp.BadURL, "odd spelling"},
		{"SSRF-05 public in decimal", "http://134744072/", safehttp.BadURL, "odd spelling"},
		{"SSRF-06 zero", "http://0/", safehttp.BadURL, "odd spelling"},
		{"five numbers", "http://1.2.3.4.5/", safehttp.BadURL, "odd spelling"},
		{"number too big", "http://256.256.256.256/", safehttp.BadURL, "odd spelling"},
		{"control character", "http://a.example/\x00", safehttp.BadURL, "control character"},
		{"newline", "http://a.example/\r\nHost: b", safehttp.BadURL, "control character"},
		{"space in the host", "http://a b.example/", safehttp.BadURL, "cannot be read"},
		{"slash hidden in the host", "http://a.example℀b/", safehttp.BadURL, "not a valid name"},
		{"empty label", "http://a..example/", safehttp.BadURL, "not a valid name"},
		{"two dots at the end", "http://example.com../", safehttp.BadURL, "not a valid name"},
		{"not UTF-8", "http://\xfb/", safehttp.BadURL, "not a valid name"},
		{"label too long", "http://" + strings.Repeat("a", 64) + ".example/", safehttp.BadURL, "not a valid name"},
		{"name too long", "http://" + strings.Repeat("a.", 130) + "example/", safehttp.BadURL, "253"},
		{"broken A-label", "http://xn--a.example/", safehttp.BadURL, "not a valid name"},
		{"port zero", "http://a.example:0/", safehttp.BadURL, "between 1 and 65535"},
		{"port too big", "http://a.example:65616/", safehttp.BadURL, "between 1 and 65535"},
		{"port not a number", "http://a.example:http/", safehttp.BadURL, "cannot be read"},
		{"bare IPv6", "http://::1/", safehttp.BadURL, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := safehttp.CheckURL(tt.raw)
			if err == nil {
				t.Fatalf("CheckURL(%q) = %q, want %s", tt.raw, got, tt.reason)
			}
			e := wantReason(t, err, tt.reason)
			if !strings.Contains(e.Error(), tt.says) {
				t.Errorf("error = %q, want it to say %q", e, tt.says)
			}
		})
	}
}

// TestErrorsKeepSecrets: a refused URL is never repeated.
func TestErrorsKeepSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.name("private.example", "10.0.0.1")
	w.name("dead.example", addrA)
	c := w.client(safehttp.Policy{})
	for _, raw := range []string{
		"http://user:s3cret@private.example/",
		"http://s3cret@private.example/",
		"http://private.example/s3cret?key=s3cret#s3cret",
		"http://dead.example/s3cret?key=s3cret",
		"http://nowhere.example/?key=s3cret",
		"http://private.example:25/?key=s3cret",
		"http://a.example:s3cret/",
		"http://a.example/%zz?key=s3cret",
		"s3cret://a.example/",
		`http://a\s3cret/`,
	} {
		_, err := get(t, c, raw)
		if err == nil {
			t.Fatalf("Do(%q) succeeded", raw)
		}
		if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "10.0.0.") {
			t.Errorf("Do(%q): error %q gives something away", raw, err)
		}
	}
}

// FuzzCheckURL: whatever is accepted is plain, stable and survives the standard
// parser unchanged.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/a?b=c", "http://①②⑦.⓪.⓪.①/", "http://[::ffff:a9fe:a9fe]:80/", "http://u:p@h/", `http://a\@b/`,
		"http://0x7f.1/", "http://xn--bcher-kva.example./", "http://[fe80::1%25eth0]/", "http:a", "//b", "http://a。b:8080/?q=1#f",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := safehttp.CheckURL(raw)
		if err != nil {
			wantRefusal(t, err)
			return
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Opaque != "" {
			t.Fatalf("CheckURL(%q) accepted %#v", raw, u)
		}
		host := u.Hostname()
		if host == "" || strings.HasSuffix(host, ".") || strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789-_.:") != "" {
			t.Fatalf("CheckURL(%q) left the host %q", raw, host)
		}
		last := host[strings.LastIndex(host, ".")+1:]
		if _, err := netip.ParseAddr(host); err != nil && strings.Trim(last, "0123456789") == "" {
			t.Fatalf("CheckURL(%q) left %q, an address to some resolvers", raw, host)
		}
		parsed, err := url.Parse(u.String())
		if err != nil || parsed.Host != u.Host {
			t.Fatalf("CheckURL(%q) = %q, which the standard parser reads as %v, %v", raw, u, parsed, err)
		}
		if len(u.String()) > 8192 {
			return // escaping made it longer than is read
		}
		again, err := safehttp.CheckURL(u.String())
		if err != nil || again.String() != u.String() {
			t.Fatalf("CheckURL(%q) = %q, checked again %v, %v", raw, u, again, err)
		}
	})
}

func wantRefusal(t *testing.T, err error) {
	t.Helper()
	var e *safehttp.Error
	if !errors.As(err, &e) || e.Reason != safehttp.BadURL && e.Reason != safehttp.BlockedScheme {
		t.Fatalf("error = %v (%T), want bad_url or blocked_scheme", err, err)
	}
}
