package scan

import "testing"

// Every rule has hints: without them it would be matched against whole files,
// which takes seconds for a large one.
func TestHints(t *testing.T) {
	t.Parallel()
	for _, r := range rules() {
		if len(r.hints) == 0 || shortest(r.hints) < 2 {
			t.Errorf("%s has the hints %q: %s", r.id, r.hints, r.rule.pattern)
		}
	}
}
