package claudecode

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"pawgate/internal/otlp"
	"pawgate/internal/postgres"
	"pawgate/internal/usage"
)

var (
	//go:embed lock.sql
	lockSQL string
	//go:embed known.sql
	knownSQL string
	//go:embed drop.sql
	dropSQL string
	//go:embed known_unnamed.sql
	knownUnnamedSQL string
	//go:embed drop_unnamed.sql
	dropUnnamedSQL string
	//go:embed covered.sql
	coveredSQL string
	//go:embed advance.sql
	advanceSQL string
)

// Events records the requests among log records, and says how many rows were new.
// Sending the same records again changes nothing.
func Events(ctx context.Context, db postgres.DB, agent string, records []otlp.Record, now time.Time) (usage.Recorded, error) {
	var rows []usage.Row
	for _, r := range records {
		if row, ok := requestRow(agent, r, now); ok {
			rows = append(rows, row)
		}
	}
	return record(ctx, db, agent, rows)
}

// record keeps rows that stand for single requests, and takes away what metrics
// said of their sessions.
func record(ctx context.Context, db postgres.DB, agent string, rows []usage.Row) (done usage.Recorded, err error) {
	if len(rows) == 0 {
		return done, nil
	}
	err = postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSQL, agent); err != nil {
			return err
		}
		if done, err = usage.Record(ctx, tx, rows...); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, dropSQL, agent, sourceMetrics, sessions(rows)); err != nil {
			return err
		}
		if since := unnamedSince(rows); !since.IsZero() {
			_, err = tx.Exec(ctx, dropUnnamedSQL, agent, sourceMetrics, since)
		}
		return err
	})
	if err != nil {
		return usage.Recorded{}, fmt.Errorf("record requests of Claude Code: %w", err)
	}
	return done, nil
}

// unnamedSince is the time of the first row without a session; zero if all have
// one. Claude Code leaves the names out where OTEL_METRICS_INCLUDE_SESSION_ID
// says so; then what events and metrics tell is matched by time.
func unnamedSince(rows []usage.Row) (first time.Time) {
	for _, r := range rows {
		if r.Session == "" && (first.IsZero() || r.At.Before(first)) {
			first = r.At
		}
	}
	return first
}

func sessions(rows []usage.Row) []string {
	set := map[string]bool{}
	for _, r := range rows {
		set[r.Session] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// Metrics records tokens and money among points, of sessions that no event and no
// transcript tells of. Counters may be sent as differences or as they stand; a
// point that came before, or that a later one overtook, changes nothing.
func Metrics(ctx context.Context, db postgres.DB, agent string, points []otlp.Point, now time.Time) (done usage.Recorded, err error) {
	points = slices.DeleteFunc(slices.Clone(points), func(p otlp.Point) bool {
		most := map[string]float64{metricTokens: 1e12, metricCost: usage.MaxCost / 1e6}[p.Metric] // 0 for others
		return most == 0 || p.Time == 0 || !(p.Value >= 0 && p.Value <= most)                     // also what is no number
	})
	if len(points) == 0 {
		return done, nil
	}
	err = postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSQL, agent); err != nil {
			return err
		}
		if err := advance(ctx, tx, agent, points); err != nil {
			return err
		}
		rows := gather(agent, points, now)
		known, err := known(ctx, tx, agent, usage.SourceClaudeCode, sessions(rows))
		if err != nil {
			return err
		}
		if known[""], err = unnamedKnown(ctx, tx, agent, points, now); err != nil {
			return err
		}
		rows = slices.DeleteFunc(rows, func(r usage.Row) bool { return known[r.Session] })
		done, err = usage.Record(ctx, tx, rows...)
		return err
	})
	if err != nil {
		return usage.Recorded{}, fmt.Errorf("record metrics of Claude Code: %w", err)
	}
	return done, nil
}

// unnamedKnown tells whether an event without a session lies in the time that
// points without one are of.
func unnamedKnown(ctx context.Context, db postgres.DB, agent string, points []otlp.Point, now time.Time) (bool, error) {
	var since time.Time
	for _, p := range points {
		if start := when(max(p.Start, 1), now); p.Attributes["session.id"] == "" && (since.IsZero() || start.Before(since)) {
			since = start
		}
	}
	if since.IsZero() {
		return false, nil
	}
	found, err := postgres.First[struct{ Known bool }](ctx, db, knownUnnamedSQL, agent, usage.SourceClaudeCode, since)
	return found.Known, err
}

