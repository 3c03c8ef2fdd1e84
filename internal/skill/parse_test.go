package skill_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/skill"
)

const good = "---\nname: pdf-forms\ndescription: Fills forms. Use for PDF forms.\n---\n\n# Steps\n\n1. Read.\n"

func main(text string) []skill.File {
	return []skill.File{{Path: "SKILL.md", Content: []byte(text)}}
}

// head is a SKILL.md with these lines between the marks.
func head(lines ...string) []skill.File {
	return main("---\n" + strings.Join(lines, "\n") + "\n---\nDo it.\n")
}

func TestParse(t *testing.T) {
	t.Parallel()
	s, ps := skill.Parse("pdf-forms", head("name: pdf-forms", `description: "Fills: forms"`, "license: MIT", "compatibility: Needs python 3.11",
		"metadata:", "  version: 1.0", "  tags: pdf, 表單", "allowed-tools: Bash(git add:*) Read"))
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	s.Files = nil
	want := skill.Skill{Name: "pdf-forms", Description: "Fills: forms", License: "MIT", Compatibility: "Needs python 3.11", Body: "Do it.",
		Metadata: map[string]string{"version": "1.0", "tags": "pdf, 表單"}, AllowedTools: []string{"Bash(git add:*)", "Read"}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("skill (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pdf", "表單"}, s.Tags()); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestParse_names_every_rule(t *testing.T) {
	t.Parallel()
	named := func(name string) []skill.File { return head("name: "+name, "description: x") }
	for name, tc := range map[string]struct {
		folder string
		files  []skill.File
		want   []skill.Rule
	}{
		"good":                     {"pdf-forms", main(good), nil},
		"CRLF and BOM":             {"pdf-forms", main("\ufeff" + strings.ReplaceAll(good, "\n", "\r\n")), nil},
		"a name in Chinese":        {"表單", named("表單"), nil},
		"no SKILL.md":              {"", []skill.File{{Path: "README.md"}}, []skill.Rule{skill.MainMissing}},
		"skill.md":                 {"", []skill.File{{Path: "skill.md", Content: []byte(good)}}, []skill.Rule{skill.MainMissing}},
		"SKILL.md too long":        {"", main(good + strings.Repeat("x", skill.MaxMain)), []skill.Rule{skill.MainTooLong}},
		"not text":                 {"", main(good + "\x00"), []skill.Rule{skill.NotText}},
		"not UTF-8":                {"", main(good + "\xff"), []skill.Rule{skill.NotText}},
		"no frontmatter":           {"", main("# Steps"), []skill.Rule{skill.HeadMissing}},
		"not closed":               {"", main("---\nname: a\n"), []skill.Rule{skill.HeadOpen}},
		"frontmatter too long":     {"", main("---\nname: " + strings.Repeat("a", 70_000) + "\n---\n"), []skill.Rule{skill.HeadTooLong}},
		"not YAML":                 {"", head("name: [a"), []skill.Rule{skill.HeadBroken}},
		"a list":                   {"", head("- name"), []skill.Rule{skill.HeadNoMapping}},
		"an alias bomb":            {"", head("name: a", "description: x", "metadata: {a: &a [x,x], b: &b [*a,*a], c: [*b,*b]}"), []skill.Rule{skill.MetadataValue, skill.MetadataValue, skill.MetadataValue}},
		"unknown field":            {"", head("name: a", "description: x", "trigger: y"), []skill.Rule{skill.FieldUnknown}},
		"name twice":               {"", head("name: a", "name: b", "description: x"), []skill.Rule{skill.FieldTwice}},
		"no name":                  {"", head("description: x"), []skill.Rule{skill.NameMissing}},
		"empty name":               {"", head("name:", "description: x"), []skill.Rule{skill.NameMissing}},
		"name is a list":           {"", head("name: [a]", "description: x"), []skill.Rule{skill.NameType}},
		"name too long":            {"", named(strings.Repeat("a", 65)), []skill.Rule{skill.NameTooLong}},
		"longest name":             {"", named(strings.Repeat("a", 64)), nil},
		"upper case":               {"", named("PDF-Processing"), []skill.Rule{skill.NameCase}},
		"hyphen first":             {"", named("-pdf"), []skill.Rule{skill.NameEdge}},
		"hyphen last":              {"", named("pdf-"), []skill.Rule{skill.NameEdge}},
		"two hyphens":              {"", named("pdf--forms"), []skill.Rule{skill.NameDouble}},
		"underscore":               {"", named("pdf_forms"), []skill.Rule{skill.NameCharacters}},
		"a path as a name":         {"", named("../../etc"), []skill.Rule{skill.NameCharacters}},
		"a device as a name":       {"", named("con"), []skill.Rule{skill.NameCharacters}},
		"another folder":           {"other", main(good), []skill.Rule{skill.NameFolder}},
		"no description":           {"", head("name: a"), []skill.Rule{skill.DescriptionMissing}},
		"empty description":        {"", head("name: a", "description: '  '"), []skill.Rule{skill.DescriptionMissing}},
		"description is a mapping": {"", head("name: a", "description: {x: y}"), []skill.Rule{skill.DescriptionType}},
		"longest description":      {"", head("name: a", "description: "+strings.Repeat("繁", 1024)), nil},
		"description too long":     {"", head("name: a", "description: "+strings.Repeat("繁", 1025)), []skill.Rule{skill.DescriptionTooLong}},
		"license is a list":        {"", head("name: a", "description: x", "license: [MIT]"), []skill.Rule{skill.LicenseType}},
		"compatibility is a list":  {"", head("name: a", "description: x", "compatibility: [y]"), []skill.Rule{skill.CompatibilityType}},
		"compatibility is empty":   {"", head("name: a", "description: x", "compatibility: ''"), []skill.Rule{skill.CompatibilityEmpty}},
		"compatibility too long":   {"", head("name: a", "description: x", "compatibility: "+strings.Repeat("y", 501)), []skill.Rule{skill.CompatibilityTooLong}},
		"metadata is a text":       {"", head("name: a", "description: x", "metadata: y"), []skill.Rule{skill.MetadataType}},
		"metadata is deep":         {"", head("name: a", "description: x", "metadata: {k: {l: m}}"), []skill.Rule{skill.MetadataValue}},
		"tools are a mapping":      {"", head("name: a", "description: x", "allowed-tools: {Read: yes}"), []skill.Rule{skill.ToolsType}},
		"tools are a list":         {"", head("name: a", "description: x", "allowed-tools: [Read, 'Bash(git:*)']"), nil},
		"no instructions":          {"", main("---\nname: a\ndescription: x\n---\n"), []skill.Rule{skill.BodyEmpty}},
		"one bad field of many":    {"", head("name: [a]", "description: kept", "metadata: y"), []skill.Rule{skill.NameType, skill.MetadataType}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, ps := skill.Parse(tc.folder, tc.files)
			var got []skill.Rule
			for _, p := range ps {
				got = append(got, p.Rule)
				if p.Message == "" {
					t.Errorf("%s says nothing", p.Rule)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rules (-want +got):\n%s\n%+v", diff, ps)
			}
		})
	}
}

// Predecessor: a type error in one field lost the description too.
func TestParse_a_bad_field_takes_no_other_with_it(t *testing.T) {
	t.Parallel()
	s, ps := skill.Parse("", head("name: a", "description: kept", "metadata: [broken]"))
	if s.Description != "kept" || s.Name != "a" || !ps.Has(skill.MetadataType) {
		t.Errorf("got %+v, %v", s, ps)
	}
}

func TestParse_refuses_unsafe_paths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]skill.Rule{
		"../x": skill.PathUnsafe, "a/../../x": skill.PathUnsafe, "/etc/passwd": skill.PathUnsafe, "C:/x": skill.PathUnsafe, `a\..\b`: skill.PathUnsafe,
		"a//b": skill.PathUnsafe, "./a": skill.PathUnsafe, "": skill.PathUnsafe, "a\x00b": skill.PathUnsafe, "a\u202eb": skill.PathUnsafe, "nul.txt": skill.PathUnsafe,
		"a/COM1": skill.PathUnsafe, "a./b": skill.PathUnsafe, "a /b": skill.PathUnsafe, ".git/config": skill.PathUnsafe, "x/.GIT/hooks/pre-commit": skill.PathUnsafe,
		"a\xff": skill.PathUnsafe, "file:stream": skill.PathUnsafe, strings.Repeat("a", 201): skill.PathTooLong, strings.Repeat("a/", 8) + "b": skill.PathTooLong,
		"skill.MD": skill.PathTwice, "SKILL.md/x": skill.PathTwice,
	} {
		s, ps := skill.Parse("", append(main(good), skill.File{Path: path, Content: []byte("x")}))
		if !ps.Has(want) || len(s.Files) > 0 {
			t.Errorf("CTS-05 %q: got %v, want %s and nothing read", path, ps, want)
		}
	}
	for _, path := range []string{"scripts/run.sh", "references/參考.md", "assets/my logo.png", ".gitignore", "console.md", "a...b"} {
		if _, ps := skill.Parse("", append(main(good), skill.File{Path: path})); len(ps.Broken()) > 0 {
			t.Errorf("%q: %v", path, ps)
		}
	}
}

