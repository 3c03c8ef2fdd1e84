package checks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"pawgate/internal/tool"
)

// TestReadmeIsFresh writes the README's tables from the code and compares them
// with what stands there. UPDATE=1 (make generate) replaces them instead.
func TestReadmeIsFresh(t *testing.T) {
	have := read(t, "README.md")
	want := have
	for _, part := range []struct{ name, content string }{
		{"tools", toolTable()}, {"settings", settingTable(t)},
	} {
		begin, end := "<!-- generated: "+part.name+" -->\n", "<!-- end of generated -->\n"
		before, rest, found := strings.Cut(want, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("README.md has no lines %q and %q around the table", strings.TrimSpace(begin), strings.TrimSpace(end))
		}
		want = before + begin + "\n" + part.content + "\n" + end + after
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(filepath.Join(root, "README.md"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(want, have); diff != "" {
		t.Errorf("README.md is stale; run make generate (-want +got):\n%s", diff)
	}
}

// toolTable is read from the categories' tables, like the catalogue, so that
// one run of make generate renews both.
func toolTable() string {
	var out strings.Builder
	out.WriteString("| tool | category | kind | what it does | arguments |\n| --- | --- | --- | --- | --- |\n")
	for _, c := range tools() {
		for _, t := range c.Tools {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", t.Name, c.Name, kind(t.Definition), cell(t.About), arguments(t.Args))
		}
	}
	return out.String()
}

func kind(d tool.Definition) string {
	switch {
	case d.Hints.ReadOnly:
		return "read"
	case d.Hints.Destructive:
		return "destroy"
	}
	return "write"
}

// arguments lists the names; a question mark follows an optional one.
func arguments(s *tool.Schema) string {
	var names []string
	for _, p := range s.Properties {
		name := "`" + p.Name + "`"
		if !slices.Contains(s.Required, p.Name) {
			name += "?"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// settingTable is read from the tags of all settings in the tree.
func settingTable(t *testing.T) string {
	found := map[string]string{} // name → row
	eachGoFile(t, func(name string, set *token.FileSet, file *ast.File) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			f, ok := n.(*ast.Field)
			if !ok || f.Tag == nil {
				return true
			}
			text, _ := strconv.Unquote(f.Tag.Value)
			tag := reflect.StructTag(text)
			variable := tag.Get("envconfig")
			if prefix := tag.Get("prefix"); prefix != "" {
				variable = prefix + "…"
			}
			if variable == "" {
				return true
			}
			if tag.Get("desc") == "" {
				t.Errorf("%s:%d: the setting %s has no desc tag, which help and README show", name, set.Position(f.Pos()).Line, variable)
			}
			found[variable] = fmt.Sprintf("| `%s` | %s | %s |\n", variable, cell(tag.Get("desc")), cell(tag.Get("default")))
			return true
		})
	})
	out := "| setting | meaning | default |\n| --- | --- | --- |\n"
	for _, name := range slices.Sorted(maps.Keys(found)) {
		out += found[name]
	}
	return out
}

// fence is a code block: its language, and its text.
type fence struct{ language, text string }

var fences = regexp.MustCompile("(?ms)^```(\\w*)\\n(.*?)^```$")

func readmeFences(t *testing.T) []fence {
	t.Helper()
	var all []fence
	for _, m := range fences.FindAllStringSubmatch(read(t, "README.md"), -1) {
		all = append(all, fence{m[1], m[2]})
	}
	return all
}

// TestReadmeCode: what the README prints as Go is gofmt'ed Go, and what it
// prints as JSON is JSON. That the guide's code compiles and its commands run
// is the business of internal/e2e.
func TestReadmeCode(t *testing.T) {
	for _, f := range readmeFences(t) {
		switch f.language {
		case "go":
			formatted, err := format.Source([]byte(f.text))
			if err != nil {
				t.Errorf("not Go: %v\n%s", err, f.text)
			} else if diff := gocmp.Diff(string(formatted), f.text); diff != "" {
				t.Errorf("not formatted (-gofmt +README):\n%s", diff)
			}
		case "json":
			for line := range strings.SplitSeq(strings.TrimSpace(f.text), "\n{") { // one value, or one on each line
				if !json.Valid([]byte("{" + strings.TrimPrefix(line, "{"))) {
					t.Errorf("not JSON:\n%s", line)
				}
			}
		case "":
			t.Errorf("a code block has no language:\n%s", f.text)
		}
	}
}

// TestReadmeNames: whatever the README names is there: make targets, commands,
// files, checks, and its own headings.
func TestReadmeNames(t *testing.T) {
	text := read(t, "README.md")
	makefile := read(t, "Makefile")
	known, checks := commandNames(t), checkNames(t)
	for _, m := range regexp.MustCompile("(?m)(?:`|^)make ([a-z]+)").FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile(`(?m)^` + m[1] + `:`).MatchString(makefile) {
			t.Errorf("make %s is named, and the Makefile has no such target", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)(?:^|\x60|bin/)pawgate(?: --stack \S+)? ([a-z][a-z-]*)(?: ([a-z]+))?(?: ([a-z]+))?`).FindAllStringSubmatch(codeOf(text), -1) {
		if !known[m[1]] && !known[m[1]+" "+m[2]] && !known[m[1]+" "+m[2]+" "+m[3]] {
			t.Errorf("the command %q is named, and pawgate has none of that name", strings.TrimSpace(m[1]+" "+m[2]))
		}
	}
	for _, m := range regexp.MustCompile("`((?:internal|local|functions|events)/[a-z0-9_./-]*)`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil && !strings.Contains(m[1], "weather_today") {
			t.Errorf("%s is named and does not exist", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`(Test[A-Z][A-Za-z]*)`").FindAllStringSubmatch(text, -1) {
		if !checks[m[1]] {
			t.Errorf("the check %s is named, and internal/checks has none of that name", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`\]\(#([a-z0-9-]+)\)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(anchors(text), m[1]) {
			t.Errorf("the link #%s leads to no heading", m[1])
		}
	}
}

// codeOf is the code blocks and the `spans` of a Markdown text.
func codeOf(text string) string {
	var out strings.Builder
	for _, m := range fences.FindAllStringSubmatch(text, -1) {
		if m[1] == "sh" {
			out.WriteString(regexp.MustCompile(`(?m)#.*$`).ReplaceAllString(m[2], ""))
		}
	}
	for _, m := range regexp.MustCompile("`[^`\n]+`").FindAllString(fences.ReplaceAllString(text, ""), -1) {
		out.WriteString(m + "\n")
	}
	return out.String()
}

// commandNames are the commands of local/pawgate, as its tables name them.
func commandNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(root, "local/pawgate/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bname:\s+"([a-z -]+)"`).FindAllSubmatch(content, -1) {
			names[string(m[1])] = true
		}
	}
	return names
}

// checkNames are the tests of this package.
func checkNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(read(t, "internal/checks/"+file), -1) {
			names[m[1]] = true
		}
	}
	return names
}

// anchors are the headings as GitHub links them.
func anchors(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		kept := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		all = append(all, cmp.Or(kept, "-"))
	}
	return all
}
