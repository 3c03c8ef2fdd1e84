package licence_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"pawgate/internal/licence"
	"pawgate/internal/tool"
)

var (
	now   = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	key   = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	other = ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", ed25519.SeedSize)))
)

const day = 24 * time.Hour

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

func pro(expires time.Time) licence.Licence {
	return licence.Licence{ID: "l1", Customer: "Wattle 台灣股份有限公司", Edition: tool.Pro, Agents: 5, Issued: now, NotBefore: now, Expires: expires}
}

func sign(t *testing.T, l licence.Licence) string {
	t.Helper()
	text, err := licence.Sign(l, key, now)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSignCheck(t *testing.T) {
	t.Parallel()
	want := pro(now.Add(365 * day))
	got, err := licence.Check(" "+sign(t, want)+"\n", public(key), now)
	if err != nil {
		t.Fatal(err)
	}
	got.Issued, got.NotBefore, got.Expires = got.Issued.UTC(), got.NotBefore.UTC(), got.Expires.UTC()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	filled, err := licence.Check(sign(t, licence.Licence{Customer: "c", Edition: tool.Enterprise, Expires: now.Add(day)}), public(key), now)
	if err != nil || len(filled.ID) != 16 || !filled.Issued.Equal(now) || !filled.NotBefore.Equal(now) {
		t.Errorf("not filled in: %+v, %v", filled, err)
	}
}

// TestState walks through the life of a licence, at its edges.
func TestState(t *testing.T) {
	t.Parallel()
	l := pro(now.Add(365 * day))
	tests := []struct {
		name    string
		at      time.Time
		state   licence.State
		left    int
		edition tool.Edition
		agents  int
		notice  string
	}{
		{"before it begins", now.Add(-time.Hour), licence.Pending, 1, tool.Community, 0, "begins in 1 day"},
		{"when it begins", now, licence.Valid, 365, tool.Pro, 5, ""},
		{"31 days before", l.Expires.Add(-31 * day), licence.Valid, 31, tool.Pro, 5, ""},
		{"30 days before", l.Expires.Add(-30 * day), licence.Valid, 30, tool.Pro, 5, "expires in 30 days, on 2027-12-01; renew it"},
		{"the last second", l.Expires.Add(-time.Second), licence.Valid, 1, tool.Pro, 5, "expires in 1 day, on 2027-12-01; renew it"},
		{"at expiry", l.Expires, licence.Grace, 14, tool.Pro, 5, "expired on 2027-12-01; it is accepted for 14 days more"},
		{"the last second of grace", l.Expires.Add(licence.GracePeriod - time.Second), licence.Grace, 1, tool.Pro, 5, "accepted for 1 day more"},
		{"after the grace", l.Expires.Add(licence.GracePeriod), licence.Expired, 0, tool.Community, 0, "its 14 days of grace are over: this is the community edition"},
		{"long after", l.Expires.Add(5 * 365 * day), licence.Expired, 0, tool.Community, 0, "this is the community edition"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if state, left := l.State(tt.at); state != tt.state || left != tt.left {
				t.Errorf("State = %s, %d, want %s, %d", state, left, tt.state, tt.left)
			}
			if got := l.EditionAt(tt.at); got != tt.edition {
				t.Errorf("EditionAt = %s, want %s", got, tt.edition)
			}
			if got := l.AgentLimit(tt.at); got != tt.agents {
				t.Errorf("AgentLimit = %d, want %d", got, tt.agents)
			}
			if got := l.Notice(tt.at); (tt.notice == "") != (got == "") || !strings.Contains(got, tt.notice) {
				t.Errorf("Notice = %q, want %q", got, tt.notice)
			}
		})
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	with := func(e tool.Edition) licence.Licence {
		l := pro(now.Add(day))
		l.Edition = e
		return l
	}
	later := now.Add(day + licence.GracePeriod)
	tests := []struct {
		licence licence.Licence
		at      time.Time
		want    map[tool.Edition]bool
	}{
		{licence.Licence{}, now, map[tool.Edition]bool{tool.Community: true}},
		{with(tool.Community), now, map[tool.Edition]bool{tool.Community: true}},
		{with(tool.Pro), now, map[tool.Edition]bool{tool.Community: true, tool.Pro: true}},
		{with(tool.Enterprise), now, map[tool.Edition]bool{tool.Community: true, tool.Pro: true, tool.Enterprise: true}},
		{with(tool.Enterprise), later, map[tool.Edition]bool{tool.Community: true}},
	}
	for _, tt := range tests {
		for _, e := range []tool.Edition{tool.Community, tool.Pro, tool.Enterprise, "platinum"} {
			if got := tt.licence.Allows(e, tt.at); got != tt.want[e] {
				t.Errorf("a licence for %q allows %s at %s: %v", tt.licence.Edition, e, tt.at, got)
			}
		}
		if !tt.licence.Allows("", tt.at) {
			t.Error("a tool without an edition is in each of them")
		}
	}
	if state, _ := (licence.Licence{}).State(now); state != licence.None || (licence.Licence{}).Notice(now) != "" {
		t.Errorf("no licence is %s", state)
	}
}

func TestCheck_refused(t *testing.T) {
	t.Parallel()
	genuine := sign(t, pro(now.Add(365*day)))
	parts := strings.Split(genuine, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	better := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(payload), `"pro"`, `"enterprise"`, 1)))
	claims := jwt.MapClaims{"iss": "pawgate-licence", "sub": "c", "edition": "pro", "iat": now.Unix(), "exp": now.Add(day).Unix()}
	forge := func(method jwt.SigningMethod, k any, typ string, c jwt.MapClaims) string {
		token := jwt.NewWithClaims(method, c)
		token.Header["typ"] = typ
		text, err := token.SignedString(k)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	changed := func(name string, value any) jwt.MapClaims {
		c := jwt.MapClaims{}
		for k, v := range claims {
			c[k] = v
		}
		if c[name] = value; value == nil {
			delete(c, name)
		}
		return c
	}
	const typ = "pawgate-licence+jwt"
	tests := []struct{ name, text, want string }{
		{"another key", func() string { text, _ := licence.Sign(pro(now.Add(day)), other, now); return text }(), "signed with another key"},
		{"a larger edition", parts[0] + "." + better + "." + parts[2], "it was changed"},
		{"a changed signature", genuine[:len(genuine)-8] + "AAAAAAAA", "it was changed"},
		{"cut off", genuine[:len(genuine)/2], "cut off"},
		{"no signature", parts[0] + "." + parts[1] + ".", "it was changed"},
		{"AUTH-10 alg none", forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, typ, claims), "it was changed"},
		{"AUTH-10 HS256 with the public key", forge(jwt.SigningMethodHS256, []byte(public(key)), typ, claims), "it was changed"},
		{"an assertion of the same key", forge(jwt.SigningMethodEdDSA, key, "JWT", claims), "another purpose"},
		{"another issuer", forge(jwt.SigningMethodEdDSA, key, typ, changed("iss", "x")), "another purpose"},
		{"no expiry", forge(jwt.SigningMethodEdDSA, key, typ, changed("exp", nil)), "no dates"},
		{"no issue", forge(jwt.SigningMethodEdDSA, key, typ, changed("iat", nil)), "no dates"},
		{"unknown edition", forge(jwt.SigningMethodEdDSA, key, typ, changed("edition", "platinum")), `the edition must be community, pro or enterprise, not "platinum"`},
		{"no customer", forge(jwt.SigningMethodEdDSA, key, typ, changed("sub", nil)), "the customer must be"},
		{"fewer than no agents", forge(jwt.SigningMethodEdDSA, key, typ, changed("agents", -1)), "the number of agents"},
		{"expiry before the beginning", forge(jwt.SigningMethodEdDSA, key, typ, changed("nbf", now.Add(2*day).Unix())), "the expiry must be after the beginning"},
		{"expiry as text", forge(jwt.SigningMethodEdDSA, key, typ, changed("exp", "tomorrow")), "cut off or no licence"},
		{"not a token", "hello", "cut off or no licence"},
		{"too long", strings.Repeat("x", 5000), "longer than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, err := licence.Check(tt.text, public(key), now)
			if !errors.Is(err, licence.ErrLicence) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if l != (licence.Licence{}) {
				t.Errorf("a refused licence gives %+v", l)
			}
			if err != nil && len(tt.text) > 20 && strings.Contains(err.Error(), tt.text[:20]) {
				t.Errorf("the error quotes the text: %v", err)
			}
		})
	}
	for at := range len(genuine) {
		changed := []byte(genuine)
		changed[at] ^= 1
		if l, err := licence.Check(string(changed), public(key), now); err == nil {
			t.Fatalf("byte %d changed, and still %+v", at, l)
		}
	}
}

