package supervise_test

import (
	"strings"
	"testing"

	"pawgate/internal/client/llama/supervise"
)

func TestClean_INF_14(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"loading /home/alice/models/x.gguf":        "loading x.gguf",
		"failed: '/var/lib/x y/z.gguf' gone":       "failed: 'x y/z.gguf' gone",
		`open "C:\Users\alice\x.gguf"`:             `open "x.gguf"`,
		"path=/srv/pawgate/x, retry":               "path=x, retry",
		"file:///etc/passwd":                       "file:passwd",
		"Use --ui/--no-ui (or --webui/--no-webui)": "Use --ui/--no-ui (or --webui/--no-webui)",
		"eval 4.26 tokens/second, 3/4 done":        "eval 4.26 tokens/second, 3/4 done",
		"\x1b[31mred\x1b[0m \x07bell \xff":         "red bell ?",
		"(/home/alice/x)":                          "(x)",
		strings.Repeat("a", 400):                   strings.Repeat("a", 300) + "…",
	} {
		if got := supervise.Clean(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
