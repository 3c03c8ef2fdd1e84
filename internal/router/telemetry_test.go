package router_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// collector serves the gate over a network, and says of every third request that
// it failed after it was taken, so that the sender sends it again.
func (g *gate) collector(flaky bool) string {
	g.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if flaky && n.Add(1)%3 != 0 {
			lost := httptest.NewRecorder()
			g.router.ServeHTTP(lost, req)
			if lost.Code != http.StatusOK {
				g.Errorf("HTTP %d: %s", lost.Code, lost.Body)
			}
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		g.router.ServeHTTP(w, req)
	}))
	g.Cleanup(server.Close)
	return server.URL
}

// session is one process of Claude Code, as the official SDK sends its metrics.
type session struct {
	tokens, dollars metric.Float64Counter
	attributes      []attribute.KeyValue
	provider        *sdkmetric.MeterProvider
}

func (g *gate) session(url, id string, temporality metricdata.Temporality) *session {
	g.Helper()
	exporter, err := otlpmetrichttp.New(g.Context(), otlpmetrichttp.WithEndpointURL(url+"/v1/metrics"), otlpmetrichttp.WithCompression(otlpmetrichttp.GzipCompression),
		otlpmetrichttp.WithHeaders(map[string]string{"Authorization": "Bearer " + aliceKey}),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: time.Millisecond, MaxInterval: 5 * time.Millisecond, MaxElapsedTime: time.Minute}),
		otlpmetrichttp.WithTemporalitySelector(func(sdkmetric.InstrumentKind) metricdata.Temporality { return temporality }))
	if err != nil {
		g.Fatal(err)
	}
	s := &session{provider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithInterval(time.Hour)))),
		attributes: []attribute.KeyValue{attribute.String("session.id", id), attribute.String("user.email", "ann@example.com"), attribute.String("model", "claude-haiku-4-5")}}
	meter := s.provider.Meter("com.anthropic.claude_code")
	if s.tokens, err = meter.Float64Counter("claude_code.token.usage"); err != nil {
		g.Fatal(err)
	}
	if s.dollars, err = meter.Float64Counter("claude_code.cost.usage"); err != nil {
		g.Fatal(err)
	}
	return s
}

func (s *session) spend(t *testing.T, kind string, tokens, dollars float64) {
	t.Helper()
	s.tokens.Add(t.Context(), tokens, metric.WithAttributes(append(s.attributes[:3:3], attribute.String("type", kind))...))
	s.dollars.Add(t.Context(), dollars, metric.WithAttributes(s.attributes...))
}

// TestMetricsOfTheOfficialSDK: differences and running sums, gzip, answers that
// get lost, and a restart: everything counts once.
func TestMetricsOfTheOfficialSDK(t *testing.T) {
	for name, temporality := range map[string]metricdata.Temporality{"delta": metricdata.DeltaTemporality, "cumulative": metricdata.CumulativeTemporality} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			url := g.collector(true)
			for range 2 { // the process starts again
				s := g.session(url, "s1", temporality)
				for i := range 5 {
					s.spend(t, "input", 1000, 0.001)
					s.spend(t, "output", 100, 0.0005)
					if i%2 == 0 {
						s.spend(t, "cacheRead", 5000, 0.0005)
						s.spend(t, "cacheCreation", 300, 0.000375)
					}
					if err := s.provider.ForceFlush(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.provider.Shutdown(t.Context()); err != nil { // sends once more
					t.Fatal(err)
				}
			}
			for column, want := range map[string]int{"input": 10_000, "output": 1000, "cache_read": 30_000, "cache_write_5m": 1800,
				"cost_micros": 2 * (5*1500 + 3*875)} {
				if got := g.count(`select coalesce(sum(` + column + `), 0) from usage where agent_id = 'alice' and session_id = 's1' and user_id = 'ann@example.com'`); got != want {
					t.Errorf("%s: %d, want %d", column, got, want)
				}
			}
			if got := g.count(`select count(*) from usage where cost_micros is null`); got != 0 {
				t.Errorf("%d rows without a cost", got)
			}
		})
	}
}

// emit sends api_request events with the official SDK.
func (g *gate) emit(url string, events ...[]attribute.KeyValue) {
	g.Helper()
	exporter, err := otlploghttp.New(g.Context(), otlploghttp.WithEndpointURL(url+"/v1/logs"), otlploghttp.WithCompression(otlploghttp.GzipCompression),
		otlploghttp.WithHeaders(map[string]string{"Authorization": "Bearer " + aliceKey}),
		otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: true, InitialInterval: time.Millisecond, MaxInterval: 5 * time.Millisecond, MaxElapsedTime: time.Minute}))
	if err != nil {
		g.Fatal(err)
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
	logger := provider.Logger("com.anthropic.claude_code.events")
	for _, attributes := range events {
		var r log.Record
		r.SetTimestamp(time.Now().Add(-time.Minute))
		r.SetBody(attribute.StringValue("claude_code.api_request"))
		r.AddAttributes(attribute.String("event.name", "api_request"), attribute.String("session.id", "s1"), attribute.String("model", "claude-haiku-4-5"))
		r.AddAttributes(attributes...)
		logger.Emit(context.Background(), r)
	}
	if err := provider.Shutdown(context.Background()); err != nil {
		g.Fatal(err)
	}
}

