package terms_test

import (
	"slices"
	"testing"

	"pawgate/internal/terms"
)

func TestSame(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		a, b string
		want bool
	}{
		"order of phrases":     {"Ann moved to Rome in March 2024", "In March 2024 Ann moved to Rome", true},
		"function words":       {"Ann moved to Rome in March 2024", "Ann has moved to Rome, March 2024.", true},
		"word forms":           {"Ann moves to Rome in March 2024", "Ann moved to Rome in March 2024", true},
		"one word more":        {"Ann moved to Rome in March 2024", "Ann finally moved to Rome in March 2024", true},
		"Chinese order":        {"三月安娜搬到羅馬工作", "安娜三月搬到羅馬工作", true},
		"another place":        {"Ann moved to Rome in March 2024", "Ann moved to Paris in March 2024", false},
		"another number":       {"the port of the service is 8080", "the port of the service is 8081", false},
		"negated":              {"Ann likes strong green tea", "Ann does not like strong green tea", false},
		"negated, contraction": {"Ann likes strong green tea", "Ann doesn't like strong green tea", false},
		"roles changed":        {"Ann helped Bob yesterday", "Bob helped Ann yesterday", false},
		"Chinese negated":      {"她喜歡喝綠茶", "她不喜歡喝綠茶", false},
		"Chinese roles":        {"小明打小華", "小華打小明", false},
		"Chinese day":          {"會議改到星期一下午", "會議改到星期二下午", false},
		"much more":            {"Ann moved to Rome", "Ann moved to Rome because her brother opened a bakery there", false},
		"too short":            {"green tea", "green tea", false},
		"identifiers":          {"set max_open_conns to 20", "set max_idle_conns to 20", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if terms.Same(tc.a, tc.b) != tc.want || terms.Same(tc.b, tc.a) != tc.want {
				t.Errorf("same %v, want %v: keys %q and %q", !tc.want, tc.want, terms.Keys(tc.a), terms.Keys(tc.b))
			}
		})
	}
}

func TestKeysAreTerms(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Ann moved to Rome", "Häuser gekauft", "今天讨论了部署方案", "v1.2.3 don't 🚀", "les chevaux sont là", "встречи в Москве"} {
		have := texts(terms.Document(text))
		for _, key := range terms.Keys(text) {
			if !slices.Contains(have, key) {
				t.Errorf("key %q of %q is no term of it: %q", key, text, have)
			}
		}
	}
}
