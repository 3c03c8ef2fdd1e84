package memory_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pawgate/internal/category/memory"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/tool/tooltest"
)

// topics is an embedder that knows three topics by their words.
type topics struct {
	model string
	err   error
}

func (e topics) Model() string { return e.model }

func (e topics) Embed(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = make([]float32, 4)
		topic := 3
		for n, words := range [][]string{{"car", "automobile", "vehicle"}, {"dog", "puppy", "犬"}, {"rain", "weather", "storm"}} {
			if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) }) {
				topic = n
			}
		}
		vectors[i][topic] = 1
	}
	return vectors, e.err
}

func TestHybrid(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) { t.Parallel(); testHybrid(t, postgrestest.New(t)) })
	t.Run("pgvector", func(t *testing.T) {
		t.Parallel()
		db := postgrestest.Clone(t)
		if !hasPgvector(t, db) {
			t.Skip("the server lacks pgvector; make pgvector runs this on one that has it")
		}
		testHybrid(t, db)
	})
}

func testHybrid(t *testing.T, db postgres.DB) {
	addAgent(t, db, "a", "b")
	words := open(db)
	c := memory.NewHybrid(db, clock, topics{model: "m1"})
	store(t, words, "a", "bought an automobile")
	store(t, words, "a", "the puppy sleeps", "pets")
	store(t, words, "a", "storm tonight")
	store(t, words, "b", "the dog of another")

	t.Run("without vectors it is words alone", func(t *testing.T) {
		if got := contents(t, c, "a", "dog"); len(got) != 0 {
			t.Errorf("found %q", got)
		}
	})
	backfill := func(e memory.Embedder) (memory.Backfilled, error) {
		return memory.Backfill(t.Context(), db, "a", e, 0, time.Minute)
	}
	t.Run("a backfill without time tells how much there is to do", func(t *testing.T) {
		done, err := memory.Backfill(t.Context(), db, "a", topics{model: "m1"}, 0, 0)
		if err != nil || done != (memory.Backfilled{Missing: 3}) {
			t.Errorf("done %+v, error %v", done, err)
		}
	})
	t.Run("a backfill that breaks off goes on later", func(t *testing.T) {
		if _, err := backfill(topics{model: "m1", err: errors.New("away")}); err == nil {
			t.Error("want an error")
		}
		done, err := backfill(topics{model: "m1"})
		if err != nil || done.Done != 3 || done.Missing != 0 || done.Next == 0 {
			t.Errorf("done %+v, error %v", done, err)
		}
		if done, err := backfill(topics{model: "m1"}); err != nil || done.Done != 0 {
			t.Errorf("again: %+v, error %v", done, err)
		}
	})
	t.Run("found by meaning", func(t *testing.T) {
		for query, want := range map[string]string{"dog": "the puppy sleeps", "vehicle": "bought an automobile", "weather": "storm tonight"} {
			if got := contents(t, c, "a", query); len(got) != 1 || got[0] != want {
				t.Errorf("search %q found %q, want %q", query, got, want)
			}
		}
	})
	t.Run("words come before meaning", func(t *testing.T) {
		store(t, c, "a", "the dog barks")
		if got := contents(t, c, "a", "dog"); !slices.Equal(got, []string{"the dog barks", "the puppy sleeps"}) {
			t.Errorf("found %q", got)
		}
	})
	t.Run("filters hold", func(t *testing.T) {
		got := tooltest.OK[results](t, c, tooltest.Who("a"), "memory_search", `{"query":"dog","tags":["pets"],"explain":true}`)
		if len(got.Memories) != 1 || got.Memories[0].Content != "the puppy sleeps" || got.Memories[0].Parts["meaning"] != 1 {
			t.Errorf("got %+v", got.Memories)
		}
	})
	t.Run("another model's vectors are not compared", func(t *testing.T) {
		other := memory.NewHybrid(db, clock, topics{model: "m2"})
		if got := contents(t, other, "a", "vehicle"); len(got) != 0 {
			t.Errorf("found %q", got)
		}
		if done, err := backfill(topics{model: "m2"}); err != nil || done.Done != 4 {
			t.Errorf("done %+v, error %v", done, err)
		}
		if got := contents(t, other, "a", "vehicle"); len(got) != 1 {
			t.Errorf("found %q", got)
		}
	})
	t.Run("a server that is away costs nothing but meaning", func(t *testing.T) {
		away := memory.NewHybrid(db, clock, topics{model: "m2", err: errors.New("away")})
		store(t, away, "a", "rain in the morning")
		got := search(t, away, "a", "rain")
		if len(got.Memories) != 1 || !got.WordsOnly {
			t.Errorf("got %+v", got)
		}
		if search(t, c, "a", "rain").WordsOnly {
			t.Error("words only, though the embedder answers")
		}
	})
}

// signs is an embedder whose vectors are chosen so that the code of one tells
// nothing of it.
type signs struct{ vectors map[string][]float32 }

func (signs) Model() string { return "signs" }

func (e signs) Embed(_ context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = e.vectors[text]
	}
	return vectors, nil
}

// A vector may mean the same though many of its small parts have other signs: it
// is found all the same, whatever the server has.
func TestComparedWhole(t *testing.T) {
	t.Parallel()
	for name, pgvector := range map[string]bool{"plain": false, "pgvector": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := postgrestest.Clone(t)
			if pgvector && !hasPgvector(t, db) {
				t.Skip("the server lacks pgvector; make pgvector runs this on one that has it")
			}
			addAgent(t, db, "a")
			e := signs{map[string][]float32{"ask": unit(1, 0.001, 0.001, 0.001), "hidden twin": unit(1, -0.001, -0.001, -0.001)}}
			for i := range 200 {
				e.vectors["decoy "+strconv.Itoa(i)] = unit(0.001, 1, 1, 1)
			}
			c := memory.NewHybrid(db, clock, e)
			for content := range e.vectors {
				if content != "ask" {
					store(t, c, "a", content)
				}
			}
			if got := contents(t, c, "a", "ask"); len(got) == 0 || got[0] != "hidden twin" {
				t.Errorf("found %q, want the twin first", got)
			}
		})
	}
}

// hasPgvector gives the test's database the extension, if the server has it.
func hasPgvector(t *testing.T, db postgres.DB) bool {
	t.Helper()
	var available bool
	if err := db.QueryRow(t.Context(), `select exists (select from pg_available_extensions where name = 'vector')`).Scan(&available); err != nil {
		t.Fatal(err)
	}
	if available {
		if _, err := db.Exec(t.Context(), `create extension if not exists vector`); err != nil {
			t.Fatal(err)
		}
	}
	return available
}

func unit(v ...float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
