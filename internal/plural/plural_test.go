package plural_test

import (
	"testing"

	"pawgate/internal/plural"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 files":    plural.Of(0, "file"),
		"1 file":     plural.Of(1, "file"),
		"2 files":    plural.Of(int64(2), "file"),
		"1 memory":   plural.Of(int32(1), "memory", "memories"),
		"3 memories": plural.Of(3, "memory", "memories"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
