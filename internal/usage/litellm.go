package usage

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pawgate/internal/fault"
)

// Listed is what ParseLiteLLM read.
type Listed struct {
	Prices  []Price
	Skipped []string // entries without a price for tokens or requests, such as images
	Free    []string // entries that say 0 for everything: not known to be free, so without a price
	// Broken are entries with a price that cannot be one, or with a name that is
	// too long. What they are for stays of unknown cost.
	Broken []string
	// Doubled are entries with another price than one of the same name, which
	// only differs in upper and lower case: that one is taken.
	Doubled []string
}

// ParseLiteLLM reads LiteLLM's model_prices_and_context_window.json: a JSON
// object whose names are models, behind the provider and a "/" unless the name
// tells it, and whose members are dollars for one token.
// (docs.litellm.ai/docs/provider_registration/add_model_pricing)
func ParseLiteLLM(file []byte) (Listed, error) {
	var entries map[string]map[string]any
	if err := json.Unmarshal(file, &entries); err != nil {
		return Listed{}, fault.Invalid("source", "this is not LiteLLM's price file: a JSON object of models with their prices")
	}
	var out Listed
	known := map[[2]string]Price{}
	for _, name := range slices.SortedFunc(maps.Keys(entries), lowerFirst) {
		if name == "sample_spec" {
			continue
		}
		e := reading{entry: entries[name]}
		p, free := e.price(name)
		key := [2]string{p.Provider, p.Name}
		had, seen := known[key]
		switch {
		case e.broken || len(name) > maxText:
			out.Broken = append(out.Broken, name)
		case free:
			out.Free = append(out.Free, name)
		case p.check() != nil:
			out.Skipped = append(out.Skipped, name)
		case !seen:
			known[key] = p
			out.Prices = append(out.Prices, p)
		case !reflect.DeepEqual(had, p):
			out.Doubled = append(out.Doubled, name)
		}
	}
	if len(out.Prices) == 0 {
		return Listed{}, fault.Invalid("source", "no entry has a price for tokens; is this LiteLLM's model_prices_and_context_window.json?")
	}
	return out, nil
}

// lowerFirst sorts by name, and of names that differ in case only has first the
// one in lower case.
func lowerFirst(a, b string) int {
	return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(b, a))
}

// reading is one entry of the file, as far as it was read.
type reading struct {
	entry  map[string]any
	broken bool // a price of it is none
}

// pico is a member in pico-dollars, or nil. LiteLLM's numbers are dollars.
func (e *reading) pico(name string) *int64 {
	value, there := e.entry[name]
	if !there || value == nil {
		return nil
	}
	dollars, ok := value.(float64)
	p := int64(math.Round(min(max(dollars, 0)*1e12, maxPrice+1)))
	if !ok || dollars < 0 || p > maxPrice || p == 0 && dollars > 0 {
		e.broken = true
		return nil
	}
	return &p
}

func (e *reading) price(name string) (p Price, free bool) {
	p = Price{Name: strings.ToLower(name),
		Input: e.pico("input_cost_per_token"), Output: e.pico("output_cost_per_token"), Reasoning: e.pico("output_cost_per_reasoning_token"),
		CacheRead: e.pico("cache_read_input_token_cost"), CacheWrite: e.pico("cache_creation_input_token_cost"),
		CacheWrite1: e.pico("cache_creation_input_token_cost_above_1hr"), Unit: first(e.pico("input_cost_per_request"), e.pico("input_cost_per_query")),
	}
	switch provider, rest, prefixed := strings.Cut(p.Name, "/"); {
	case prefixed && provider == "fast": // Anthropic's fast mode has prices of its own
		p.Name = rest + ":fast"
	case prefixed:
		p.Provider, p.Name = provider, rest
	}
	e.tiers(&p)
	if claude(p.Name) && p.CacheWrite != nil && p.Input != nil && p.CacheWrite1 == nil {
		// Anthropic's rule: an hour costs twice the input.
		p.CacheWrite1 = twice(p.Input)
	}
	said := p.Input != nil || p.Output != nil || p.Unit != nil
	return p, said && zero(p.Input) && zero(p.Output) && zero(p.Unit) && len(p.Tiers) == 0
}

func claude(name string) bool { return strings.Contains(name, "claude") }

func zero(v *int64) bool { return v == nil || *v == 0 }

func twice(v *int64) *int64 {
	double := 2 * *v
	return &double
}

func first(values ...*int64) *int64 {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

var tierName = regexp.MustCompile(`^input_cost_per_token_above_(\d+)k_tokens$`)

// tiers reads the two ways in which a price grows with the prompt: members with
// "_above_200k_tokens", and tiered_pricing, a list of ranges of the prompt. Both
// charge the whole request so.
func (e *reading) tiers(p *Price) {
	for member := range e.entry {
		found := tierName.FindStringSubmatch(member)
		if found == nil {
			continue
		}
		thousands, err := strconv.ParseInt(found[1], 10, 32)
		if err != nil || thousands == 0 {
			continue
		}
		above := "_above_" + found[1] + "k_tokens"
		t := Tier{Above: thousands * 1000, Input: e.pico("input_cost_per_token" + above), Output: e.pico("output_cost_per_token" + above),
			CacheRead: e.pico("cache_read_input_token_cost" + above), CacheWrite: e.pico("cache_creation_input_token_cost" + above),
			CacheWrite1: e.pico("cache_creation_input_token_cost_above_1hr" + above)}
		if claude(p.Name) && t.CacheWrite1 == nil && t.Input != nil {
			t.CacheWrite1 = twice(t.Input)
		}
		p.Tiers = append(p.Tiers, t)
	}
	ranges, _ := e.entry["tiered_pricing"].([]any)
	for _, r := range ranges {
		members, ok := r.(map[string]any)
		if !ok {
			continue
		}
		part := reading{entry: members}
		bounds, _ := members["range"].([]any)
		if len(bounds) == 0 {
			continue
		}
		from, ok := bounds[0].(float64)
		ok = ok && from >= 0 && from <= maxCount
		t := Tier{Above: int64(max(0, min(from, maxCount))), Input: part.pico("input_cost_per_token"), Output: part.pico("output_cost_per_token"),
			CacheRead: part.pico("cache_read_input_token_cost"), Reasoning: part.pico("output_cost_per_reasoning_token")}
		e.broken = e.broken || part.broken || !ok
		switch {
		case from == 0:
			p.Input, p.Output = first(p.Input, t.Input), first(p.Output, t.Output)
			p.CacheRead, p.Reasoning = first(p.CacheRead, t.CacheRead), first(p.Reasoning, t.Reasoning)
		default:
			p.Tiers = append(p.Tiers, t)
		}
	}
	slices.SortFunc(p.Tiers, func(a, b Tier) int { return int(a.Above - b.Above) })
}
