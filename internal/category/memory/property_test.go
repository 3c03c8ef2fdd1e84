package memory_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestFoundByItsOwnWords is the promise of the search: what was stored is
// found by any two neighbouring characters of its own Chinese, Japanese or
// Korean runs and by any of its words.
func TestFoundByItsOwnWords(t *testing.T) {
	_, c, _ := begin(t, "a")
	random := rand.New(rand.NewPCG(7, 11))
	vocabulary := strings.Fields(`deployment of the red-green service v1.2.3 case_1 Häuser français niños 今天讨论了部署方案 圖書館 サーバーを再起動
		ガラス 서울에서 만났다 🚀 don't C++ 100% /usr/local/bin getUserName 健康检查 gen-itgc后 部署 と カ゛ 第3章 ＡＢＣ`)
	notes := map[string]string{} // id → content
	for i := range 60 {
		words := []string{fmt.Sprintf("note%d", i)}
		for range 2 + random.IntN(8) {
			words = append(words, vocabulary[random.IntN(len(vocabulary))])
		}
		content := strings.Join(words, []string{" ", "，", "\n", " / "}[random.IntN(4)])
		notes[store(t, c, "a", content)] = content
	}
	asked := map[string]bool{}
	for id, content := range notes {
		for _, query := range slices.Concat(strings.Fields(content), pairs(content)) {
			if asked[query] {
				continue
			}
			asked[query] = true
			got := search(t, c, "a", query)
			if !slices.ContainsFunc(got.Memories, func(m memoryFound) bool { return m.ID == id }) {
				t.Errorf("%q is not found by %q", content, query)
			}
		}
	}
	t.Logf("%d notes, %d queries", len(notes), len(asked))
}

// pairs are the neighbouring characters of the runs without blanks.
func pairs(text string) []string {
	var all []string
	runes := []rune(text)
	unspaced := func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
	}
	for i := range len(runes) - 1 {
		if unspaced(runes[i]) && unspaced(runes[i+1]) {
			all = append(all, string(runes[i:i+2]))
		}
	}
	return all
}
