package skill_test

import (
	"strings"
	"testing"

	"pawgate/internal/skill"
)

func TestAdapt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		folder, text string
		want, has    string // the name, and what SKILL.md has then
		notes        int
	}{
		"fits":                {"pdf-forms", good, "pdf-forms", good, 0},
		"CRLF fits":           {"pdf-forms", strings.ReplaceAll(good, "\n", "\r\n"), "pdf-forms", strings.ReplaceAll(good, "\n", "\r\n"), 0},
		"no name":             {"pdf", "---\ndescription: x\n---\n\nDo it.\n", "pdf", "---\nname: pdf\ndescription: x\n---\n\nDo it.\n", 1},
		"another name":        {"pdf", "---\nname: PDF Processing # best\ndescription: x\n---\n", "pdf", "---\nname: pdf\ndescription: x\n---\n", 1},
		"a folder with marks": {"My_Skill.v2", "---\nname: My_Skill.v2\ndescription: x\n---\n", "my-skill-v2", "name: my-skill-v2\n", 2},
		"no description":      {"pdf", "---\nname: pdf\n---\n\n# Title\n\nFills: \"forms\"\nfast.\n\nMore.\n", "pdf", "---\nname: pdf\ndescription: \"Fills: \\\"forms\\\" fast.\"\n---\n", 1},
		"empty description":   {"pdf", "---\nname: pdf\ndescription: ''\n---\n\nFills forms.\n", "pdf", "---\nname: pdf\ndescription: \"Fills forms.\"\n---\n", 1},
		"blank description":   {"pdf", "---\ndescription:\nname: pdf\n---\n\nFills forms.\n", "pdf", "---\ndescription: \"Fills forms.\"\nname: pdf\n---\n", 1},
		"no frontmatter":      {"pdf", "# Title\n\nFills forms.\n", "pdf", "---\nname: pdf\ndescription: \"Fills forms.\"\n---\n\n# Title\n", 1},
		"empty frontmatter":   {"pdf", "---\n---\n\nDo it.\n", "pdf", "---\nname: pdf\ndescription: \"Do it.\"\n---\n\nDo it.\n", 2},
		"only a heading":      {"pdf", "# Title\n", "pdf", `description: "pdf"`, 1},
		"Chinese":             {"表單", "---\ndescription: 填寫。\n---\n\n步驟。\n", "表單", "name: 表單\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, files, notes := skill.Adapt(tc.folder, main(tc.text))
			if got != tc.want || len(notes) != tc.notes || !strings.Contains(string(files[0].Content), tc.has) {
				t.Errorf("got %q, %q:\n%s", got, notes, files[0].Content)
			}
			if _, ps := skill.Parse(got, files); len(ps.Broken()) > 0 {
				t.Errorf("it does not fit: %v\n%s", ps, files[0].Content)
			}
		})
	}
	for name, tc := range map[string]struct{ folder, text string }{
		"a folder without letters": {"___", good}, "not YAML": {"pdf", "---\nname: [a\n---\n"}, "a list as a name": {"pdf", "---\nname: [a]\ndescription: x\n---\n"},
		"a device": {"con", good}, "not closed": {"pdf", "---\nname: a\n"}, "not text": {"pdf", "---\nname: a\x00\n---\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, files, _ := skill.Adapt(tc.folder, main(tc.text))
			if _, ps := skill.Parse(got, files); len(ps.Broken()) == 0 || string(files[0].Content) != tc.text {
				t.Errorf("got %q and %q, %v", got, files[0].Content, ps)
			}
		})
	}
}

// Two names that look like one must not be two skills.
func TestCheckName_lookalikes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"p\u0434f", "pdf\ufe0f", "pdf\u034f", "pdf\u3164", "\u115fpdf", "pdf\u200b", "pаypal", "αbc", "сοde"} {
		if ps := skill.CheckName(name); !ps.Has(skill.NameCharacters) {
			t.Errorf("%q: %v", name, ps)
		}
	}
	for _, name := range []string{"pdf-forms", "表單", "формы", "δέλτα", "한국어", "नमस्ते", "पीडीएफ-2", "pdf-表單"} {
		if ps := skill.CheckName(name); len(ps) > 0 {
			t.Errorf("%q: %v", name, ps)
		}
	}
}
