//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// guideBound is how long one block of the guide may take: in a fresh copy of
// the tree everything is compiled anew.
const guideBound = 8 * time.Minute

// TestGuide does what the README's guide to tools of one's own says, in a copy
// of the tree: its commands run, its files are written, its answers come out
// to the letter, and its patterns compile beside the code they are meant for.
func TestGuide(t *testing.T) {
	copied := copyTree(t)
	g := guide{t: t, root: copied, env: append(os.Environ(), "GOFLAGS=-buildvcs=false", "PAWGATE_DATA="+dataDir(t))}
	g.follow(readGuide(t))
	g.wantDocumented("weather_today")
	g.checkPatterns()
	if g.ran < 4 || g.answers < 2 || g.patterns < 5 {
		t.Errorf("the guide has %d blocks of commands, %d answers and %d patterns; were its markers lost?", g.ran, g.answers, g.patterns)
	}
}

// block is a fenced part of the guide, with the comment before it.
type block struct{ comment, language, text string }

var guideBlock = regexp.MustCompile("(?ms)(?:^<!-- ([a-z]+: \\S+) -->\\n)?^```(\\w+)\\n(.*?)^```$")

func readGuide(t *testing.T) []block {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(repoRoot(t), "README.md"))
	if err != nil {
		t.Fatalf("read README: %v", err)
	}
	_, rest, found := strings.Cut(string(readme), "<!-- guide -->")
	text, _, closed := strings.Cut(rest, "<!-- end of guide -->")
	if !found || !closed {
		t.Fatal("README.md has no <!-- guide --> … <!-- end of guide -->")
	}
	var blocks []block
	for _, m := range guideBlock.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, block{m[1], m[2], m[3]})
	}
	return blocks
}

// guide is one walk through the guide.
type guide struct {
	t    *testing.T
	root string
	env  []string
	said string // by the last commands

	ran, answers, patterns int
	packages               map[string]bool // that patterns were added to
	statements             bool
}

func (g *guide) follow(blocks []block) {
	g.packages = map[string]bool{}
	for _, b := range blocks {
		kind, where, _ := strings.Cut(b.comment, ": ")
		switch {
		case kind == "file":
			g.write(where, b.text)
			g.statements = g.statements || strings.HasSuffix(where, ".sql")
		case kind == "in":
			g.addPattern(where, b.text)
		case b.language == "sh":
			g.run(b.text)
		case b.language == "json":
			g.wantAnswers(b.text)
		case b.language != "text":
			g.t.Errorf("a %s block of the guide says neither where it belongs nor that it is run:\n%s", b.language, b.text)
		}
	}
}

func (g *guide) write(name, text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.root, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

func (g *guide) run(commands string) {
	g.t.Helper()
	g.ran++
	begin := time.Now()
	out, err := runProcess(g.t, guideBound, g.root, g.env, "bash", "-euo", "pipefail", "-c", commands)
	if err != nil {
		g.t.Fatalf("%s%v\n%s", commands, err, out)
	}
	g.t.Logf("%s(%s)\n%s", commands, time.Since(begin).Round(time.Second), tail(out, 2000))
	g.said = out
}

// wantAnswers compares what the last commands printed with what the guide
// shows, value by value.
func (g *guide) wantAnswers(shown string) {
	g.t.Helper()
	want, got := values(g.t, shown), values(g.t, g.said)
	g.answers += len(want)
	if diff := cmp.Diff(want, got); diff != "" {
		g.t.Errorf("answers (-guide +pawgate):\n%s", diff)
	}
}

// values are the JSON values of a text.
func values(t *testing.T, text string) []any {
	t.Helper()
	var all []any
	for dec := json.NewDecoder(strings.NewReader(text)); dec.More(); {
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatalf("not JSON: %v\n%s", err, text)
		}
		all = append(all, v)
	}
	return all
}

// wantDocumented: the new tool stands in the catalogue and in the README.
func (g *guide) wantDocumented(tool string) {
	g.t.Helper()
	for name, want := range map[string]string{
		"README.md":                 "| `" + tool + "` | web | read |",
		"internal/catalog/web.json": fmt.Sprintf("{%q:%q", "name", tool),
	} {
		content, err := os.ReadFile(filepath.Join(g.root, name))
		if err != nil {
			g.t.Fatal(err)
		}
		if !bytes.Contains(content, []byte(want)) {
			g.t.Errorf("%s does not hold %s", name, want)
		}
	}
}

// addPattern puts declarations into a file of a package.
func (g *guide) addPattern(dir, code string) {
	g.t.Helper()
	g.patterns++
	g.packages[dir] = true
	head := "package " + path.Base(dir) + "\n"
	file, err := parser.ParseFile(token.NewFileSet(), "", head+code, parser.ParseComments)
	if err != nil {
		g.t.Fatalf("%v\n%s", err, code)
	}
	g.write(fmt.Sprintf("%s/guide_pattern_%d.go", dir, g.patterns), head+imports(file, code)+code)
}

// imports are the packages that declarations use.
func imports(file *ast.File, code string) string {
	known := map[string]string{
		"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "time": "time", "url": "net/url",
		"pgx": "github.com/jackc/pgx/v5", "caller": "pawgate/internal/caller", "fault": "pawgate/internal/fault",
		"postgres": "pawgate/internal/postgres", "safehttp": "pawgate/internal/safehttp", "standing": "pawgate/internal/standing",
	}
	used := map[string]bool{}
	for _, id := range file.Unresolved {
		if known[id.Name] != "" {
			used[fmt.Sprintf("import %q\n", known[id.Name])] = true
		}
	}
	if strings.Contains(code, "//go:embed ") {
		used["import _ \"embed\"\n"] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(used)), "")
}

// checkPatterns compiles the packages with the patterns in them, and prepares
// the statements that the guide shows against the migrated schema.
func (g *guide) checkPatterns() {
	g.t.Helper()
	for dir := range g.packages {
		g.run("go vet ./" + dir + "\n")
	}
	if g.statements {
		g.run("go test ./internal/checks -run 'Statements|Migrations|Forbidden|SQL|Log|Outside'\n")
	}
}

// copyTree copies what git tracks, as it is in the working tree, into a
// repository of its own.
func copyTree(t *testing.T) string {
	t.Helper()
	root, from := t.TempDir(), repoRoot(t)
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = from
	names, err := list.Output()
	if err != nil {
		t.Fatalf("list files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) { // removed, and not yet committed
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := runProcess(t, time.Minute, root, os.Environ(), "sh", "-c",
		"git init -q && git add -A && git -c user.name=guide -c user.email=guide@localhost commit -q -m copy"); err != nil {
		t.Fatalf("make a repository of the copy: %v\n%s", err, out)
	}
	return root
}
