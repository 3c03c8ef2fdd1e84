package memory

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"pawgate/internal/fault"
	"pawgate/internal/terms"
)

// The layers of memory.
const (
	episodic   = "episodic"   // what happened
	semantic   = "semantic"   // what holds
	procedural = "procedural" // how something is done
)

// The marks of a memory, which tools look for.
const (
	markSuccess  = "success"
	markFailure  = "failure"
	markOpen     = "open"
	markDecision = "decision"
)

var marks = []string{markSuccess, markFailure, markOpen, markDecision}

// usualImportance is that of a memory which says nothing about itself.
const usualImportance = 5

// signs are phrases that tell what a memory is. A phrase in Latin letters must
// stand as words of its own.
var signs = []struct {
	layer      string
	mark       string
	importance float64
	phrases    []string
}{
	{importance: 2, phrases: []string{"critical", "urgent", "緊急", "至急", "긴급"}},
	{importance: 1, phrases: []string{"learned", "discovered", "發現"}},
	{layer: semantic, phrases: []string{"always", "never", "rule:", "principle:", "pattern:", "the user prefers", "general rule", "key insight",
		"important:", "總是", "永遠", "原則", "規則", "偏好"}},
	{layer: procedural, phrases: []string{"how to", "step 1", "steps:", "步驟", "手順"}},
	{mark: markFailure, importance: 1, phrases: []string{"failed", "error", "did not work", "didn't work", "失敗", "出錯", "실패"}},
	{mark: markSuccess, phrases: []string{"succeeded", "success", "successful", "successfully", "solved", "fixed", "resolved", "worked well",
		"成功", "解決了", "修好", "搞定", "完成了", "解決しました", "해결했"}},
	{mark: markOpen, phrases: []string{"todo", "to do:", "next step", "next:", "follow up", "follow-up", "open question", "[ ]",
		"待辦", "下一步", "待處理", "未完成", "やること", "할 일"}},
	{mark: markDecision, phrases: []string{"decided", "decision", "we chose", "agreed to", "決定", "拍板", "결정"}},
}

// judgement is what a memory's own words and tags say about it.
type judgement struct {
	layer      string
	importance float64
	marks      []string
}

// judge reads the signs of a memory. A mark's name among the tags counts as a
// sign as well.
func judge(content string, tags []string) judgement {
	folded := terms.Fold(content)
	j := judgement{layer: episodic, importance: usualImportance, marks: []string{}}
	for _, s := range signs {
		said := slices.ContainsFunc(s.phrases, func(p string) bool { return hasPhrase(folded, terms.Fold(p)) })
		tagged := s.mark != "" && slices.ContainsFunc(tags, func(tag string) bool { return terms.Fold(tag) == s.mark })
		if !said && !tagged {
			continue
		}
		j.layer = cmp.Or(s.layer, j.layer)
		j.importance = min(j.importance+s.importance, 10)
		if s.mark != "" {
			j.marks = append(j.marks, s.mark)
		}
	}
	if slices.Contains(j.marks, markFailure) { // "the fix failed" is no success
		j.marks = slices.DeleteFunc(j.marks, func(m string) bool { return m == markSuccess })
	}
	return j
}

// hasPhrase reports whether a folded text has a phrase, not within a longer
// Latin word.
func hasPhrase(text, phrase string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], phrase)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(phrase)
		if !(i > 0 && letter(text[i-1]) && letter(phrase[0])) && !(end < len(text) && letter(text[end]) && letter(phrase[len(phrase)-1])) {
			return true
		}
		from = i + 1
	}
}

func letter(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

// placeholder matches what a template has where a value belongs.
var placeholder = regexp.MustCompile(`\{\{\s*[\w.-]+\s*\}\}|\$\{[\w.-]+\}|<(?i:your|insert|enter|user|name|fact|value|content|summary|placeholder)[\w -]*>` +
	`|\[(?i:insert|your|enter|fill in|placeholder|name|date)[\w '-]*\]`)

// emptyWords are contents that stand for none.
var emptyWords = []string{"todo", "tbd", "n/a", "none", "null", "undefined", "string", "content", "content here", "placeholder", "lorem ipsum", "example", "..."}

// validateContent refuses what says nothing: blank text and templates that
// nobody filled in. In backticks a placeholder is taken as meant.
func validateContent(content string) error {
	trimmed := strings.TrimSpace(content)
	if trimmed == "" {
		return fault.Invalid("content", "content must not be blank")
	}
	if slices.Contains(emptyWords, strings.ToLower(strings.Trim(trimmed, " .!<>[]{}\"'"))) {
		return fault.Invalid("content", "content says nothing (%q); write what to remember", trimmed)
	}
	if found := placeholder.FindString(content); found != "" && len(content) < 1000 && !strings.Contains(content, "`") {
		return fault.Invalid("content", "content looks like a template that was not filled in (%s); fill it in, or set it in backticks if it is meant", found)
	}
	return nil
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
