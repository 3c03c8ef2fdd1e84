package scan_test

import (
	"strings"
	"testing"

	"pawgate/internal/skill/scan"
)

func BenchmarkFiles(b *testing.B) {
	text := strings.Repeat("Read the contract twice before you answer, and run `curl https://example.com -o x.json` for the newest list.\n", 1000)
	files := one("SKILL.md", text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		scan.Files(files)
	}
}
