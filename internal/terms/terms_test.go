package terms_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/terms"
)

func texts(b terms.Bag) []string {
	all := []string{}
	for _, t := range b.Terms {
		all = append(all, t.Text)
	}
	return all
}

func TestDocument(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"empty":              {"", []string{}},
		"punctuation":        {" ?!。、… ", []string{}},
		"English":            {"The runners were running", []string{"the", "runners", "runner", "were", "be", "running", "run"}},
		"German":             {"Die Häuser und das Haus", []string{"die", "hauser", "haus", "und", "das"}},
		"Chinese":            {"部署方案", []string{"部", "部署", "署", "署方", "方", "方案", "案"}},
		"one form of all":    {"圖書館", []string{"图", "图书", "书", "书馆", "馆"}},
		"new Japanese forms": {"図書", []string{"图", "图书", "书"}},
		"kana, half width":   {"ｶﾞｽ", []string{"ガ", "ガス", "ス"}},
		"glued scripts":      {"重跑itgc后", []string{"重", "重跑", "跑", "itgc", "后"}},
		"a version":          {"v1.2.3", []string{"v1", "2", "3", "v1.2.3", "v1.2", "2.3"}},
		"a suffix":           {"100% C++ F#", []string{"100", "100%", "c", "c++", "f", "f#"}},
		"thousands":          {"1,000 x,y", []string{"1", "000", "1,000", "x", "y"}},
		"emoji":              {"👩🏽‍💻🇹🇼❤️", []string{"👩", "💻", "🇹🇼", "❤"}},
		"invisible":          {"so\u00adft\u200b", []string{"soft"}},
		"possessive":         {"the Caroline’s", []string{"the", "caroline", "carolin"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, texts(terms.Document(tc.text))); diff != "" {
				t.Errorf("terms of %q (-want +got):\n%s", tc.text, diff)
			}
		})
	}
}

func TestDocumentCounts(t *testing.T) {
	t.Parallel()
	got := terms.Document("the tea, the TEA")
	want := terms.Bag{Terms: []terms.Term{{Text: "the", Count: 2}, {Text: "tea", Count: 2}}, Length: 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDocumentIsBounded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"words":          strings.Repeat("word ", 1<<20),
		"one long word":  strings.Repeat("x", 1<<20),
		"one long path":  strings.Repeat("ab/", 1<<19),
		"one long run":   strings.Repeat("部署方案", 1<<18),
		"capitals":       strings.Repeat("aB", 1<<19),
		"marks":          "a" + strings.Repeat("\u0301", 1<<19),
		"expanding":      strings.Repeat("\uFDFA", 1<<18),
		"broken UTF-8":   strings.Repeat("\xff\xe4", 1<<19),
		"different ones": distinct(60_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n := len(terms.Document(text).Terms); n > terms.MaxTerms {
				t.Errorf("%d terms", n)
			}
			if n := len(terms.Query(text)); n > terms.MaxNeeds {
				t.Errorf("%d needs", n)
			}
		})
	}
}

func distinct(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("w")
		b.WriteRune(rune('a' + i%26))
		b.WriteString(strings.Repeat("q", i/26%40))
		b.WriteRune(rune('a' + i/1040%26))
		b.WriteString(" ")
	}
	return b.String()
}

func TestQuery(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		"":                          nil,
		"?!":                        nil,
		"What did the runners eat?": {"runners", "eat"},
		"to be or not to be":        {"to", "be", "or", "not"},
		"那個是什麼名字":                   {"那", "个", "个是", "是", "什", "么", "么名", "名", "名字", "字"},
		"貓":                         {"猫"},
		"case_1":                    {"case_1"},
		"covid-19":                  {"covid-19", "covid"},
		"well-known":                {"well", "known", "well-known"},
		"me@example.com":            {"me@example.com", "me", "example", "com"},
		"a/b/c/d/e":                 {"a/b/c/d", "b/c/d/e"},
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, n := range terms.Query(query) {
				got = append(got, n.Any[0].Terms[0])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("needs of %q (-want +got):\n%s", query, diff)
			}
		})
	}
}

// TestQueryMeetsDocument is the promise of the package: a text is found by
// each of its words and by each pair of characters, in whatever spelling.
func TestQueryMeetsDocument(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	alphabets := []string{"abcdefgéüß", "АБВгд", "部署圖書館図学サーバーがガ서울에서", "กรุงเทพ", "0123", "_-./:@'", " \n,。!", "🚀❤️👩‍💻"}
	for range 3000 {
		var b strings.Builder
		for range 1 + random.IntN(6) {
			alphabet := []rune(alphabets[random.IntN(len(alphabets))])
			for range 1 + random.IntN(5) {
				b.WriteRune(alphabet[random.IntN(len(alphabet))])
			}
		}
		text := b.String()
		have := texts(terms.Document(text))
		for _, piece := range append(strings.Fields(text), text) {
			for _, need := range terms.Query(piece) {
				if !slices.ContainsFunc(need.Any, func(a terms.Alternative) bool { return slices.Contains(have, a.Terms[0]) }) {
					t.Fatalf("%q is not found by its piece %q: need %v, have %q", text, piece, need.Any, have)
				}
			}
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"Café  au lait", "cafe\u0301 au lait", " ＣＡＦＥ\u3000au\nlait "},
		{"圖書館", "图书馆", "図書館"},
		{"ｶﾞ", "ガ", "カ\u3099"},
	} {
		for _, text := range same {
			if terms.Fold(text) != terms.Fold(same[0]) {
				t.Errorf("%q folds to %q, %q to %q", text, terms.Fold(text), same[0], terms.Fold(same[0]))
			}
		}
	}
	if terms.Fold("かき") == terms.Fold("がき") {
		t.Error("a voicing mark is lost")
	}
	if terms.Fold("really?") == terms.Fold("really!") {
		t.Error("punctuation is lost")
	}
}

func FuzzDocument(f *testing.F) {
	for _, seed := range []string{"gen-itgc后50条", "v1.2.3 /usr/local", "\xff\x00", "a'b'c", "100%", "c++", "🇹🇼🇹", "1,000", "ʼ’'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, term := range terms.Document(text).Terms {
			if term.Text == "" || strings.HasPrefix(term.Text, " ") || term.Count < 1 || utf8.ValidString(text) && !utf8.ValidString(term.Text) {
				t.Errorf("term %q of %q", term.Text, text)
			}
		}
		terms.Query(text)
	})
}