// TestCheck_clock: a clock that was turned back does not make an expired
// licence good again without limit.
func TestCheck_clock(t *testing.T) {
	t.Parallel()
	text := sign(t, pro(now.Add(365*day)))
	if _, err := licence.Check(text, public(key), now.Add(-23*time.Hour)); err != nil {
		t.Errorf("a clock that is hours behind: %v", err)
	}
	_, err := licence.Check(text, public(key), now.Add(-25*time.Hour))
	if !errors.Is(err, licence.ErrLicence) || !strings.Contains(err.Error(), "in the future; set this machine's clock") {
		t.Errorf("a clock that is days behind: %v", err)
	}
	for _, later := range []time.Duration{365 * day, 400 * day, 5000 * day} {
		if _, err := licence.Check(text, public(key), now.Add(later)); err != nil {
			t.Errorf("expired is a state, no error: %v", err)
		}
	}
}

func TestCheck_none(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " \n"} {
		l, err := licence.Check(text, nil, now)
		if err != nil || l != (licence.Licence{}) || l.EditionAt(now) != tool.Community {
			t.Errorf("Check(%q) = %+v, %v", text, l, err)
		}
	}
	if _, err := licence.Check("x.y.z", nil, now); !errors.Is(err, licence.ErrLicence) {
		t.Errorf("a licence without a key to check it: %v", err)
	}
}

