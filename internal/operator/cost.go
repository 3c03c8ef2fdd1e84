package operator

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/caller"
	"pawgate/internal/claudecode"
	"pawgate/internal/fault"
	"pawgate/internal/near"
	"pawgate/internal/policy"
	"pawgate/internal/postgres"
	"pawgate/internal/tool"
	"pawgate/internal/usage"
)

//go:embed prices_list.sql
var pricesListSQL string

// costCommands are about what things cost and how much may be spent.
func (s *session) costCommands() []tool.Tool {
	return []tool.Tool{
		tool.Write("cost_prices_import", "Take over a price list in LiteLLM's format, and charge again what it changes.", s.pricesImport, tool.Idempotent, tool.Secret("source")),
		tool.Write("cost_prices_set", "Set the price of one model, or of a tool as tool:NAME, and charge again what it changes.", s.pricesSet, tool.Idempotent),
		tool.Read("cost_prices_list", "List prices, in dollars for a million tokens.", s.pricesList),
		tool.Write("cost_reprice", "Charge everything again by the prices as they are now.", s.costReprice, tool.Idempotent),
		tool.Write("cost_import", "Record the usage in transcripts of Claude Code (JSONL). No text of a conversation is kept or sent.", s.costImport, tool.Idempotent, tool.Secret("rows")),
		tool.Read("cost_recent", "List the last requests and what each cost.", s.costRecent),
		tool.Destroy("cost_prune", "Remove single rows of usage older than so many days; their sums stay.", s.costPrune),
		tool.Write("budget_set", "Set how much may be spent in a period, by everybody, an agent, a user or a tool.", s.budgetSet, tool.Idempotent),
		tool.Read("budget_list", "List the budgets, what is spent of each, and what the period will cost.", s.budgetList),
		tool.Destroy("budget_remove", "Remove a budget.", s.budgetRemove, tool.Idempotent),
	}
}

type pricesImportArgs struct {
	Source string `json:"source" doc:"LiteLLM's model_prices_and_context_window.json"`
	From   string `json:"from,omitempty" doc:"Day from which the prices hold; if left out, always for a model without a price, from now on for one with another" maxlen:"10"`
	Label  string `json:"label,omitempty" doc:"Name of this list; litellm and the day if left out" maxlen:"60"`
}

type pricesTaken struct {
	usage.Taken
	Version string `json:"version"`
	Listed  int    `json:"listed"`
	Skipped int    `json:"skipped"` // entries without a price for tokens or requests
	Free    int    `json:"free"`    // entries that say 0: not taken for free
	// LeftOut are entries with a price that cannot be one, or with another price
	// than one of the same name: at most maxNamed of so many.
	LeftOut []string `json:"left_out,omitempty"`
	Left    int      `json:"left,omitzero"`
}

// maxNamed is how many entries of a price list are named that were left out.
const maxNamed = 20

func (s *session) pricesImport(ctx context.Context, _ caller.Caller, a pricesImportArgs) (pricesTaken, error) {
	since, err := dayOf("from", a.From)
	if err != nil {
		return pricesTaken{}, err
	}
	listed, err := usage.ParseLiteLLM([]byte(a.Source))
	if err != nil {
		return pricesTaken{}, err
	}
	version := a.Label
	if version == "" {
		version = "litellm " + s.Now().UTC().Format(time.DateOnly)
	}
	taken, err := usage.TakePrices(ctx, s.db, version, since, listed.Prices)
	left := slices.Concat(listed.Broken, listed.Doubled)
	return pricesTaken{Taken: taken, Version: version, Listed: len(listed.Prices), Skipped: len(listed.Skipped), Free: len(listed.Free),
		LeftOut: left[:min(len(left), maxNamed)], Left: len(left)}, err
}

func dayOf(parameter, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, fault.Invalid(parameter, "%s must be a day such as 2026-11-30", parameter)
	}
	return day, nil
}

