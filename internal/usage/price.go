package usage

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"pawgate/internal/fault"
	"pawgate/internal/postgres"
)

var (
	//go:embed prices_take.sql
	pricesTakeSQL string
	//go:embed reprice.sql
	repriceSQL string
)

// Price is what a model or a paid tool costs. Money is in pico-dollars for one
// token or unit, so a list price of one dollar for a million tokens is
// 1,000,000. What is nil has no price: usage of it is of unknown cost.
type Price struct {
	Provider    string `json:"provider"` // "": whoever serves it
	Name        string `json:"name"`     // a model, or "tool:NAME"; "NAME*" is every name that begins so
	Input       *int64 `json:"input,omitempty"`
	Output      *int64 `json:"output,omitempty"`
	CacheRead   *int64 `json:"cache_read,omitempty"`
	CacheWrite  *int64 `json:"cache_write_5m,omitempty"`
	CacheWrite1 *int64 `json:"cache_write_1h,omitempty"`
	Reasoning   *int64 `json:"reasoning,omitempty"` // nil: as Output
	Unit        *int64 `json:"unit,omitempty"`      // a request of a model, a credit or message of a tool
	Tiers       []Tier `json:"tiers,omitempty"`
}

// Tier is the price of requests whose whole prompt, cached tokens included, is
// larger than Above. What is nil costs as below it.
type Tier struct {
	Above       int64  `json:"above"`
	Excess      bool   `json:"excess,omitempty"` // only the input above it is dearer, not the whole request
	Input       *int64 `json:"input,omitempty"`
	Output      *int64 `json:"output,omitempty"`
	CacheRead   *int64 `json:"cache_read,omitempty"`
	CacheWrite  *int64 `json:"cache_write_5m,omitempty"`
	CacheWrite1 *int64 `json:"cache_write_1h,omitempty"`
	Reasoning   *int64 `json:"reasoning,omitempty"`
}

// Taken says what became of a list of prices.
type Taken struct {
	Added    int   `json:"added"`    // names that had no price
	Changed  int   `json:"changed"`  // names that had another one
	Repriced int64 `json:"repriced"` // rows of usage that cost otherwise now
}

// maxPrice bounds a price, in pico-dollars: a thousand dollars for a token.
const maxPrice = 1_000_000_000_000_000

// TakePrices keeps a list under a version, and charges again what was recorded
// by the prices that it changed. A price holds from since; a zero since means
// always for a name without a price and from now on for one that had another.
func TakePrices(ctx context.Context, db postgres.DB, version string, since time.Time, prices []Price) (Taken, error) {
	prices = slices.Clone(prices)
	for i := range prices {
		p := &prices[i]
		// As they are looked up: providers and gateways write the same name in many ways.
		p.Name, p.Provider = strings.ToLower(p.Name), strings.ToLower(p.Provider)
		if err := p.check(); err != nil {
			return Taken{}, err
		}
	}
	encoded, err := json.Marshal(prices)
	if err != nil {
		return Taken{}, fmt.Errorf("encode prices: %w", err)
	}
	var from *time.Time
	if !since.IsZero() {
		from = &since
	}
	rows, err := postgres.Every[struct {
		ID    int64
		First bool
	}](ctx, db, pricesTakeSQL, version, string(encoded), from)
	if err != nil {
		return Taken{}, fmt.Errorf("take prices: %w", err)
	}
	var done Taken
	ids := make([]int64, 0, len(rows))
	for _, r := range rows {
		ids = append(ids, r.ID)
		if r.First {
			done.Added++
		} else {
			done.Changed++
		}
	}
	if len(ids) > 0 {
		done.Repriced, err = reprice(ctx, db, ids)
	}
	return done, err
}

// Reprice charges everything again by the prices as they are now, and says how
// many rows cost otherwise. What a source said it cost stays.
func Reprice(ctx context.Context, db postgres.DB) (int64, error) { return reprice(ctx, db, nil) }

func reprice(ctx context.Context, db postgres.DB, ids []int64) (int64, error) {
	n, err := postgres.First[struct{ N int64 }](ctx, db, repriceSQL, ids)
	if err != nil {
		return 0, fmt.Errorf("charge usage again: %w", err)
	}
	return n.N, nil
}

func (p Price) check() error {
	if p.Name == "" || p.Name == "*" {
		return fault.Invalid("name", "a price needs the name of a model, or tool:NAME")
	}
	all := []*int64{p.Input, p.Output, p.CacheRead, p.CacheWrite, p.CacheWrite1, p.Reasoning, p.Unit}
	for _, t := range p.Tiers {
		if t.Above < 1 {
			return fault.Invalid("tiers", "a tier of %s begins above no tokens", p.Name)
		}
		all = append(all, t.Input, t.Output, t.CacheRead, t.CacheWrite, t.CacheWrite1, t.Reasoning)
	}
	some := false
	for _, v := range all {
		if v != nil && (*v < 0 || *v > maxPrice) {
			return fault.Invalid("price", "a price of %s is below zero or above a thousand dollars a token", p.Name)
		}
		some = some || v != nil
	}
	if !some {
		return fault.Invalid("price", "%s is given without any price", p.Name)
	}
	return nil
}
