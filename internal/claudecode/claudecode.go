// Package claudecode turns what Claude Code tells of itself into usage: its
// telemetry, as events and as metrics, and the transcripts that it keeps.
//
// The same request may be told three times, and counts once. An event and a
// transcript's entry carry the id of the request. Metrics carry none: they count
// only for sessions of which there is nothing better, and give way when
// there is.
//
// (code.claude.com/docs/en/monitoring-usage)
package claudecode

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"pawgate/internal/otlp"
	"pawgate/internal/usage"
)

// sourceMetrics is the source of rows that were made from metrics.
const sourceMetrics = usage.SourceClaudeCode + "_metrics"

// Names of what Claude Code exports.
const (
	metricTokens = "claude_code.token.usage"
	metricCost   = "claude_code.cost.usage"
	eventRequest = "api_request"
	eventPrefix  = "claude_code."
)

// most bounds a text that is taken over, in bytes.
const most = 200

// cut shortens a text, keeping two long ones apart.
func cut(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
	if len(text) <= most {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.ToValidUTF8(text[:most-20], "") + "…" + hex.EncodeToString(sum[:8])
}

// userOf is whom a session belongs to: the address where there is one.
func userOf(attributes, resource map[string]string) string {
	for _, name := range []string{"user.email", "user.account_uuid", "user.account_id", "user.id"} {
		if v := attributes[name]; v != "" {
			return cut(v)
		}
		if v := resource[name]; v != "" {
			return cut(v)
		}
	}
	return ""
}

// modelOf is the model as prices know it: fast mode has prices of its own.
func modelOf(attributes map[string]string) string {
	model := cut(attributes["model"])
	if model != "" && attributes["speed"] == "fast" {
		model += ":fast"
	}
	return model
}

// when is a time of telemetry, no later than now: a clock that is ahead must not
// put usage into a period that has not begun.
func when(nanoseconds uint64, now time.Time) time.Time {
	if nanoseconds == 0 || nanoseconds > math.MaxInt64 {
		return now
	}
	if t := time.Unix(0, int64(nanoseconds)).UTC(); t.Before(now) {
		return t
	}
	return now
}

// count reads a number of tokens.
func count(text string) int64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || v > 1e12 {
		return 0
	}
	return int64(v)
}

// micros reads dollars as micro-dollars; nil where that is no cost.
func micros(dollars float64) *int64 {
	if math.IsNaN(dollars) || dollars <= 0 || dollars > 1e6 {
		return nil // 0 is what is said of a model without a price, too
	}
	v := int64(math.Round(dollars * 1e6))
	return &v
}

// requestRow is an api_request event as usage; false for any other record.
func requestRow(agent string, r otlp.Record, now time.Time) (usage.Row, bool) {
	name := r.Attributes["event.name"]
	if name == "" {
		name = r.Event
	}
	if strings.TrimPrefix(name, eventPrefix) != eventRequest {
		return usage.Row{}, false
	}
	a := r.Attributes
	row := usage.Row{At: when(r.Time, now), Agent: agent, User: userOf(a, r.Resource), Session: cut(a["session.id"]), Provider: "anthropic", Model: modelOf(a),
		Input: count(a["input_tokens"]), Output: count(a["output_tokens"]), CacheRead: count(a["cache_read_tokens"]), CacheWrite: count(a["cache_creation_tokens"]),
		Source: usage.SourceClaudeCode}
	if t, err := time.Parse(time.RFC3339Nano, a["event.timestamp"]); err == nil && t.Before(now) {
		row.At = t.UTC()
	}
	if cost, err := strconv.ParseFloat(a["cost_usd"], 64); err == nil {
		row.Reported = micros(cost)
	}
	// A sequence alone does not do: a session that is taken up again counts anew,
	// and sessions may come without names. Sent again, a record has its first time.
	switch {
	case a["request_id"] != "":
		row.ID = requestID(agent, a["request_id"])
	case row.Session != "" && a["event.sequence"] != "":
		row.ID = cut(agent + "/" + row.Session + "#" + a["event.sequence"] + "@" + strconv.FormatUint(r.Time, 10))
	default:
		row.ID = cut(agent + "/" + row.Session + "#" + fingerprint(a) + "@" + strconv.FormatUint(r.Time, 10))
	}
	return row, row.Model != ""
}

// requestID is the id of a request to the provider, in telemetry and in
// transcripts alike.
func requestID(agent, id string) string { return cut(agent + "/" + id) }

// fingerprint knows attributes again, in whatever order they came.
func fingerprint(attributes map[string]string) string {
	names := make([]string, 0, len(attributes))
	for name := range attributes {
		names = append(names, name)
	}
	sort.Strings(names)
	h := sha256.New()
	for _, name := range names {
		h.Write([]byte(name + "\x00" + attributes[name] + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}
