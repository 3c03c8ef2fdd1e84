package inference_test

import (
	"strings"
	"testing"

	"github.com/kelseyhightower/envconfig"

	"pawgate/internal/category/inference"
	"pawgate/internal/tool/tooltest"
)

// defaults are the router's settings when nobody sets any.
func defaults(t *testing.T) inference.Router {
	t.Helper()
	var r inference.Router
	if err := envconfig.Process("", &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestDecide(t *testing.T) {
	t.Parallel()
	r := defaults(t)
	r.FastModel, r.StrongModel = "small", "big"
	long := strings.Repeat("words and more words ", 300)
	for _, c := range []struct {
		name, prompt, system string
		tier                 inference.Tier
		model, rule          string // a rule that must apply
	}{
		{"easy", "translate this to French: cat", "", inference.Fast, "small", "easy_keyword"},
		{"chinese_easy", "請翻譯這句話", "", inference.Fast, "small", "easy_keyword"},
		{"japanese_easy", "この文章を要約して", "", inference.Fast, "small", "easy_keyword"},
		{"short", "why is the sky blue", "", inference.Fast, "small", "length"},
		{"ordinary", strings.Repeat("some words here ", 25), "", inference.Strong, "big", "length"},
		{"hard", "refactor the service and think about its architecture", "", inference.Cloud, "", "hard_keyword"},
		{"hard_in_the_system_prompt", strings.Repeat("some words here ", 25), "You do a security audit", inference.Cloud, "", "hard_keyword"},
		{"chinese_hard", "請重構這個系統並做架構設計", "", inference.Cloud, "", "hard_keyword"},
		{"very_long", long, "", inference.Cloud, "", "length"},
		{"steps_and_code", strings.Repeat("some words here ", 25) + "first do this, then that\n```go\nx\n```", "", inference.Cloud, "", "steps"},
		{"questions", "a? b? c?", "", inference.Strong, "big", "questions"},
		{"fullwidth_questions", "什麼？為何？如何？", "", inference.Strong, "big", "questions"},
		{"long_system_prompt", "why is the sky blue", long, inference.Strong, "big", "system_prompt"},
		{"hi_is_a_word", "hi", "", inference.Fast, "small", "easy_keyword"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := r.Decide(c.prompt, c.system)
			rules := map[string]bool{}
			for _, reason := range d.Reasons {
				rules[reason.Rule] = true
			}
			if d.Tier != c.tier || d.Model != c.model || !rules[c.rule] {
				t.Errorf("got %s %s %.2f because %+v; want %s %s with %s", d.Tier, d.Model, d.Confidence, d.Reasons, c.tier, c.model, c.rule)
			}
		})
	}
}

// Parts of words are no words: "hi" in "this", "then" in "strengthen".
func TestDecide_word_bounds(t *testing.T) {
	t.Parallel()
	for prompt, rule := range map[string]string{
		"this thing shines": "easy_keyword", "strengthen the firstborn": "steps", "a refactorable thing": "", "the discount": "easy_keyword",
	} {
		for _, reason := range defaults(t).Decide(prompt, "").Reasons {
			if reason.Rule == rule {
				t.Errorf("%q: %+v", prompt, reason)
			}
		}
	}
}

func TestDecide_settings(t *testing.T) {
	t.Parallel()
	r := defaults(t)
	r.FastThreshold, r.StrongThreshold = 2, 2
	if d := r.Decide("hello", ""); d.Tier != inference.Cloud {
		t.Errorf("thresholds out of reach: %+v", d)
	}
	r = defaults(t)
	r.FastKeywords, r.CloudKeywords = nil, []string{"hello", " "}
	if d := r.Decide("hello there", ""); d.Tier != inference.Strong {
		t.Errorf("own keywords: %+v", d)
	}
	r.Enabled, r.StrongModel = false, "big"
	if d := r.Decide("hello", ""); d.Tier != inference.Strong || d.Confidence != 0.5 || d.Model != "big" || len(d.Reasons) != 1 {
		t.Errorf("off: %+v", d)
	}
}

func TestEstimateTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 1, "abc": 1, "abcdefgh": 2, "備份": 2, "備份策略": 3, "備份 data": 3, "ひらがなカタカナ한국": 7, "，。": 2} {
		if got := inference.EstimateTokens(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

type routeAnswer struct {
	Tier       string
	Confidence float64
	Model      string
	Answers    string
	Why        string
	Reasons    []struct {
		Rule, Detail string
		Effect       float64
	}
	Tokens struct{ Prompt int }
	Mode   string
}

func TestRouteQuery(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{RemoteURL: "https://api.example.com/v1", RemoteModel: "large", Router: defaults(t)})
	who := tooltest.Who("a")
	got := tooltest.OK[routeAnswer](t, b.cat, who, "route_query", `{"prompt":"hello"}`)
	if got.Tier != "local_fast" || got.Confidence != 0.9 || got.Answers != "remote" || got.Model != "large" || got.Why != "no model is loaded" || len(got.Reasons) != 2 {
		t.Errorf("easy, nothing loaded: %+v", got)
	}
	tooltest.OK[modeAnswer](t, b.cat, who, "inference_mode", `{"mode":"off"}`)
	got = tooltest.OK[routeAnswer](t, b.cat, who, "route_query", `{"prompt":"refactor it","system_prompt":"You are an architect"}`)
	if got.Tier != "cloud_api" || got.Answers != "nobody" || got.Mode != "off" {
		t.Errorf("hard, off: %+v", got)
	}
	tooltest.Invalid(t, b.cat, who, "route_query", `{}`, "prompt")
}
