package memory_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"pawgate/internal/tool/tooltest"
)

// floor is the score below which a memory is no answer; the description of
// memory_search says so.
const floor = 0.15

// TestLabelled holds the quality of search: of the questions in
// testdata/queries.tsv (language, question, memories that answer it) at least
// 95 % must have their answer among the first five, in every language, and
// those that nothing answers must find nothing above the floor.
func TestLabelled(t *testing.T) {
	_, c, _ := begin(t, "a")
	label := map[string]string{}
	for _, m := range readTable(t, "testdata/memories.tsv") {
		label[store(t, c, "a", m[1])] = m[0]
	}
	asked, right, first := map[string]float64{}, map[string]float64{}, 0.0
	for _, q := range readTable(t, "testdata/queries.tsv") {
		language, query, answers := q[0], q[1], strings.Fields(q[2])
		got := tooltest.OK[results](t, c, tooltest.Who("a"), "memory_search", map[string]any{"query": query, "limit": 5})
		asked[language]++
		if language == "none" {
			if len(got.Memories) > 0 && got.Memories[0].Score >= floor {
				t.Errorf("%q has no answer, but %q scores %.2f", query, got.Memories[0].Content, got.Memories[0].Score)
			}
			continue
		}
		var found []string
		for _, m := range got.Memories {
			found = append(found, label[m.ID])
		}
		for _, answer := range answers {
			i := slices.Index(found, answer)
			if i >= 0 {
				right[language] += 1 / float64(len(answers))
			}
			switch {
			case i == 0:
				first++
			case i < 0 || got.Memories[i].Score < floor:
				t.Logf("%s %q: want %s among %v, above %.2f", language, query, answer, found, floor)
			}
		}
	}
	total, hits := 0.0, 0.0
	for language, n := range asked {
		if language == "none" {
			continue
		}
		total, hits = total+n, hits+right[language]
		recall := 100 * right[language] / n
		t.Logf("%-6s %3.0f questions, R@5 %.1f", language, n, recall)
		if recall < 95 {
			t.Errorf("%s: R@5 %.1f, want at least 95", language, recall)
		}
	}
	t.Logf("all    %3.0f questions, R@5 %.1f, first %.1f", total, 100*hits/total, 100*first/total)
}

func readTable(t *testing.T, path string) [][]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(data)) {
		rows = append(rows, strings.Split(strings.TrimRight(line, "\n"), "\t"))
	}
	return rows
}
