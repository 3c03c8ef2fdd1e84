package checks

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Limits of size, in lines. A file or function beyond them wants a name of
// its own for a part.
const (
	maxFile     = 400
	maxFunction = 80
)

// TestSizes keeps files and functions readable.
func TestSizes(t *testing.T) {
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		if lines := set.File(file.Pos()).LineCount(); lines > maxFile {
			t.Errorf("%s has %d lines, more than %d", name, lines, maxFile)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; lines > maxFunction {
				t.Errorf("%s: %s has %d lines, more than %d", name, f.Name.Name, lines, maxFunction)
			}
		}
	})
}

// TestDocs: what a package exports says what it is.
func TestDocs(t *testing.T) {
	eachGoFile(t, func(name string, _ *token.FileSet, file *ast.File) {
		if strings.HasSuffix(name, "_test.go") || file.Name.Name == "main" {
			return
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil {
					t.Errorf("%s: %s has no doc comment", name, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
						t.Errorf("%s: %s has no doc comment", name, ts.Name.Name)
					}
				}
			}
		}
	})
}

// exportedReceiver: a method of an unexported type is not seen from outside,
// and the well-known methods explain themselves.
func exportedReceiver(f *ast.FuncDecl) bool {
	switch f.Name.Name {
	case "Error", "String", "Write", "WriteHeader", "Header", "Flush", "Unwrap", "Is", "As", "Read", "Close":
		return false
	}
	if f.Recv == nil {
		return true
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	name, ok := typ.(*ast.Ident)
	return ok && name.IsExported()
}

// forbidden are calls that have no place in some part of the tree.
var forbidden = []struct {
	in     string // path prefix
	except *regexp.Regexp
	call   *regexp.Regexp
	why    string
}{
	{"internal/", regexp.MustCompile(`^internal/(settings|e2e|bench|postgres/postgrestest|client|checks)/`), regexp.MustCompile(`\bos\.(Getenv|LookupEnv|Environ)\(`),
		"settings are read through package settings, in one place"},
	{"internal/", regexp.MustCompile(`^internal/e2e/`), regexp.MustCompile(`\bfmt\.Print(f|ln)?\(`), "stdout belongs to the protocol"},
	{"local/stdio/", nil, regexp.MustCompile(`os\.Stdout|fmt\.Print(f|ln)?\(`), "stdout belongs to the protocol, through Options.Out"},
	{"internal/", nil, regexp.MustCompile(`\blog\.(Print|Fatal|Panic)`), "logs are structured: log/slog"},
	{"internal/category/", nil, regexp.MustCompile(`http\.(Get|Post|Head|PostForm|DefaultClient|DefaultTransport)\b|http\.Client\{`),
		"a category reaches outside through safehttp or a client package, or a URL in an argument could reach inside (SSRF)"},
	{"internal/category/", nil, regexp.MustCompile(`\bexec\.Command(Context)?\(.*\ba\.`), "no argument of a caller becomes a command (CVE-2026-22688)"},
	{"internal/category/", regexp.MustCompile(`^internal/category/((model|inference|llamafile)/|memory/import_duduclaw\.go$)`), // of the sidecar, whose files are models; an operator's import
		regexp.MustCompile(`\bos\.(Create|CreateTemp|MkdirTemp|Mkdir|MkdirAll|WriteFile|OpenFile|Open|ReadFile|TempDir)\(`),
		"an instance serves one agent after the other: nothing is left in its files for the next (LAM-08), and no argument names one (CVE-2026-50158, CVE-2025-68143)"},
	{"internal/", regexp.MustCompile(`^internal/e2e/`), regexp.MustCompile(`InsecureSkipVerify:\s*true`), "TLS is always verified"},
}

// TestForbiddenCalls holds habits that no compiler checks.
func TestForbiddenCalls(t *testing.T) {
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		for number, line := range strings.Split(read(t, name), "\n") {
			code, _, _ := strings.Cut(line, "//")
			for _, f := range forbidden {
				if strings.HasPrefix(name, f.in) && (f.except == nil || !f.except.MatchString(name)) && f.call.MatchString(code) {
					t.Errorf("%s:%d: %s: %s", name, number+1, strings.TrimSpace(code), f.why)
				}
			}
		}
	}
}

// TestFormatted: gofmt has nothing to say.
func TestFormatted(t *testing.T) {
	var files []string
	for _, name := range tracked(t) {
		if strings.HasSuffix(name, ".go") {
			files = append(files, filepath.Join(root, name))
		}
	}
	out, err := exec.Command("gofmt", append([]string{"-l"}, files...)...).CombinedOutput()
	if err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("not formatted (run gofmt -w): %s %v", out, err)
	}
}

// secrets are forms of real credentials; tests use forms that are not.
var secrets = regexp.MustCompile(`AKIA[0-9A-Z]{16}|ghp_[A-Za-z0-9]{36}|xox[bp]-[0-9]{10,}-[0-9A-Za-z-]{20,}|sk-ant-[A-Za-z0-9_-]{40,}|-----BEGIN (RSA |EC )?PRIVATE KEY-----\n[A-Za-z0-9+/=\n]{200,}`)

// TestNoSecrets: no credential is committed.
func TestNoSecrets(t *testing.T) {
	for _, name := range tracked(t) {
		if found := secrets.FindString(read(t, name)); found != "" {
			t.Errorf("%s holds what looks like a credential: %.12s…", name, found)
		}
	}
}

// TestMigrations are numbered without a double and go up only.
func TestMigrations(t *testing.T) {
	seen := map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, "internal/postgres/migrate/*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		number, _, _ := strings.Cut(name, "_")
		if other, twice := seen[number]; twice {
			t.Errorf("%s and %s have the same number", name, other)
		}
		seen[number] = name
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(content, []byte("-- +goose Up\n")) || bytes.Contains(content, []byte("+goose Down")) {
			t.Errorf("%s: a migration begins with \"-- +goose Up\" and only goes up; a mistake is mended by the next one", name)
		}
	}
}

// TestMessagesCanBePasted: a sentence that names a command of pawgate's names it
// as it is typed, "pawgate agent list" and not "agent list".
func TestMessagesCanBePasted(t *testing.T) {
	var names []string
	for name := range commandNames(t) {
		if strings.Contains(name, " ") {
			names = append(names, regexp.QuoteMeta(name))
		}
	}
	bare := regexp.MustCompile(`(?:[;:(] |\b[Aa]s |see |with |then )(` + strings.Join(names, "|") + `)\b`)
	if bare.FindString("no agent x; agent list shows those there are") == "" {
		t.Fatal("the expression finds nothing")
	}
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && !strings.HasSuffix(name, "_test.go") {
				if m := bare.FindStringSubmatch(l.Value); m != nil {
					t.Errorf("%s:%d: %q is typed with pawgate before it", name, set.Position(l.Pos()).Line, m[1])
				}
			}
			return true
		})
	})
}

func eachGoFile(t *testing.T, visit func(name string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Join(root, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(fmt.Errorf("parse %s: %w", name, err))
		}
		visit(name, set, file)
	}
}
