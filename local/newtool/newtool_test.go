package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/category"
)

// module is the tree that the tests copy from.
const module = "../.."

// copyCategory gives a tree that holds one category's Go files.
func copyCategory(t *testing.T, name string) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join("internal", "category", name)
	if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(module, dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("category %s has no files: %v", name, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, dir, filepath.Base(file)), string(content))
	}
	return root
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// files is the content of every file below root.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		all[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// outcome is what a run came to.
type outcome struct {
	status    int
	out, errs string
	refreshed bool
}

func runIn(t *testing.T, root, name, category, verb string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	var o outcome
	refresh := func(string) error { o.refreshed = true; return nil }
	o.status = run([]string{"-name", name, "-category", category, "-verb", verb}, root, refresh, &out, &errs)
	o.out, o.errs = out.String(), errs.String()
	return o
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ why, name, category, verb, want string }{
		{"no_name", "", "memory", "read", "NAME is missing"},
		{"capitals", "memoryPin", "memory", "read", "is not snake_case"},
		{"dash", "memory-pin", "memory", "read", "is not snake_case"},
		{"two_underscores", "memory__pin", "memory", "read", "is not snake_case"},
		{"underscore_last", "memory_", "memory", "read", "is not snake_case"},
		{"digit_first", "2memory", "memory", "read", "is not snake_case"},
		{"path", "../memory", "memory", "read", "is not snake_case"},
		{"quote", "a\"); rm", "memory", "read", "is not snake_case"},
		{"not_ascii", "mémoire", "memory", "read", "is not snake_case"},
		{"51_characters", strings.Repeat("a", 51), "memory", "read", "has 51 characters; at most 50"},
		{"no_category", "pin", "", "read", `CATEGORY "" does not exist; there are memory, agent`},
		{"unknown_category", "pin", "wether", "read", `CATEGORY "wether" does not exist; there are memory, agent`},
		{"no_verb", "memory_pin", "memory", "", "VERB"},
		{"unknown_verb", "memory_pin", "memory", "Read", "none of read (changes nothing), write"},
		{"taken_here", "memory_search", "memory", "read", "memory_search is taken by a tool of category memory"},
		{"taken_elsewhere", "agent_status", "memory", "read", "agent_status is taken by a tool of category agent"},
		{"file_exists", "memory_rank", "memory", "read", "rank.go exists already and is not overwritten"},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			root := copyCategory(t, "memory")
			before := files(t, root)
			got := runIn(t, root, c.name, c.category, c.verb)
			if got.status != 2 || !strings.Contains(got.errs, c.want) || got.out != "" || got.refreshed {
				t.Errorf("got %+v, want status 2 and %q", got, c.want)
			}
			if diff := cmp.Diff(before, files(t, root)); diff != "" {
				t.Errorf("files changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestAddsToEveryCategory: with every verb, in every category there is, the
// new tool compiles and its test passes in the real tree.
func TestAddsToEveryCategory(t *testing.T) {
	t.Parallel()
	overlay := map[string]string{}
	for i, row := range category.Rows() {
		verb := []string{"read", "write", "destroy"}[i%3]
		root := copyCategory(t, row.Name)
		for _, name := range []string{"weather_today", row.Name + "_zone"} {
			got := runIn(t, root, name, row.Name, verb)
			if got.status != 0 || got.errs != "" || !got.refreshed || !strings.Contains(got.out, "say in its row what "+name) {
				t.Fatalf("%s in %s: %+v", name, row.Name, got)
			}
		}
		for name, content := range files(t, root) {
			real, err := filepath.Abs(filepath.Join(module, name))
			if err != nil {
				t.Fatal(err)
			}
			overlay[real] = filepath.Join(root, name)
			if _, err := os.Stat(real); errors.Is(err, fs.ErrNotExist) && strings.Contains(content, "TODO") {
				t.Errorf("%s holds a TODO", name)
			}
		}
	}
	goTest(t, overlay, "WeatherToday|Zone", "./internal/category/...")
}

// goTest runs tests of the module with files put over its own.
func goTest(t *testing.T, overlay map[string]string, tests string, packages string) {
	t.Helper()
	encoded, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "overlay.json")
	write(t, path, string(encoded))
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", path, "-v", "-run", tests, packages)
	cmd.Dir = module
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go test: %v\n%s", err, out)
	}
	for _, want := range []string{"--- PASS: TestWeatherToday/answers", "--- PASS: TestZone/blank"} {
		if n := strings.Count(string(out), want); n != len(category.Rows()) {
			t.Errorf("%q stands %d times in the output, want %d:\n%s", want, n, len(category.Rows()), out)
		}
	}
}

// TestFillsTheTable: the row comes last, whatever the table looks like.
func TestFillsTheTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, rows, want string }{
		{"empty", "{}", "{\n\t\tROW\n\t}"},
		{"one_line", "{tool.Read(\"a\", \"see //x\", m.a)}", "{tool.Read(\"a\", \"see //x\", m.a),\n\t\tROW\n\t}"},
		{"usual", "{\n\t\ttool.Read(\"a\", \"A.\", m.a),\n\t}", "{\n\t\ttool.Read(\"a\", \"A.\", m.a),\n\t\tROW\n\t}"},
		{"options_and_comment", "{\n\t\ttool.Write(\"a\", \"A.\", m.a, tool.Secret(\"x\")), // why, and\n\t\t// more\n\t}",
			"{\n\t\ttool.Write(\"a\", \"A.\", m.a, tool.Secret(\"x\")), // why, and\n\t\t// more\n\t\tROW\n\t}"},
		{"row_over_two_lines", "{\n\t\ttool.Write(\"a\", \"A.\",\n\t\t\tm.a),\n\t}", "{\n\t\ttool.Write(\"a\", \"A.\",\n\t\t\tm.a),\n\t\tROW\n\t}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			source := "package memory\n\nfunc With() tool.Category {\n\tm := memory{}\n\treturn tool.Category{Tools: []tool.Tool" + c.rows + "}\n}\n"
			p, err := parsePackage(t.TempDir(), "memory", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.insert(`tool.Read("b", "B.", m.b),`)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(source, "[]tool.Tool"+c.rows, "[]tool.Tool"+strings.Replace(c.want, "ROW", `tool.Read("b", "B.", m.b),`, 1), 1)
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoTable: a category of another shape is refused with what to do.
func TestNoTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, source, want string }{
		{"no_table", "package x\n", "must hold the table in one []tool.Tool"},
		{"no_list", "package x\nfunc New() C { return C{} }\n", "must hold the table in one"},
		{"two_lists", "package x\nfunc New() C { m := x{}; return f([]tool.Tool{}, []tool.Tool{}) }\n", "must hold the table in one"},
		{"two_functions", "package x\nvar x = []tool.Tool{}\nfunc A() { f([]tool.Tool{}) }\nfunc B() { f([]tool.Tool{}) }\n", "must hold the table in one"},
		{"no_state", "package x\nfunc New() C { return C{Tools: []tool.Tool{tool.Read(\"a\", \"A.\", a)}} }\n", "makes no value with the handlers"},
		{"broken", "package x\nfunc New(", "read the category's table"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := parsePackage(t.TempDir(), "x", []byte(c.source)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestNames: the file is named for the tool without its category, and neither
// file nor code gets a name with a meaning of its own.
func TestNames(t *testing.T) {
	t.Parallel()
	source := "package memory\n\ntype memory struct{ now int; Clock }\n\nfunc (s *memory) search() {}\n\ntype pinArgs struct{}\n\n" +
		"func New() C {\n\tm := &memory{}\n\treturn C{[]tool.Tool{tool.Read(\"memory_search\", \"S.\", m.search)}}\n}\n"
	dir := t.TempDir()
	write(t, filepath.Join(dir, "memory.go"), source)
	write(t, filepath.Join(dir, "x_test.go"), "package memory_test\n\nfunc TestSum(t *testing.T) {}\n")
	p, err := parsePackage(dir, "memory", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if p.receiver != "s *memory" || p.variable != "m" {
		t.Errorf("receiver %q, variable %q", p.receiver, p.variable)
	}
	for _, c := range []struct{ tool, file, handler string }{
		{"weather_today", "weather_today", "weatherToday"},
		{"memory_tag", "tag", "tag"},
		{"memory_tag_all", "tag_all", "tagAll"},
		{"memory_fetch_url", "fetch_url", "fetchURL"},
		{"memory", "memory", "memoryTool"}, // the type has the name; the file exists
		{"memory_2fa", "memory_2fa", "memory2fa"},
		{"memory_type", "type", "memoryType"}, // a keyword of Go
		{"memory_pin", "pin", "memoryPin"},    // pinArgs exists
		{"memory_now", "now", "memoryNow"},    // a field
		{"memory_sum", "sum", "memorySum"},    // TestSum exists
		{"memory_load_test", "load_test_tool", "loadTest"},
		{"memory_for_windows", "for_windows_tool", "forWindows"},
		{"render_js", "render_js_tool", "renderJs"},
		{"memory_read_arm64", "read_arm64_tool", "readArm64"},
	} {
		r := request{name: c.tool, category: "memory"}
		handler, err := p.choose(r)
		if err != nil || r.file() != c.file || handler != c.handler {
			t.Errorf("%s: file %s, handler %s (%v); want %s, %s", c.tool, r.file(), handler, err, c.file, c.handler)
		}
	}
}

// TestKeepsWhatIsThere: a file that appears after the look is not overwritten,
// and what was already written is taken back.
func TestKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	root := copyCategory(t, "memory")
	p, err := prepare(request{"memory_zone", "memory", "read"}, root)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, p.test.name), "mine")
	before := files(t, root)
	if err := p.write(root); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error %v, want one that says the file exists", err)
	}
	if diff := cmp.Diff(before, files(t, root)); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
}

// TestSaysWhatFailed: the files stay when the generated ones cannot be made.
func TestSaysWhatFailed(t *testing.T) {
	t.Parallel()
	root := copyCategory(t, "memory")
	var out, errs bytes.Buffer
	broken := func(string) error { return errors.New("exit status 1\nno database") }
	status := run([]string{"-name", "memory_zone", "-category", "memory", "-verb", "read"}, root, broken, &out, &errs)
	if status != 1 || !strings.Contains(errs.String(), "the tool is written, but make generate does not pass yet: exit status 1\nno database") {
		t.Errorf("status %d: %s", status, errs.String())
	}
	if status := run([]string{"-nme", "x"}, root, broken, &out, &errs); status != 2 {
		t.Errorf("an unknown flag: status %d", status)
	}
}
