package inference_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pawgate/internal/category/inference"
	"pawgate/internal/fault"
	"pawgate/internal/tool/tooltest"
)

type feedbackAnswer struct {
	Stored  bool
	Records int
	Effect  string
}

// words is a tokeniser whose tokens are the lengths of words.
func words(_ context.Context, text string) ([]int, error) {
	var tokens []int
	for _, w := range strings.Fields(text) {
		tokens = append(tokens, len(w))
	}
	return tokens, nil
}

func (b bench) bias(t *testing.T, agent, prompt string, now time.Time) map[int]float64 {
	t.Helper()
	bias, err := inference.Bias(t.Context(), b.tx, agent, prompt, now, words)
	if err != nil {
		t.Fatal(err)
	}
	return bias
}

func give(t *testing.T, b bench, agent, prompt, response string, reward int) feedbackAnswer {
	t.Helper()
	return tooltest.OK[feedbackAnswer](t, b.cat, tooltest.Who(agent), "jitrl_feedback",
		map[string]any{"prompt": prompt, "response": response, "reward": reward})
}

const prompt = "How do I back up the database every night?"

func TestJitrlFeedback(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{Feedback: true})
	if got := give(t, b, "a", prompt, "use crontab now", 1); !got.Stored || got.Records != 1 {
		t.Errorf("good: %+v", got)
	}
	if got := give(t, b, "a", prompt, "nothing", 0); got.Stored || got.Records != 1 || !strings.Contains(got.Effect, "not stored") {
		t.Errorf("neither: %+v", got)
	}
	if got := give(t, b, "a", prompt, "use rm", -1); got.Records != 2 {
		t.Errorf("bad: %+v", got)
	}
	// "use" and "now" have three letters and cancel out once; "crontab" has
	// seven, "rm" two.
	want := map[int]float64{7: 2, 2: -2}
	if diff := cmp.Diff(want, b.bias(t, "a", prompt, noon), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("bias (-want +got):\n%s", diff)
	}
}

func TestJitrlFeedback_refuses(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{Feedback: true})
	for args, parameter := range map[string]string{
		`{"prompt":"a","response":"b"}`:             "reward",
		`{"prompt":"a","response":"b","reward":2}`:  "reward",
		`{"prompt":" ","response":"b","reward":1}`:  "prompt",
		`{"prompt":"a","response":"\n","reward":1}`: "response",
	} {
		tooltest.Invalid(t, b.cat, tooltest.Who("a"), "jitrl_feedback", args, parameter)
	}
	off := setup(t, inference.Settings{})
	f := tooltest.Fault(t, off.cat, tooltest.Who("a"), "jitrl_feedback", `{"prompt":"a","response":"b","reward":1}`, fault.NotConfigured)
	if !strings.Contains(f.Message, "nothing was stored") {
		t.Errorf("got %q", f.Message)
	}
}

func TestBias(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{Feedback: true})
	give(t, b, "a", prompt, "crontab", 1)
	for _, c := range []struct {
		name, agent, prompt string
		age                 time.Duration
		want                float64
	}{
		{"same_prompt", "a", prompt, 0, 2},
		{"same_but_for_case_and_space", "a", "how do i  BACK UP the database every night?", 0, 2},
		{"half_after_two_weeks", "a", prompt, 14 * 24 * time.Hour, 1},
		{"another_agent_has_none", "b", prompt, 0, 0},
		{"another_prompt", "a", "Write a poem about the sea", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := b.bias(t, c.agent, c.prompt, noon.Add(c.age))[7]; got < c.want-1e-9 || got > c.want+1e-9 {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if got := b.bias(t, "a", "How do I back up the database each night, please?", noon)[7]; got < 0.6 || got > 1.9 {
		t.Errorf("a similar prompt: %v", got)
	}
}

func TestBias_bounds(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{Feedback: true})
	long := ""
	for n := range 300 {
		long += strings.Repeat("x", n+1) + " "
	}
	for range 12 {
		give(t, b, "a", prompt, long[:30000], 1)
	}
	bias := b.bias(t, "a", prompt, noon)
	if len(bias) > 128 {
		t.Errorf("%d tokens", len(bias))
	}
	for token, v := range bias {
		if v > 2 || v < -2 {
			t.Errorf("token %d has %v", token, v)
		}
	}
}

func TestJitrlFeedback_keeps_the_newest(t *testing.T) {
	t.Parallel()
	b := setup(t, inference.Settings{Feedback: true})
	if _, err := b.tx.Exec(t.Context(), `insert into inference_feedback (agent_id, sketch, response, reward, created_at)
		select 'a', '{1}', 'r' || n, 1, $1::timestamptz - n * interval '1 hour' from generate_series(1, 2000) n`, noon); err != nil {
		t.Fatal(err)
	}
	if got := give(t, b, "a", prompt, "new", 1); got.Records != 2000 {
		t.Errorf("got %+v", got)
	}
	var oldest, newest int
	if err := b.tx.QueryRow(t.Context(), `select count(*) filter (where response = 'r2000'), count(*) filter (where response = 'new')
		from inference_feedback where agent_id = 'a'`).Scan(&oldest, &newest); err != nil || oldest != 0 || newest != 1 {
		t.Errorf("the oldest is there %d times, the newest %d times (%v)", oldest, newest, err)
	}
}

func TestSimilarity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b        string
		least, most float64
	}{
		{"", "", 1, 1}, {"abc", "abc", 1, 1}, {"abc", "xyz", 0, 0}, {"備份資料庫", "備份資料庫", 1, 1}, {"備份資料庫的方法", "備份資料庫", 0.3, 0.8},
		{strings.Repeat("the quick brown fox ", 50), strings.Repeat("the quick brown fox ", 60), 0.9, 1},
		{characters(0, 2000), characters(1000, 3000), 0.2, 0.5},
	} {
		if got := inference.Similarity(inference.Sketch(c.a), inference.Sketch(c.b)); got < c.least || got > c.most {
			t.Errorf("%.20q, %.20q: got %v, want %v to %v", c.a, c.b, got, c.least, c.most)
		}
	}
}

func characters(from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		b.WriteRune(rune(0x4e00 + n*2654435761%20000)) // pieces that hardly ever repeat
	}
	return b.String()
}