func TestSign_refused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*licence.Licence)
		want   string
	}{
		{"no customer", func(l *licence.Licence) { l.Customer = "" }, "the customer must be"},
		{"customer of two lines", func(l *licence.Licence) { l.Customer = "a\nb" }, "the customer must be"},
		{"unknown edition", func(l *licence.Licence) { l.Edition = "gold" }, "the edition must be"},
		{"negative agents", func(l *licence.Licence) { l.Agents = -1 }, "the number of agents"},
		{"no expiry", func(l *licence.Licence) { l.Expires = time.Time{} }, "the expiry is missing"},
		{"expired", func(l *licence.Licence) { l.Issued, l.NotBefore, l.Expires = now.Add(-9*day), now.Add(-9*day), now }, "lies in the past"},
		{"begins after its expiry", func(l *licence.Licence) { l.NotBefore = now.Add(900 * day) }, "after the beginning"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := pro(now.Add(365 * day))
			tt.change(&l)
			if _, err := licence.Sign(l, key, now); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := licence.Sign(pro(now.Add(day)), nil, now); err == nil {
		t.Error("signed without a key")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	private, pub, err := licence.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	signing, err := licence.ParsePrivateKey(private + "\n")
	if err != nil {
		t.Fatal(err)
	}
	text, err := licence.Sign(pro(now.Add(day)), signing, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cfg  licence.Config
		want string // of the error; empty: none
	}{
		{licence.Config{}, ""},
		{licence.Config{PublicKey: pub}, ""},
		{licence.Config{Token: text, PublicKey: pub}, ""},
		{licence.Config{Token: text}, "PAWGATE_LICENCE is set but PAWGATE_LICENCE_KEY"},
		{licence.Config{Token: text, PublicKey: "AAAA"}, "PAWGATE_LICENCE_KEY: read licence public key: want the base64 of 32 bytes"},
		{licence.Config{Token: text, PublicKey: private}, "PAWGATE_LICENCE: licence refused"},
		{licence.Config{Token: text + "x", PublicKey: pub}, "PAWGATE_LICENCE: licence refused"},
	} {
		l, err := tt.cfg.Check(now)
		if got := fmt.Sprint(err); (tt.want == "") != (err == nil) || !strings.HasPrefix(got, tt.want) && tt.want != "" {
			t.Errorf("error %v, want %q", err, tt.want)
		}
		if wantPro := tt.want == "" && tt.cfg.Token != ""; l.Allows(tool.Pro, now) != wantPro {
			t.Errorf("%+v allows pro: %v", l, !wantPro)
		}
	}
	if _, err := licence.ParsePrivateKey("AAAA"); err == nil || strings.Contains(err.Error(), "AAAA") {
		t.Errorf("ParsePrivateKey: %v", err)
	}
}