func TestParse_bounds(t *testing.T) {
	t.Parallel()
	many := main(good)
	for i := range skill.MaxFiles {
		many = append(many, skill.File{Path: "f" + strings.Repeat("i", i)[:0] + string(rune('a'+i%26)) + strings.Repeat("x", i/26)})
	}
	large := append(main(good), skill.File{Path: "a", Content: make([]byte, skill.MaxFile+1)})
	total := main(good)
	for _, name := range []string{"a", "b", "c", "d"} {
		total = append(total, skill.File{Path: name, Content: make([]byte, skill.MaxFile)})
	}
	for name, tc := range map[string]struct {
		files []skill.File
		want  skill.Rule
	}{"files": {many, skill.TooManyFiles}, "file": {large, skill.FileTooLarge}, "total": {total, skill.TotalTooLarge}} {
		if _, ps := skill.Parse("", tc.files); !ps.Has(tc.want) {
			t.Errorf("%s: got %v, want %s", name, ps, tc.want)
		}
	}
}

func TestWrite_is_read_back(t *testing.T) {
	t.Parallel()
	want := skill.Skill{Name: "a", Description: "Says: \"x\"\nand [y] # z", License: "MIT", Body: "# One\n\n---\n\ntwo", Metadata: map[string]string{"tags": "p q", "v": "1.0"},
		AllowedTools: []string{"Read", "Bash(git:*)"}}
	text, err := skill.Write(want)
	if err != nil {
		t.Fatal(err)
	}
	got, ps := skill.Parse("a", main(string(text)))
	if len(ps) > 0 {
		t.Fatal(ps)
	}
	got.Files = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("skill (-want +got):\n%s", diff)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	a := []skill.File{{Path: "a", Content: []byte("1")}, {Path: "b", Content: []byte("2")}}
	if skill.Digest(a) != skill.Digest([]skill.File{a[1], a[0]}) {
		t.Error("the order of files makes a difference")
	}
	for name, other := range map[string][]skill.File{
		"content": {{Path: "a", Content: []byte("1!")}, a[1]}, "path": {{Path: "c", Content: []byte("1")}, a[1]},
		"execute bit": {{Path: "a", Content: []byte("1"), Executable: true}, a[1]}, "a file less": {a[0]},
		"moved bytes": {{Path: "a1", Content: nil}, {Path: "b", Content: []byte("2")}},
	} {
		if skill.Digest(a) == skill.Digest(other) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestReadDir_refuses_links(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	for path, content := range map[string]string{secret: "hunter2", filepath.Join(dir, "SKILL.md"): good} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, ps := skill.ReadDir(os.DirFS(dir))
	if len(files) != 1 || len(ps) > 0 {
		t.Fatalf("a plain folder: %v, %v", files, ps)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "notes.md")); err != nil {
		t.Fatal(err)
	}
	files, ps = skill.ReadDir(os.DirFS(dir))
	if !ps.Has(skill.NotAFile) {
		t.Errorf("CTS-06: a link is read: %v", ps)
	}
	for _, f := range files {
		if strings.Contains(string(f.Content), "hunter2") {
			t.Errorf("CTS-06: %s has what the link leads to", f.Path)
		}
	}
}