type pricesSetArgs struct {
	Name         string `json:"name" doc:"A model, or tool:NAME; NAME* for every name that begins so" maxlen:"200"`
	Provider     string `json:"provider,omitempty" doc:"Only where it is served by this one" maxlen:"60"`
	Input        string `json:"input,omitempty" doc:"Dollars for a million tokens" maxlen:"20"`
	Output       string `json:"output,omitempty" doc:"The same of output" maxlen:"20"`
	CacheRead    string `json:"cache_read,omitempty" doc:"The same of tokens read from a cache" maxlen:"20"`
	CacheWrite5m string `json:"cache_write_5m,omitempty" doc:"The same of tokens kept for five minutes" maxlen:"20"`
	CacheWrite1h string `json:"cache_write_1h,omitempty" doc:"The same of tokens kept for an hour" maxlen:"20"`
	Unit         string `json:"unit,omitempty" doc:"Dollars for one request, call, credit or message" maxlen:"20"`
	From         string `json:"from,omitempty" doc:"Day from which it holds" maxlen:"10"`
}

func (s *session) pricesSet(ctx context.Context, _ caller.Caller, a pricesSetArgs) (pricesTaken, error) {
	since, err := dayOf("from", a.From)
	if err != nil {
		return pricesTaken{}, err
	}
	if name, ok := strings.CutPrefix(a.Name, "tool:"); ok && s.Catalog != nil && !strings.HasSuffix(name, "*") && s.Catalog.Find(name) == nil {
		return pricesTaken{}, fault.Invalid("name", "no tool is named %s%s", short(name), near.DidYouMean(name, s.toolNames()))
	}
	p := usage.Price{Name: a.Name, Provider: a.Provider}
	for _, part := range []struct {
		name, dollars string
		scale         float64
		to            **int64
	}{
		{"input", a.Input, 1e6, &p.Input}, {"output", a.Output, 1e6, &p.Output}, {"cache_read", a.CacheRead, 1e6, &p.CacheRead},
		{"cache_write_5m", a.CacheWrite5m, 1e6, &p.CacheWrite}, {"cache_write_1h", a.CacheWrite1h, 1e6, &p.CacheWrite1}, {"unit", a.Unit, 1e12, &p.Unit},
	} {
		if part.dollars == "" {
			continue
		}
		v, err := dollars(part.name, part.dollars, part.scale)
		if err != nil {
			return pricesTaken{}, err
		}
		*part.to = &v
	}
	version := "set " + s.Now().UTC().Format(time.DateOnly)
	taken, err := usage.TakePrices(ctx, s.db, version, since, []usage.Price{p})
	return pricesTaken{Taken: taken, Version: version, Listed: 1}, err
}

// dollars reads an amount that a person wrote, in parts of a dollar.
func dollars(parameter, text string, parts float64) (int64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || v < 0 || v*parts > 1e15 {
		return 0, fault.Invalid(parameter, "%s must be an amount of dollars such as 2.50", parameter)
	}
	return int64(math.Round(v * parts)), nil
}

type pricesListArgs struct {
	Name  string `json:"name,omitempty" doc:"Only names that begin so" maxlen:"200"`
	Limit int    `json:"limit,omitempty" doc:"100 if left out" min:"1" max:"10000"`
}

type priceShown struct {
	Name         string   `json:"name"`
	Provider     string   `json:"provider"`
	From         string   `json:"from"` // a day, or always
	Input        *float64 `json:"input"`
	Output       *float64 `json:"output"`
	CacheRead    *float64 `json:"cache_read"`
	CacheWrite5m *float64 `json:"cache_write_5m"`
	CacheWrite1h *float64 `json:"cache_write_1h"`
	Unit         *float64 `json:"unit"` // dollars for one
	Tiers        int      `json:"tiers"`
	Version      string   `json:"version"`
}

type pricesListed struct {
	Prices []priceShown `json:"prices"`
}

func (s *session) pricesList(ctx context.Context, _ caller.Caller, a pricesListArgs) (pricesListed, error) {
	limit := a.Limit
	if limit == 0 {
		limit = 100
	}
	prices, err := postgres.All[priceShown](ctx, s.db, pricesListSQL, pgx.StrictNamedArgs{"name": a.Name, "limit": limit})
	if err != nil {
		return pricesListed{}, fmt.Errorf("list prices: %w", err)
	}
	return pricesListed{Prices: prices}, nil
}

type repriced struct {
	Repriced int64 `json:"repriced"`
}

func (s *session) costReprice(ctx context.Context, _ caller.Caller, _ noArgs) (repriced, error) {
	n, err := usage.Reprice(ctx, s.db)
	return repriced{n}, err
}

