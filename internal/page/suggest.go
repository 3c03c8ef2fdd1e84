package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Suggest says what a document has where a selector found nothing: the longest
// end of the selector that does match, names that resemble those asked for, or
// that the page is built by scripts.
func (d *Document) Suggest(ctx context.Context, selector string) string {
	selector = pseudoElement.ReplaceAllString(selector, "")
	if hint := d.shorter(ctx, selector); hint != "" {
		return hint
	}
	if similar := d.similar(selector); len(similar) > 0 {
		return "names on the page that resemble it: " + strings.Join(similar, ", ")
	}
	if textLength(d.Body()) < 200 {
		return "the page has almost no text without its scripts, which are not run"
	}
	return "elements on the page: " + d.census()
}

var combinator = regexp.MustCompile(`\s*[>+~]\s*|\s+`)

// shorter drops steps from the beginning of a selector until it matches.
func (d *Document) shorter(ctx context.Context, selector string) string {
	for {
		at := combinator.FindStringIndex(strings.TrimSpace(selector))
		if at == nil {
			return ""
		}
		selector = strings.TrimSpace(selector)[at[1]:]
		s, err := ParseSelector(selector)
		if err != nil {
			return ""
		}
		if n := len(d.Find(ctx, s)); n > 0 {
			return fmt.Sprintf("%s alone matches %d", line(selector), n)
		}
	}
}

var selectorName = regexp.MustCompile(`[.#]?[a-zA-Z_][\w-]{2,}`)

// similar lists classes and ids that share a part with the selector's names.
func (d *Document) similar(selector string) []string {
	wanted := selectorName.FindAllString(strings.ToLower(selector), 20)
	counts := map[string]int{}
	for n := range descendants(d.root) {
		if n.Type != html.ElementNode {
			continue
		}
		for class := range strings.FieldsSeq(attr(n, "class")) {
			if len(counts) < 5000 && resembles(class, wanted) {
				counts["."+line(class)]++
			}
		}
		if id := attr(n, "id"); id != "" && len(counts) < 5000 && resembles(id, wanted) {
			counts["#"+line(id)]++
		}
	}
	return commonest(counts, 8)
}

// resembles reports whether a name contains, or is contained in, one of those
// wanted, or shares a word of four letters with it.
func resembles(name string, wanted []string) bool {
	name = strings.ToLower(name)
	for _, w := range wanted {
		w = strings.TrimLeft(w, ".#")
		if len(name) > 2 && len(w) > 2 && (strings.Contains(name, w) || strings.Contains(w, name)) {
			return true
		}
		for word := range wordsOf(w) {
			if len(word) > 3 && strings.Contains(name, word) {
				return true
			}
		}
	}
	return false
}

// census lists the commonest elements.
func (d *Document) census() string {
	counts := map[string]int{}
	for n := range descendants(d.Body()) {
		if n.Type == html.ElementNode && len(counts) < 1000 {
			counts[line(n.Data)]++
		}
	}
	var parts []string
	for _, name := range commonest(counts, 10) {
		parts = append(parts, fmt.Sprintf("%s (%d)", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

func commonest(counts map[string]int, n int) []string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	return names[:min(len(names), n)]
}
