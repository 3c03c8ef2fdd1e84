package memory

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"pawgate/internal/category/memory/terms"
	"pawgate/internal/fault"
)

// The layers of memory.
const (
	episodic   = "episodic"   // what happened
	semantic   = "semantic"   // what holds
	procedural = "procedural" // how something is done
)

// usualImportance is that of a memory which says nothing about itself.
const usualImportance = 5

// signs are phrases that tell how much a memory matters and which layer it
// belongs to. They are compared with folded text.
var signs = []struct {
	layer      string
	importance float64
	phrases    []string
}{
	{"", 2, []string{"critical", "urgent", "緊急", "紧急", "至急", "긴급"}},
	{"", 1, []string{"learned", "discovered", "發現", "发现"}},
	{"", 1, []string{"failed", "error", "失敗", "失败"}},
	{semantic, 0, []string{"always ", "never ", "rule:", "principle:", "pattern:", "the user prefers", "general rule", "key insight",
		"important:", "總是", "总是", "永遠", "永远", "原則", "原则", "規則", "规则", "偏好"}},
	{procedural, 0, []string{"how to ", "step 1", "steps:", "步驟", "步骤", "手順"}},
}

// judge gives a memory its layer and importance where the caller did not.
func judge(content, layer string, importance float64) (string, float64) {
	folded := terms.Fold(content)
	guessedLayer, guessed := episodic, float64(usualImportance)
	for _, s := range signs {
		if slices.ContainsFunc(s.phrases, func(p string) bool { return strings.Contains(folded, terms.Fold(p)+blankEnd(p)) }) {
			guessedLayer = cmp.Or(s.layer, guessedLayer)
			guessed += s.importance
		}
	}
	return cmp.Or(layer, guessedLayer), cmp.Or(importance, min(guessed, 10))
}

// blankEnd keeps the blank that ends a phrase, which folding takes away.
func blankEnd(phrase string) string {
	if strings.HasSuffix(phrase, " ") {
		return " "
	}
	return ""
}

// Bounds of a memory's tags.
const (
	maxTags      = 32
	maxTagLength = 64 // characters
)

func validateTags(tags []string) error {
	if len(tags) > maxTags {
		return fault.Invalid("tags", "tags must be at most %d, not %d", maxTags, len(tags))
	}
	for _, tag := range tags {
		if n := utf8.RuneCountInString(tag); n > maxTagLength {
			return fault.Invalid("tags", "a tag must be at most %d characters, not %d", maxTagLength, n)
		}
	}
	return nil
}

// cleanTags drops blanks around tags, empty ones, and those that differ only
// in case or width from one before.
func cleanTags(tags []string) []string {
	clean := make([]string, 0, len(tags))
	for _, tag := range tags {
		tag = strings.TrimSpace(tag)
		if tag != "" && !slices.ContainsFunc(clean, func(c string) bool { return terms.Fold(c) == terms.Fold(tag) }) {
			clean = append(clean, tag)
		}
	}
	return clean
}
