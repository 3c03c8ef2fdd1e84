package usage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/usage"
)

const list = `{
	"sample_spec": {"input_cost_per_token": 0.0},
	"claude-test": {"input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05, "cache_read_input_token_cost": 3e-07,
		"cache_creation_input_token_cost": 3.75e-06, "input_cost_per_token_above_200k_tokens": 6e-06, "output_cost_per_token_above_200k_tokens": 2.25e-05},
	"azure/gpt-test": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "output_cost_per_reasoning_token": 1e-05},
	"gpt-test": {"input_cost_per_token": 1e-06, "output_cost_per_token": 4e-06},
	"gpt-test-mini": {"input_cost_per_token": 7.5e-08, "output_cost_per_token": 3e-07},
	"fast/claude-test": {"input_cost_per_token": 6e-06, "output_cost_per_token": 3e-05},
	"dashscope/qwen-test": {"tiered_pricing": [{"range": [0, 32000], "input_cost_per_token": 1e-06, "output_cost_per_token": 5e-06},
		{"range": [32000, 128000], "input_cost_per_token": 2e-06, "output_cost_per_token": 1e-05}]},
	"tavily/search": {"input_cost_per_query": 0.008, "mode": "search"},
	"ollama/free": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
	"dall-e-2": {"input_cost_per_pixel": 1.9e-08}
}`