func apiRequest(id string, cost float64) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("request_id", id), attribute.Int("input_tokens", 1000), attribute.Int("output_tokens", 100), attribute.String("cache_read_tokens", "5000"),
		attribute.Int("cache_creation_tokens", 0), attribute.Float64("cost_usd", cost)}
}

// TestEventsOfTheOfficialSDK: one row for each request, however often it is sent,
// and metrics of the same session do not count beside them, whichever came first.
func TestEventsOfTheOfficialSDK(t *testing.T) {
	g := newGate(t)
	url := g.collector(true)
	s := g.session(url, "s1", metricdata.DeltaTemporality)
	s.spend(t, "input", 2000, 0.004)
	if err := s.provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := g.count(`select count(*) from usage`); got != 1 {
		t.Fatalf("%d rows of metrics", got)
	}
	g.emit(url, apiRequest("req_1", 0.002), apiRequest("req_2", 0.002), apiRequest("req_1", 0.002))
	g.emit(url, apiRequest("req_2", 0.002), []attribute.KeyValue{attribute.String("event.name", "user_prompt"), attribute.String("prompt", "PRIVATE")})
	s.spend(t, "input", 2000, 0.004)
	if err := s.provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := g.count(`select count(*) from usage where source = 'claude_code' and input = 1000 and output = 100 and cache_read = 5000 and cost_micros = 2000`); got != 2 {
		t.Errorf("%d requests", got)
	}
	if got := g.count(`select count(*) from usage`); got != 2 {
		t.Errorf("%d rows: metrics count beside events", got)
	}
	g.exec(`select usage_fold()`)
	if got := g.count(`select sum(cost_micros) from usage_by_agent where level = 3 and agent_id = 'alice'`); got != 4000 {
		t.Errorf("the sums say %d", got)
	}
	if strings.Contains(g.log.String(), "PRIVATE") {
		t.Error("a prompt is in the log")
	}
}

// send posts a body to a route.
func (g *gate) send(path, media string, body []byte, edit ...func(*http.Request)) *httptest.ResponseRecorder {
	g.Helper()
	req := httptest.NewRequestWithContext(g.Context(), http.MethodPost, "http://localhost"+path, bytes.NewReader(body))
	req.Header.Set("Content-Type", media)
	req.Header.Set("Authorization", "Bearer "+aliceKey)
	for _, e := range edit {
		e(req)
	}
	w := httptest.NewRecorder()
	g.router.ServeHTTP(w, req)
	return w
}

const jsonMetrics = `{"resourceMetrics":[{"resource":{"attributes":[{"key":"user.id","value":{"stringValue":"u1"}}]},"scopeMetrics":[{"metrics":[
	{"name":"claude_code.token.usage","sum":{"aggregationTemporality":1,"isMonotonic":true,"dataPoints":[
		{"attributes":[{"key":"type","value":{"stringValue":"input"}},{"key":"model","value":{"stringValue":"claude-haiku-4-5"}},{"key":"session.id","value":{"stringValue":"s9"}}],
		 "startTimeUnixNano":"1700000000000000000","timeUnixNano":"1700000060000000000","asInt":"1000"},
		{"attributes":[{"key":"type","value":{"stringValue":"output"}},{"key":"model","value":{"stringValue":"claude-haiku-4-5"}},{"key":"session.id","value":{"stringValue":"s9"}}],
		 "startTimeUnixNano":"1700000000000000000","timeUnixNano":"1700000060000000000","asDouble":100}]}},
	{"name":"claude_code.session.count","sum":{"aggregationTemporality":1,"dataPoints":[{"asInt":"1"}]}}]}]}]}`