// known are the sessions of which there are rows of a source.
func known(ctx context.Context, db postgres.DB, agent, source string, sessions []string) (map[string]bool, error) {
	rows, err := postgres.Every[struct{ Session string }](ctx, db, knownSQL, agent, source, sessions)
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for _, r := range rows {
		set[r.Session] = true
	}
	return set, nil
}

// advance makes differences of points that are counters as they stand. Money is
// counted in whole micro-dollars, so that the differences add up.
func advance(ctx context.Context, db postgres.DB, agent string, points []otlp.Point) error {
	type standing struct {
		Series  string  `json:"series"`
		Started int64   `json:"started"`
		Last    int64   `json:"last"`
		Total   float64 `json:"total"`
	}
	var list []standing
	var places []int
	for i := range points {
		p := &points[i]
		if p.Metric == metricCost {
			p.Value = math.Round(p.Value * 1e6)
		}
		if p.Temporality == otlp.Delta {
			continue
		}
		list = append(list, standing{p.Metric + " " + seriesOf(*p, ""), int64(p.Start), int64(p.Time), p.Value})
		places = append(places, i)
	}
	if len(list) == 0 {
		return nil
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("encode counters: %w", err)
	}
	row, err := postgres.First[struct{ Grown []byte }](ctx, db, advanceSQL, agent, string(encoded))
	if err != nil {
		return err
	}
	var grown []float64
	if err := json.Unmarshal(row.Grown, &grown); err != nil {
		return fmt.Errorf("read growth of counters: %w", err)
	}
	if len(grown) != len(places) {
		return fmt.Errorf("%d of %d counters came back", len(grown), len(places))
	}
	for n, i := range places {
		points[i].Value = grown[n]
	}
	return nil
}

// seriesOf knows a series again; without names the attribute that is left out.
func seriesOf(p otlp.Point, without string) string {
	all := maps.Clone(p.Resource)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, p.Attributes)
	delete(all, without)
	return fingerprint(all)
}

// bundle is what one export tells of a series: kinds of tokens and what they
// cost. The SDKs give every counter times of its own.
type bundle struct {
	row         usage.Row
	start, time uint64
}

// gather makes one row of each bundle. Its id is of the first start and the last
// time, so the same export again is the same row.
func gather(agent string, points []otlp.Point, now time.Time) []usage.Row {
	bundles := map[string]*bundle{}
	none := int64(0) // how many requests it was, metrics do not say
	for _, p := range points {
		if p.Value == 0 {
			continue
		}
		series := seriesOf(p, "type")
		b := bundles[series]
		if b == nil {
			b = &bundle{start: p.Start, row: usage.Row{Agent: agent, User: userOf(p.Attributes, p.Resource), Session: cut(p.Attributes["session.id"]),
				Provider: "anthropic", Model: modelOf(p.Attributes), Requests: &none, Source: sourceMetrics}}
			bundles[series] = b
		}
		b.start, b.time = min(b.start, p.Start), max(b.time, p.Time)
		b.add(p)
	}
	list := make([]usage.Row, 0, len(bundles))
	for _, series := range slices.Sorted(maps.Keys(bundles)) {
		b := bundles[series]
		b.row.At = when(b.time, now)
		b.row.ID = cut(agent + "/" + series + "/" + strconv.FormatUint(b.start, 10) + "/" + strconv.FormatUint(b.time, 10))
		if b.row.Model != "" {
			list = append(list, b.row)
		}
	}
	return list
}

func (b *bundle) add(p otlp.Point) {
	v, r := int64(math.Round(p.Value)), &b.row
	switch kind := p.Attributes["type"]; {
	case p.Metric == metricCost:
		if r.Reported != nil {
			v += *r.Reported
		}
		r.Reported = &v
	case kind == "input":
		r.Input += v
	case kind == "output":
		r.Output += v
	case kind == "cacheRead":
		r.CacheRead += v
	case kind == "cacheCreation":
		r.CacheWrite += v
	}
}
