package people_test

import (
	"strings"
	"testing"

	"pawgate/internal/fault"
	"pawgate/internal/people"
)

func TestAccount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ channel, id, want, refused string }{
		{"telegram", "-100123", "telegram -100123", ""},
		{" Telegram ", " @Mei_Lin ", "telegram @Mei_Lin", ""},
		{"line", "U0123456789abcdef", "line U0123456789abcdef", ""},
		{"email", "Mei.Lin@Example.COM", "email mei.lin@example.com", ""},
		{"slack", "T1/U2:x", "slack T1/U2:x", ""},
		{"webchat", "美玲", "webchat 美玲", ""},
		{"fax", "1", "", "channel"},
		{"", "1", "", "channel"},
		{"line", "", "", "subject"},
		{"line", "a b", "", "subject"},
		{"line", "a\nb", "", "subject"},
		{"line", "a\x00", "", "subject"},
		{"line", "a\u202eb", "", "subject"},
		{"line", "a\u200bb", "", "subject"},
		{"line", strings.Repeat("x", 201), "", "subject"},
	} {
		channel, id, err := people.Account(c.channel, c.id, "subject")
		refused := ""
		if e, ok := fault.InvalidOf(err); ok {
			refused = e.Parameter
		}
		if got := strings.TrimSpace(channel + " " + id); got != c.want || refused != c.refused {
			t.Errorf("%q %q: %q, refused %q; want %q, %q", c.channel, c.id, got, refused, c.want, c.refused)
		}
	}
}