const jsonLogs = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1700000060000000000","body":{"stringValue":"claude_code.api_request"},"attributes":[
	{"key":"model","value":{"stringValue":"claude-haiku-4-5"}},{"key":"input_tokens","value":{"intValue":"1000"}},{"key":"output_tokens","value":{"stringValue":"100"}},
	{"key":"session.id","value":{"stringValue":"s8"}},{"key":"event.sequence","value":{"intValue":7}}]}]}]}]}`

// TestTelemetryInJSON: and what nobody said the cost of has the price of the list.
func TestTelemetryInJSON(t *testing.T) {
	g := newGate(t)
	for range 2 {
		for path, body := range map[string]string{"/v1/metrics": jsonMetrics, "/v1/logs": jsonLogs} {
			if w := g.send(path, "application/json", []byte(body)); w.Code != 200 || w.Body.String() != "{}" || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s: HTTP %d %s", path, w.Code, w.Body)
			}
		}
	}
	for _, session := range []string{"s8", "s9"} {
		if got := g.count(`select count(*) from usage where session_id = $1 and input = 1000 and output = 100 and cost_micros = 1500 and at = to_timestamp(1700000060)`, session); got != 1 {
			t.Errorf("%s: %d rows", session, got)
		}
	}
	// What is older than rows are kept for is said to be left out.
	g.exec(`select usage_prune('2026-01-01')`)
	if w := g.send("/v1/metrics", "application/json", []byte(strings.ReplaceAll(jsonMetrics, `"s9"`, `"s7"`))); w.Code != 200 || !strings.Contains(w.Body.String(), `"rejectedDataPoints":"1"`) {
		t.Errorf("too old: HTTP %d %s", w.Code, w.Body)
	}
}

// TestTelemetryRefuses: nobody without a key, nothing that is too large or broken.
func TestTelemetryRefuses(t *testing.T) {
	g := newGate(t)
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	for range 20 {
		if _, err := zip.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	crowd := bytes.Repeat([]byte{0x0a, 0x00}, 100_000)
	for _, tag := range []byte{0x3a, 0x12, 0x12, 0x0a} {
		crowd = append(binary.AppendUvarint([]byte{tag}, uint64(len(crowd))), crowd...)
	}
	for name, c := range map[string]struct {
		want  int
		media string
		body  []byte
		edit  func(*http.Request)
	}{
		"no key":           {401, "application/json", []byte(jsonMetrics), func(r *http.Request) { r.Header.Del("Authorization") }},
		"wrong key":        {401, "application/x-protobuf", nil, as("paw_test_nobody")},
		"GET":              {405, "application/json", nil, func(r *http.Request) { r.Method = http.MethodGet }},
		"another media":    {415, "text/plain", []byte("x"), nil},
		"another encoding": {415, "application/json", []byte("x"), header("Content-Encoding", "br")},
		"no gzip":          {400, "application/json", []byte(jsonMetrics), header("Content-Encoding", "gzip")},
		"a bomb":           {413, "application/json", bomb.Bytes(), header("Content-Encoding", "gzip")},
		"too large":        {413, "application/json", make([]byte, 5<<20), nil},
		"a crowd":          {413, "application/x-protobuf", crowd, nil},
		"no JSON":          {400, "application/json", []byte("{"), nil},
		"no protobuf":      {400, "application/x-protobuf", []byte("\xff\xff\xff"), nil},
	} {
		edit := c.edit
		if edit == nil {
			edit = func(*http.Request) {}
		}
		if w := g.send("/v1/metrics", c.media, c.body, edit); w.Code != c.want {
			t.Errorf("%s: HTTP %d, want %d: %s", name, w.Code, c.want, w.Body)
		}
	}
	if got := g.count(`select count(*) from usage`); got != 0 {
		t.Errorf("%d rows", got)
	}
}

// TestUsageOfOtherRuntimes: a POST of one's own usage; the agent is the key's.
func TestUsageOfOtherRuntimes(t *testing.T) {
	g := newGate(t)
	const body = `{"usage":[{"id":"r1","at":"2026-11-30T10:00:00Z","provider":"openai","model":"claude-haiku-4-5","input_tokens":1000,"output_tokens":100,"reasoning_tokens":40,"user_id":"ann"},
		{"id":"r2","at":"2026-11-30T10:00:00Z","tool":"web_search","request_type":"tool","units":2,"cost_micro_usd":16000}]}`
	for i, want := range []string{`"added":2`, `"added":0`} {
		if w := g.send("/v1/usage", "application/json", []byte(body)); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d: HTTP %d %s", i, w.Code, w.Body)
		}
	}
	if w := g.send("/v1/usage", "application/json", []byte(body), as(bobKey)); !strings.Contains(w.Body.String(), `"added":2`) {
		t.Errorf("bob's rows with the same ids: %s", w.Body)
	}
	if got := g.count(`select sum(cost_micros) from usage where agent_id = 'alice'`); got != 1500+16000 {
		t.Errorf("%d micro-dollars", got)
	}
	for name, broken := range map[string]string{
		"another agent": `{"usage":[{"id":"x","agent_id":"bob","at":"2026-11-30T10:00:00Z","model":"m"}]}`,
		"misspelt":      `{"usage":[{"id":"x","at":"2026-11-30T10:00:00Z","model":"m","input":5}]}`,
		"no id":         `{"usage":[{"at":"2026-11-30T10:00:00Z","model":"m"}]}`,
		"no time":       `{"usage":[{"id":"x","model":"m"}]}`,
		"the future":    `{"usage":[{"id":"x","at":"2126-11-30T10:00:00Z","model":"m"}]}`,
		"negative":      `{"usage":[{"id":"x","at":"2026-11-30T10:00:00Z","model":"m","input_tokens":-5}]}`,
		"NUL":           `{"usage":[{"id":"x\u0000","at":"2026-11-30T10:00:00Z","model":"m"}]}`,
		"nothing":       `{"usage":[]}`,
		"more behind":   body + "{}",
		"a crowd":       `{"usage":[` + strings.Repeat("{},", 1_000_000) + `{}]}`,
		"a fortune":     `{"usage":[{"id":"x","at":"2026-11-30T10:00:00Z","model":"m","cost_micro_usd":9000000000000000000}]}`,
	} {
		if w := g.send("/v1/usage", "application/json", []byte(broken)); w.Code != 400 {
			t.Errorf("%s: HTTP %d %s", name, w.Code, w.Body)
		}
	}
}