// importRow is one answer of a transcript, as the command line read it.
type importRow struct {
	At           time.Time `json:"at" doc:"When"`
	ID           string    `json:"id" doc:"Of the request" maxlen:"200"`
	Session      string    `json:"session" doc:"Of Claude Code" maxlen:"200"`
	Model        string    `json:"model" doc:"The one that served" maxlen:"200"`
	Input        int64     `json:"input" doc:"Tokens" min:"0"`
	Output       int64     `json:"output" doc:"Tokens" min:"0"`
	CacheRead    int64     `json:"cache_read" doc:"Tokens" min:"0"`
	CacheWrite5m int64     `json:"cache_write_5m" doc:"Tokens" min:"0"`
	CacheWrite1h int64     `json:"cache_write_1h" doc:"Tokens" min:"0"`
	Reported     *int64    `json:"reported,omitempty" doc:"Micro-dollars" min:"0"`
}

type costImportArgs struct {
	AgentID string      `json:"agent_id" doc:"Whose sessions they are" maxlen:"64"`
	UserID  string      `json:"user_id,omitempty" doc:"For whom" maxlen:"200"`
	Rows    []importRow `json:"rows" doc:"Files in Claude Code's folder projects, *.jsonl"`
}

type costImported struct {
	AgentID string `json:"agent_id"`
	Added   int64  `json:"added"`
	Known   int64  `json:"known"`   // recorded before
	Late    int64  `json:"late"`    // older than rows are kept for
	Covered int    `json:"covered"` // sessions that telemetry told of already, without ids to compare by
}

func (s *session) costImport(ctx context.Context, _ caller.Caller, a costImportArgs) (costImported, error) {
	s.about = a.AgentID
	if _, err := s.read(ctx, a.AgentID); err != nil {
		return costImported{}, err
	}
	rows := make([]usage.Row, len(a.Rows))
	for i, r := range a.Rows {
		rows[i] = usage.Row{At: r.At, Agent: a.AgentID, User: a.UserID, Session: r.Session, Provider: "anthropic", Model: r.Model, Input: r.Input, Output: r.Output,
			CacheRead: r.CacheRead, CacheWrite: r.CacheWrite5m, CacheWrite1: r.CacheWrite1h, Reported: r.Reported, Source: usage.SourceClaudeCode, ID: a.AgentID + "/" + r.ID}
	}
	done, covered, err := claudecode.Import(ctx, s.db, a.AgentID, rows)
	if err != nil {
		return costImported{}, err
	}
	return costImported{AgentID: a.AgentID, Added: done.Added, Known: int64(len(rows)) - done.Added - done.Late, Late: done.Late, Covered: covered}, nil
}

type costRecentArgs struct {
	AgentID string `json:"agent_id,omitempty" doc:"Only this agent" maxlen:"64"`
	Limit   int    `json:"limit,omitempty" doc:"20 if left out" min:"1" max:"1000"`
}

type costRecentResult struct {
	Requests []recentShown `json:"requests"` // oldest first
}

type recentShown struct {
	usage.Recent
	Cost string `json:"cost"`
}

func dollarsOr(micros *int64, otherwise string) string {
	if micros == nil {
		return otherwise
	}
	return policy.Dollars(*micros)
}

func (s *session) costRecent(ctx context.Context, _ caller.Caller, a costRecentArgs) (costRecentResult, error) {
	if err := s.only(ctx, a.AgentID); err != nil {
		return costRecentResult{}, err
	}
	limit := a.Limit
	if limit == 0 {
		limit = 20
	}
	rows, err := usage.Last(ctx, s.db, a.AgentID, 0, limit)
	shown := make([]recentShown, len(rows))
	for i, r := range rows {
		shown[i] = recentShown{r, dollarsOr(r.Cost, "unknown")}
	}
	return costRecentResult{shown}, err
}

type costPruneArgs struct {
	OlderThanDays int `json:"older_than_days" doc:"At least 800, so that a report of a year and its comparison stay exact to the moment" min:"800" max:"36500"`
}

type costPruned struct {
	Pruned int64 `json:"pruned"`
}

func (s *session) costPrune(ctx context.Context, _ caller.Caller, a costPruneArgs) (costPruned, error) {
	n, err := usage.Prune(ctx, s.db, s.Now().AddDate(0, 0, -a.OlderThanDays))
	return costPruned{n}, err
}
