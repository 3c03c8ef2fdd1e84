package checks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"gopkg.in/yaml.v3"

	"pawgate/internal/catalog"
	"pawgate/internal/category"
	"pawgate/internal/client/chat"
	"pawgate/internal/settings"
	"pawgate/internal/tool"
	"pawgate/internal/worker"
)

// TestCategoryIsComplete: a category is a row in the table, a package, a
// catalogue file, and, on Lambda, a main, a template resource and events.
func TestCategoryIsComplete(t *testing.T) {
	template := readTemplate(t)
	for _, row := range category.Rows() {
		t.Run(row.Name, func(t *testing.T) {
			exists(t, "internal/category/"+row.Name+"/"+row.Name+".go", "the package doc, Config, Open, New and the table of tools")
			exists(t, "internal/catalog/"+row.Name+".json", "run make generate")
			if row.Host != category.Function {
				return
			}
			exists(t, "functions/"+row.Name+"/main.go", "its main: serve.Lambda("+row.Name+".Open)")
			if events, _ := filepath.Glob(filepath.Join(root, "events", row.Name, "*.json")); len(events) == 0 {
				t.Errorf("events/%s has no sample invocation; the emulator test replays them", row.Name)
			}
			resource := strings.ToUpper(row.Name[:1]) + row.Name[1:] + "Function"
			if _, ok := template.Resources[resource]; !ok {
				t.Errorf("template.yaml has no resource %s", resource)
			}
		})
	}
}

// TestNothingIsLeftOver: every main belongs to a category or is one of the
// few others, and so does every folder of events and every category package.
func TestNothingIsLeftOver(t *testing.T) {
	known := map[string]bool{"router": true, "admin": true, "tick": true, "agent-worker": true}
	rows := map[string]bool{}
	for _, row := range category.Rows() {
		rows[row.Name] = true
		if row.Host == category.Function {
			known[row.Name] = true
		}
	}
	for _, dir := range []string{"functions", "events"} {
		for _, name := range folders(t, dir) {
			if !known[name] {
				t.Errorf("%s/%s belongs to no category of the table in internal/category/category.go", dir, name)
			}
		}
	}
	for _, name := range folders(t, "internal/category") {
		if !rows[name] {
			t.Errorf("internal/category/%s has no row in internal/category/category.go", name)
		}
	}
}

// TestTemplateGuardsCategories: a deployed category checks assertions and
// nobody but the router may call it.
func TestTemplateGuardsCategories(t *testing.T) {
	template := readTemplate(t)
	for _, row := range category.Rows() {
		if row.Host != category.Function {
			continue
		}
		resource := template.Resources[strings.ToUpper(row.Name[:1])+row.Name[1:]+"Function"]
		text, _ := yaml.Marshal(resource)
		globals, _ := yaml.Marshal(template.Globals)
		if !strings.Contains(string(text)+string(globals), "PAWGATE_ASSERTION_PUBLIC_KEY") {
			t.Errorf("%s: template.yaml configures no PAWGATE_ASSERTION_PUBLIC_KEY, so unsigned calls could be believed", row.Name)
		}
		if strings.Contains(string(text), "Events:") || strings.Contains(string(text), "FunctionUrlConfig") {
			t.Errorf("%s: a category has no event source and no URL; only the router invokes it", row.Name)
		}
		if strings.Contains(string(text), "PAWGATE_ASSERTION_KEY") {
			t.Errorf("%s: the signing key belongs to the router alone", row.Name)
		}
	}
}

// TestTemplateSetsTheWorker: whoever deploys says which models agents run on, of
// every tier, without a template of their own.
func TestTemplateSetsTheWorker(t *testing.T) {
	resource := readTemplate(t).Resources["AgentWorkerFunction"]
	text, err := yaml.Marshal(&resource)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range settings.List(chat.Config{}, worker.Models{}) {
		if !strings.Contains(string(text), s.Name+": !Ref ") {
			t.Errorf("template.yaml: AgentWorkerFunction has no %s, %s", s.Name, s.About)
		}
	}
}

