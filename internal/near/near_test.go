package near_test

import (
	"strings"
	"testing"

	"pawgate/internal/near"
)

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	among := []string{"memory_search", "memory_store", "web_search"}
	for word, want := range map[string]string{
		"memory_serch":            "; did you mean memory_search?",
		"web_search":              "; did you mean web_search?",
		"odoo_report":             "",
		"web":                     "",
		"":                        "",
		strings.Repeat("x", 5000): "",
	} {
		if got := near.DidYouMean(word, among); got != want {
			t.Errorf("%.20s: %q, want %q", word, got, want)
		}
	}
}
