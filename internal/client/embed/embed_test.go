package embed_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/client/embed"
)

func serve(t *testing.T, answer http.HandlerFunc) *embed.Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return embed.New(embed.Config{URL: server.URL + "/v1/", Model: "small", Key: "k1"})
}

func TestEmbed(t *testing.T) {
	t.Parallel()
	var asked struct {
		Model string
		Input []string
	}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/embeddings" || r.Header.Get("Authorization") != "Bearer k1" {
			t.Errorf("asked %s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		_, _ = w.Write([]byte(`{"data":[{"index":1,"embedding":[0,0]},{"index":0,"embedding":[3,-4]}]}`))
	})
	got, err := c.Embed(t.Context(), []string{"one", strings.Repeat("長", 4000)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]float32{{0.6, -0.8}, {0, 0}}, got); diff != "" {
		t.Errorf("vectors (-want +got):\n%s", diff)
	}
	if asked.Model != "small" || len(asked.Input) != 2 || len(asked.Input[1]) > 8000 {
		t.Errorf("asked for %d texts of model %q", len(asked.Input), asked.Model)
	}
}

func TestEmbedRefuses(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"no JSON": `oops`, "too few": `{"data":[{"index":0,"embedding":[1]}]}`, "no place": `{"data":[{"index":7,"embedding":[1]}]}`,
		"no numbers": `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[1]}]}`,
		"two sizes":  `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
			if _, err := c.Embed(t.Context(), []string{"a", "b"}); err == nil {
				t.Error("want an error")
			}
		})
	}
	t.Run("a redirect", func(t *testing.T) {
		t.Parallel()
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		})
		if _, err := c.Embed(t.Context(), []string{"a"}); err == nil {
			t.Error("the redirect is followed")
		}
	})
}

func TestCosineAndCode(t *testing.T) {
	t.Parallel()
	if got := embed.Cosine([]float32{0.6, 0.8}, []float32{0.8, 0.6}); math.Abs(got-0.96) > 1e-6 {
		t.Errorf("cosine %v, want 0.96", got)
	}
	if got := embed.Cosine([]float32{1}, []float32{1, 0}); got != 0 {
		t.Errorf("cosine of two sizes %v, want 0", got)
	}
	if got := embed.Code([]float32{0.5, -0.5, 0, 1}); got != "1001" {
		t.Errorf("code %s, want 1001", got)
	}
}
