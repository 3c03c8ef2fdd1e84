package memory_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"pawgate/internal/category/memory"
	"pawgate/internal/client/embed"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
)

type conversation struct {
	Conversation string `json:"conversation"`
	Memories     []struct{ ID, At, Speaker, Text string }
	Questions    []struct {
		Question string
		Evidence []string
	}
}

// TestLocomo measures how well the search finds the turns of long
// conversations that answer a question: by words alone, and by meaning too
// where EMBEDDINGS_URL names a server. The data may not be redistributed, so
// the test reads it from where PAWGATE_LOCOMO says. The bar is plain BM25 over
// stemmed words.
func TestLocomo(t *testing.T) {
	path := os.Getenv("PAWGATE_LOCOMO")
	if path == "" {
		t.Skip("PAWGATE_LOCOMO does not name a LoCoMo file: the quality of search is not measured")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []conversation
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	t.Run("words alone", func(t *testing.T) {
		db := postgrestest.New(t)
		measureLocomo(t, db, memory.New(db, clock), all)
	})
	t.Run("hybrid", func(t *testing.T) {
		url := os.Getenv("EMBEDDINGS_URL")
		if url == "" {
			t.Skip("EMBEDDINGS_URL names no server for embeddings: what meaning adds is not measured")
		}
		db := postgrestest.New(t)
		e := embed.New(embed.Config{URL: url, Model: os.Getenv("EMBEDDINGS_MODEL"), Key: os.Getenv("EMBEDDINGS_KEY")})
		measureLocomo(t, db, memory.NewHybrid(db, clock, e), all)
	})
}

func measureLocomo(t *testing.T, db execer, category tool.Category, all []conversation) {
	t.Helper()
	var sum quality
	for _, c := range all {
		agent := "locomo-" + c.Conversation
		addAgent(t, db, agent)
		sum.measure(t, category, agent, c)
	}
	n := float64(sum.questions)
	r5, r10, ndcg := 100*sum.recall5/n, 100*sum.recall10/n, 100*sum.ndcg10/n
	t.Logf("%d questions: R@5 %.1f, R@10 %.1f, NDCG@10 %.1f (plain BM25: 55.5, 62.8, 48.9)", sum.questions, r5, r10, ndcg)
	if r5 <= 55.5 || r10 <= 62.8 || ndcg <= 48.9 {
		t.Errorf("not better than plain BM25")
	}
}

type quality struct {
	questions                 int
	recall5, recall10, ndcg10 float64
}

func (q *quality) measure(t *testing.T, category tool.Category, agent string, c conversation) {
	t.Helper()
	who := tooltest.Who(agent)
	turns := map[string][]string{} // memory → the turns it holds; the same words twice are one memory
	for _, m := range c.Memories {
		id := tooltest.OK[stored](t, category, who, "memory_store", map[string]any{"content": m.Speaker + ": " + m.Text}).MemoryID
		turns[id] = append(turns[id], m.ID)
	}
	for _, question := range c.Questions {
		got := tooltest.OK[results](t, category, who, "memory_search", map[string]any{"query": question.Question, "limit": 10})
		q.questions++
		hits := make([]int, 10)
		for i, m := range got.Memories {
			if slices.ContainsFunc(turns[m.ID], func(turn string) bool { return slices.Contains(question.Evidence, turn) }) {
				hits[i] = 1
			}
		}
		want := float64(len(question.Evidence))
		q.recall5 += count(hits[:5]) / want
		q.recall10 += count(hits) / want
		q.ndcg10 += ndcg(hits, len(question.Evidence))
	}
}

func count(hits []int) float64 {
	n := 0
	for _, h := range hits {
		n += h
	}
	return float64(n)
}

func ndcg(hits []int, relevant int) float64 {
	gain, ideal := 0.0, 0.0
	for i, h := range hits {
		gain += float64(h) / math.Log2(float64(i+2))
		if i < relevant {
			ideal += 1 / math.Log2(float64(i+2))
		}
	}
	return gain / ideal
}
