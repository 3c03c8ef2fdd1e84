package stdio

import (
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestImports holds what the package doc promises: nothing here can start a
// process (CVE-2025-6514) or leans on an MCP library that would re-encode.
func TestImports(t *testing.T) {
	t.Parallel()
	banned := map[string]string{
		"os/exec":                     "a pump starts no process",
		"os":                          "a pump has no files and no environment; its ends are Options",
		"github.com/mark3labs/mcp-go": "messages go on byte for byte, never re-encoded",
		"pawgate/":                    "the pump knows no part of the router",
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, imp := range f.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			for ban, why := range banned {
				if path == ban || strings.HasPrefix(path, strings.TrimSuffix(ban, "/")+"/") {
					t.Errorf("%s imports %s: %s", file.Name(), path, why)
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no file was checked")
	}
}