type template struct {
	Globals   yaml.Node            `yaml:"Globals"`
	Resources map[string]yaml.Node `yaml:"Resources"`
}

func readTemplate(t *testing.T) template {
	t.Helper()
	var parsed template
	if err := yaml.Unmarshal([]byte(read(t, "template.yaml")), &parsed); err != nil {
		t.Fatalf("template.yaml: %v", err)
	}
	return parsed
}

func exists(t *testing.T, name, what string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, name)); err != nil {
		t.Errorf("%s is missing: %s", name, what)
	}
}

func folders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func tools() []tool.Category { return category.All(category.Deps{}) }

// TestEveryToolIsTested: some test of its category calls the tool by name.
func TestEveryToolIsTested(t *testing.T) {
	for _, c := range tools() {
		tests := ""
		files, _ := filepath.Glob(filepath.Join(root, "internal/category", c.Name, "*_test.go"))
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests += string(content)
		}
		for _, tool := range c.Tools {
			if !strings.Contains(tests, fmt.Sprintf("%q", tool.Name)) {
				t.Errorf("no test in internal/category/%s calls %s", c.Name, tool.Name)
			}
		}
	}
}

// maxListed is the budget of tools/list, in bytes per tool on average: every
// listed tool is sent to the model with every request, by every user.
const maxListed = 430

// TestSchemas: what clients and model providers refuse or choke on.
func TestSchemas(t *testing.T) {
	loaded, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, e := range loaded.All() {
		total += len(e.Public)
		var public struct {
			Name, Description string
			InputSchema       map[string]any
			Annotations       map[string]bool
		}
		if err := json.Unmarshal(e.Public, &public); err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		if public.InputSchema["type"] != "object" {
			t.Errorf("%s: E44 the root of a schema must be an object, or Claude Code drops every tool", e.Name)
		}
		for _, word := range []string{"anyOf", "oneOf", "allOf"} {
			if _, ok := public.InputSchema[word]; ok {
				t.Errorf("%s: E47 %s at the root of a schema is refused by the Anthropic API", e.Name, word)
			}
		}
		if len("mcp__pawgate__"+public.Name) > 64 || !regexp.MustCompile(`^[a-zA-Z0-9_-]+$`).MatchString(public.Name) {
			t.Errorf("%s: model providers allow 64 characters of a-z, 0-9, _ and -", e.Name)
		}
		if len(public.Description) > 2048 {
			t.Errorf("%s: Claude Code cuts a description at 2 KB", e.Name)
		}
		if strings.Contains(string(e.Public), `"outputSchema"`) {
			t.Errorf("%s: E46 an output schema that one client dislikes loses it every tool", e.Name)
		}
		if hidden := strings.IndexFunc(string(e.Public), func(r rune) bool { return r < ' ' || unicode.In(r, unicode.Cf, unicode.Co) }); hidden >= 0 {
			t.Errorf("%s: AUTH-17 an invisible character in its definition, at byte %d", e.Name, hidden)
		}
		if want := map[bool]int{true: 2, false: 4}[public.Annotations["readOnlyHint"]]; len(public.Annotations) != want {
			t.Errorf("%s: %d hints are sent, want %d: the defaults differ between clients", e.Name, len(public.Annotations), want)
		}
	}
	if average := total / len(loaded.All()); average > maxListed {
		t.Errorf("tools/list has %d bytes per tool on average, more than %d; shorten descriptions", average, maxListed)
	}
}

// TestToolNames: a tool of one category cannot pose as another's, and the
// names of the predecessor keep their category (CVE-2026-30856).
func TestToolNames(t *testing.T) {
	owner := map[string]string{}
	for _, c := range tools() {
		for _, tool := range c.Tools {
			if other, taken := owner[tool.Name]; taken {
				t.Errorf("%s is declared by %s and %s", tool.Name, other, c.Name)
			}
			owner[tool.Name] = c.Name
		}
	}
	if len(owner) == 0 || !slices.Contains([]string{"memory"}, owner["memory_search"]) {
		t.Error("memory_search is not a tool of memory")
	}
}
