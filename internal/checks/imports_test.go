package checks

import (
	"slices"
	"strings"
	"testing"
)

// rule forbids imports. A pattern ends in "/" for everything below it.
type rule struct {
	from   string
	except []string // packages that the rule does not bind
	never  []string
	deep   bool // through others too
	why    string
}

var rules = []rule{
	{from: "internal/", except: []string{"internal/router", "internal/e2e", "internal/e2e/"}, never: []string{"github.com/mark3labs/mcp-go/"},
		why: "mcp-go speaks the protocol in the router and nowhere else; its package init alone costs a cold start 12 ms"},
	{from: "internal/category/", except: []string{"internal/category"}, never: []string{"pawgate/internal/router", "pawgate/internal/serve"},
		why: "a category does not know how it is hosted"},
	{from: "internal/category/", except: []string{"internal/category", "internal/category/control"}, never: []string{"pawgate/internal/policy", "pawgate/internal/standing"},
		why: "a category does not know who decides; only control's tools are about decisions"},
	{from: "functions/router", never: []string{"pawgate/internal/category/", "pawgate/internal/category"}, deep: true,
		why: "the router links no category: it serves the catalogue"},
	{from: "functions/", except: []string{"functions/router", "functions/admin", "functions/agent-worker"}, never: []string{"pawgate/internal/router", "github.com/mark3labs/mcp-go/", "github.com/aws/aws-sdk-go-v2/service/lambda"}, deep: true,
		why: "a category's function links no MCP server and no Invoke client, which keeps its cold start near an empty function's"},
	{from: "internal/policy", never: []string{"pawgate/internal/postgres", "pawgate/internal/router", "net/http", "os", "github.com/jackc/"},
		why: "decisions are pure: no I/O"},
	{from: "internal/tool", never: []string{"pawgate/internal/postgres", "pawgate/internal/router", "net/http", "github.com/jackc/"},
		why: "what a tool is depends on nothing but caller and fault"},
	{from: "internal/caller", never: []string{"pawgate/"}, why: "caller is at the bottom"},
	{from: "internal/fault", never: []string{"pawgate/"}, why: "fault is at the bottom"},
	{from: "internal/client/", never: []string{"pawgate/internal/category/", "pawgate/internal/router", "pawgate/internal/serve", "pawgate/internal/postgres"},
		why: "a client speaks to one outside system and knows nobody here"},
	{from: "internal/postgres", never: []string{"pawgate/internal/category/", "pawgate/internal/router", "pawgate/internal/serve"},
		why: "the store knows no tools"},
	{from: "internal/", except: []string{"internal/postgres/postgrestest", "internal/e2e", "internal/e2e/"}, never: []string{"pawgate/local/"},
		why: "local/ puts things together; nothing below may depend on it, except that tests borrow its private database"},
}

// TestImportDirection: mains → category, router, loop → one category, serve →
// client, postgres, catalog → tool, policy → caller, fault.
func TestImportDirection(t *testing.T) {
	for _, p := range packages(t) {
		for _, r := range rules {
			if !covers(r.from, p.path()) || slices.ContainsFunc(r.except, func(e string) bool { return covers(e, p.path()) }) {
				continue
			}
			imports := p.Imports
			if r.deep {
				imports = p.Deps
			}
			for _, imported := range imports {
				if slices.ContainsFunc(r.never, func(n string) bool { return covers(n, imported) }) {
					t.Errorf("%s imports %s: %s", p.path(), imported, r.why)
				}
			}
		}
	}
}

// TestCategoriesAreStrangers: two categories that need the same thing push it
// down; they never call each other.
func TestCategoriesAreStrangers(t *testing.T) {
	for _, p := range packages(t) {
		own, ok := categoryOf(p.ImportPath)
		if !ok {
			continue
		}
		for _, imported := range p.Imports {
			if other, ok := categoryOf(imported); ok && other != own {
				t.Errorf("category %s imports category %s: a category never imports another", own, other)
			}
		}
	}
}

func categoryOf(importPath string) (string, bool) {
	rest, ok := strings.CutPrefix(importPath, "pawgate/internal/category/")
	name, _, _ := strings.Cut(rest, "/")
	return name, ok
}

// covers: "a/b" covers itself, "a/b/" everything below.
func covers(pattern, path string) bool {
	if strings.HasSuffix(pattern, "/") {
		return strings.HasPrefix(path, pattern)
	}
	return path == pattern
}

// TestPackageDocs: every package says what it is for.
func TestPackageDocs(t *testing.T) {
	for _, p := range packages(t) {
		switch {
		case len(p.GoFiles) == 0:
		case p.Doc == "":
			t.Errorf("%s has no package doc: a newcomer reads that first", p.path())
		case p.Name != "main" && !strings.HasPrefix(p.Doc, "Package "+p.Name+" "):
			t.Errorf("%s: the package doc must begin with %q", p.path(), "Package "+p.Name)
		}
	}
}