func take(t *testing.T, db postgres.DB, version string, since time.Time, file string) (usage.Listed, usage.Taken) {
	t.Helper()
	listed, err := usage.ParseLiteLLM([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	taken, err := usage.TakePrices(t.Context(), db, version, since, listed.Prices)
	if err != nil {
		t.Fatal(err)
	}
	return listed, taken
}

func TestParseLiteLLM(t *testing.T) {
	t.Parallel()
	got, err := usage.ParseLiteLLM([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ollama/free"}, got.Free); diff != "" {
		t.Errorf("0 is taken for a price: %s", diff)
	}
	if diff := cmp.Diff([]string{"dall-e-2"}, got.Skipped); diff != "" {
		t.Error(diff)
	}
	n := func(v int64) *int64 { return &v }
	want := usage.Price{Name: "claude-test", Input: n(3e6), Output: n(15e6), CacheRead: n(3e5), CacheWrite: n(375e4), CacheWrite1: n(6e6),
		Tiers: []usage.Tier{{Above: 200_000, Input: n(6e6), Output: n(225e5), CacheWrite1: n(12e6)}}}
	for _, p := range got.Prices {
		if p.Name == "claude-test" {
			if diff := cmp.Diff(want, p); diff != "" {
				t.Error(diff)
			}
		}
	}
	for name, broken := range map[string]string{"no JSON": "hello", "a list": "[]", "nothing priced": `{"a": {"mode": "chat"}}`} {
		if _, err := usage.ParseLiteLLM([]byte(broken)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

// What cannot be a price is none, and is named: nothing vanishes on the way.
func TestParseLiteLLM_names_what_it_leaves_out(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	got, err := usage.ParseLiteLLM([]byte(`{
		"text": {"input_cost_per_token": "3e-06", "output_cost_per_token": 1e-06}, "minus": {"input_cost_per_token": -1e-06, "output_cost_per_token": 1e-06},
		"huge": {"input_cost_per_token": 1e300, "output_cost_per_token": 1e-06}, "tiny": {"input_cost_per_token": 1e-300, "output_cost_per_token": 1e-06},
		"tier": {"input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06, "input_cost_per_token_above_200k_tokens": "dear"},
		"range": {"tiered_pricing": [{"range": [1e300, 1], "input_cost_per_token": 1e-06}]},
		"none": {"input_cost_per_token": null, "output_cost_per_token": 1e-06},
		"P/Model": {"input_cost_per_token": 1e-06}, "p/MODEL": {"input_cost_per_token": 3e-06}, "p/model": {"input_cost_per_token": 2e-06},
		"Same": {"input_cost_per_token": 1e-06}, "same": {"input_cost_per_token": 1e-06},
		"picture": {"input_cost_per_pixel": 1e-06}, "` + long + `": {"input_cost_per_token": 1e-06}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"huge", "minus", "range", "text", "tier", "tiny", long}, got.Broken); diff != "" {
		t.Errorf("broken: %s", diff)
	}
	if diff := cmp.Diff([]string{"p/MODEL", "P/Model"}, got.Doubled); diff != "" {
		t.Errorf("doubled: %s", diff)
	}
	if diff := cmp.Diff([]string{"picture"}, got.Skipped); diff != "" {
		t.Errorf("skipped: %s", diff)
	}
	micro := int64(1_000_000)
	two := 2 * micro
	want := []usage.Price{{Name: "none", Output: &micro}, {Provider: "p", Name: "model", Input: &two}, {Name: "same", Input: &micro}}
	if diff := cmp.Diff(want, got.Prices); diff != "" {
		t.Error(diff)
	}
}

// A price is found whatever the case it was set in.
func TestTakePricesInAnyCase(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	n := int64(2_000_000)
	record(t, db, usage.Row{At: noon, Agent: "bot", Provider: "Mine", Model: "Our-Model", Input: 1000, Source: "api", ID: "a"})
	if got, err := usage.TakePrices(t.Context(), db, "set", time.Time{}, []usage.Price{{Provider: "Mine", Name: "Our-MODEL", Input: &n}}); err != nil || got.Repriced != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got := one[int64](t, db, "select cost_micros from usage"); got != 2000 {
		t.Errorf("%d", got)
	}
}

// A cost that cannot be is unknown, and makes no sum overflow.
func TestCostTooLarge(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	most := int64(1_000_000_000_000_000)
	record(t, db, usage.Row{At: noon, Agent: "bot", Model: "gold", Input: 1_000_000_000_000, Source: "api", ID: "a"},
		usage.Row{At: noon, Agent: "bot", Model: "gold", Input: 1_000, Source: "api", ID: "b"})
	if _, err := usage.TakePrices(t.Context(), db, "set", time.Time{}, []usage.Price{{Name: "gold", Input: &most}}); err != nil {
		t.Fatal(err)
	}
	lines, err := usage.Report(t.Context(), db, usage.Query{From: noon.Add(-time.Hour), To: noon.Add(time.Hour)})
	if err != nil || len(lines) != 1 || lines[0].Unpriced != 1 || lines[0].Cost != usage.MaxCost {
		t.Errorf("%+v, %v", lines, err)
	}
}

// TestCost charges single rows by the list above.
func TestCost(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	take(t, db, "litellm test", time.Time{}, list)
	for name, c := range map[string]struct {
		row  usage.Row
		want int64 // -1: unknown
	}{
		"plain":                        {usage.Row{Model: "claude-test", Input: 1000, Output: 100}, 3000 + 1500},
		"a date behind the name":       {usage.Row{Model: "claude-test-20260901", Input: 1000}, 3000},
		"a window behind the name":     {usage.Row{Model: "claude-test[1m]", Input: 1000}, 3000},
		"vertex writes it so":          {usage.Row{Model: "claude-test@20260901", Input: 1000}, 3000},
		"in front of the name":         {usage.Row{Model: "azure/gpt-test", Input: 1000}, 2000},
		"provider before any":          {usage.Row{Provider: "azure", Model: "gpt-test", Input: 1000}, 2000},
		"any provider":                 {usage.Row{Provider: "openai", Model: "gpt-test-2026-08-06", Input: 1000}, 1000},
		"longest name":                 {usage.Row{Model: "gpt-test-mini", Input: 1_000_000}, 75_000},
		"a sister is another model":    {usage.Row{Model: "gpt-test-nano", Input: 1000}, -1},
		"a longer name too":            {usage.Row{Model: "gpt-test5", Input: 1000}, -1},
		"unknown":                      {usage.Row{Model: "grok", Input: 1000}, -1},
		"nothing of the unknown":       {usage.Row{Model: "grok"}, -1},
		"0 in the list is not free":    {usage.Row{Provider: "ollama", Model: "free", Input: 1000}, -1},
		"fast mode":                    {usage.Row{Model: "claude-test:fast", Input: 1000}, 6000},
		"reasoning has its own price":  {usage.Row{Provider: "azure", Model: "gpt-test", Output: 100, Reasoning: 60}, 40*8 + 60*10},
		"reasoning as output":          {usage.Row{Model: "gpt-test", Output: 100, Reasoning: 60}, 400},
		"a kind without price":         {usage.Row{Model: "gpt-test", Input: 10, CacheWrite: 1}, -1},
		"at the cliff":                 {usage.Row{Model: "claude-test", Input: 100_000, CacheRead: 100_000, Output: 10}, 300_000 + 30_000 + 150},
		"over the cliff, all of it":    {usage.Row{Model: "claude-test", Input: 100_001, CacheRead: 100_000, Output: 10}, 600_006 + 30_000 + 225},
		"an hour over the cliff":       {usage.Row{Model: "claude-test", CacheWrite1: 200_001}, 2_400_012},
		"first range":                  {usage.Row{Provider: "dashscope", Model: "qwen-test", Input: 32_000}, 32_000},
		"second range":                 {usage.Row{Provider: "dashscope", Model: "qwen-test", Input: 32_001}, 64_002},
		"a search credit":              {usage.Row{Provider: "tavily", Model: "search", Tool: "web_search", Units: 3}, 24_000},
		"a tool without price":         {usage.Row{Tool: "fax", Units: 1}, -1},
		"half a micro-dollar, rounded": {usage.Row{Model: "gpt-test-mini", Input: 7}, 1},
		"less than half of one":        {usage.Row{Model: "gpt-test-mini", Input: 6}, 0},
	} {
		c.row.At, c.row.Agent, c.row.Source, c.row.ID = noon, "bot", "loop", name
		record(t, db, c.row)
		got := one[int64](t, db, "select coalesce(cost_micros, -1) from usage where source_id = $1", name)
		if got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Only the input above the threshold is dearer.
func TestCostExcess(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	execute(t, db, `insert into usage_prices (version, name, input, output, cache_read, tiers)
		values ('test', 'm', 1000000, 2000000, 100000, '[{"above": 1000, "excess": true, "input": 2000000, "output": 3000000}]')`)
	record(t, db, usage.Row{At: noon, Agent: "bot", Model: "m", Input: 900, CacheRead: 600, Output: 100, Source: "loop", ID: "a"})
	if got := one[int64](t, db, "select cost_micros from usage"); got != 400+500*2+60+300 {
		t.Errorf("%d", got)
	}
}

// A better list recomputes history, from the day that its prices hold.
func TestReprice(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	early, late, said := row("early"), row("late"), row("said")
	late.At = noon.AddDate(0, 0, 10)
	reported := int64(7)
	said.Reported = &reported
	record(t, db, early, late, said)
	if got := one[int64](t, db, "select count(*) from usage where cost_micros is null"); got != 2 {
		t.Fatalf("%d of unknown cost", got)
	}
	if _, taken := take(t, db, "one", time.Time{}, list); taken.Repriced != 2 || taken.Added != 7 {
		t.Errorf("first list: %+v", taken)
	}
	if _, taken := take(t, db, "one again", time.Time{}, list); taken != (usage.Taken{}) {
		t.Errorf("the same list: %+v", taken)
	}
	_, taken := take(t, db, "two", noon.AddDate(0, 0, 5), `{"claude-test": {"input_cost_per_token": 6e-06, "output_cost_per_token": 3e-05}}`)
	if taken.Repriced != 1 || taken.Changed != 1 {
		t.Errorf("second list: %+v", taken)
	}
	for id, want := range map[string]int64{"early": 4500, "late": 9000, "said": 7} {
		if got := one[int64](t, db, "select cost_micros from usage where source_id = $1", id); got != want {
			t.Errorf("%s: %d, want %d", id, got, want)
		}
	}
	if got := one[string](t, db, "select price_version from usage where source_id = 'late'"); got != "two" {
		t.Errorf("version %q", got)
	}
	execute(t, db, "select usage_fold()")
	if got := one[int64](t, db, "select sum(cost_micros)::bigint from usage_by_model where level = 2"); got != 4500+9000+7 {
		t.Errorf("the sums say %d", got)
	}
	if got := one[int64](t, db, "select sum(unpriced)::bigint from usage_by_model where level = 2"); got != 0 {
		t.Errorf("%d are still unpriced in the sums", got)
	}
	execute(t, db, "delete from usage_prices where version = 'one'")
	if n, err := usage.Reprice(t.Context(), db); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	if !one[bool](t, db, "select cost_micros is null from usage where source_id = 'early'") {
		t.Error("a price that is gone still counts")
	}
}

// The first list is there from the beginning and names its date.
func TestFirstList(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	for id, r := range map[string]usage.Row{
		"haiku":      {Model: "claude-haiku-4-5-20251001", Input: 1_000_000},
		"short":      {Model: "claude-haiku-5-5", Input: 100_000},
		"long":       {Model: "claude-haiku-5-5", Input: 100_001},
		"sonnet":     {Model: "claude-sonnet-5-5[1m]", CacheRead: 1_000_000, At: time.Date(2026, 10, 8, 0, 0, 0, 0, time.UTC)},
		"sonnet old": {Model: "claude-sonnet-5-5", CacheRead: 1_000_000, At: time.Date(2026, 10, 6, 0, 0, 0, 0, time.UTC)},
	} {
		r.Agent, r.Source, r.ID = "bot", "loop", id
		if r.At.IsZero() {
			r.At = noon
		}
		record(t, db, r)
	}
	for id, want := range map[string]int64{"haiku": 1_000_000, "short": 10_000, "long": 50_001, "sonnet": 100_000, "sonnet old": 200_000} {
		if got := one[int64](t, db, "select coalesce(cost_micros, -1) from usage where source_id = $1", id); got != want {
			t.Errorf("%s: %d, want %d", id, got, want)
		}
	}
}
