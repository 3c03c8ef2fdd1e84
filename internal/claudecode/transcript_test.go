package claudecode_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"pawgate/internal/claudecode"
	"pawgate/internal/otlp"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/usage"
)

// transcript is a session: a prompt, an answer that was logged while it grew, one
// that was logged again when the session was taken up, one of an API without ids
// of requests, one that no model wrote, and a line that was being written.
const transcript = `{"type":"user","sessionId":"s1","timestamp":"2026-11-30T10:00:00.000Z","message":{"role":"user","content":"PRIVATE"}}
{"type":"assistant","sessionId":"s1","requestId":"req_1","timestamp":"2026-11-30T10:00:01.000Z","message":{"id":"msg_1","model":"claude-haiku-4-5-20251001","content":[{"type":"text","text":"PRIVATE"}],"usage":{"input_tokens":1000,"cache_creation_input_tokens":3000,"cache_read_input_tokens":5000,"output_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000}}}}
{"type":"assistant","sessionId":"s1","requestId":"req_1","timestamp":"2026-11-30T10:00:02.000Z","message":{"id":"msg_1","model":"claude-haiku-4-5-20251001","usage":{"input_tokens":1000,"cache_creation_input_tokens":3000,"cache_read_input_tokens":5000,"output_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000}}}}
{"type":"assistant","sessionId":"s2","requestId":"req_1","timestamp":"2026-11-30T10:00:02.000Z","message":{"id":"msg_1","model":"claude-haiku-4-5-20251001","usage":{"input_tokens":1000,"cache_creation_input_tokens":3000,"cache_read_input_tokens":5000,"output_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":1000,"ephemeral_1h_input_tokens":2000}}}}
{"type":"assistant","sessionId":"s1","timestamp":"2026-11-30T10:00:03.000Z","message":{"id":"msg_2","model":"claude-haiku-4-5-20251001","usage":{"input_tokens":10,"output_tokens":1}}}
{"type":"assistant","sessionId":"s1","timestamp":"2026-11-30T10:00:04.000Z","message":{"id":"x","model":"<synthetic>","usage":{"input_tokens":0,"output_tokens":0}}}
{"type":"summary","summary":"PRIVATE"}
{"type":"assistant","sessionId":"s1","requ`

func TestReadTranscript_CTS03_one_answer_in_two_entries(t *testing.T) {
	t.Parallel()
	got, err := claudecode.ReadTranscript("bot", "ann", strings.NewReader(transcript))
	if err != nil || len(got.Rows) != 2 || got.Bad != 1 || got.Lines != 8 {
		t.Fatalf("%+v, %v", got, err)
	}
	r := got.Rows[0]
	if r.Input != 1000 || r.CacheRead != 5000 || r.CacheWrite != 1000 || r.CacheWrite1 != 2000 || r.Output != 100 || r.User != "ann" || r.ID != "bot/req_1" {
		t.Errorf("%+v", r)
	}
}

// What a transcript and telemetry tell of the same request counts once, whichever
// came first; G-62: writes for an hour at their own price.
func TestImport(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	event := func(id, session, sequence string) otlp.Record {
		return otlp.Record{Event: "claude_code.api_request", Time: uint64(now.Add(-time.Hour).UnixNano()), Attributes: map[string]string{"session.id": session, "model": "claude-haiku-4-5",
			"request_id": id, "event.sequence": sequence, "input_tokens": "1000", "output_tokens": "100", "cache_read_tokens": "5000", "cache_creation_tokens": "3000"}}
	}
	if _, err := claudecode.Events(t.Context(), db, "bot", []otlp.Record{event("req_1", "s1", "1")}, now); err != nil {
		t.Fatal(err)
	}
	file, err := claudecode.ReadTranscript("bot", "", strings.NewReader(transcript))
	if err != nil {
		t.Fatal(err)
	}
	done, left, err := claudecode.Import(t.Context(), db, "bot", file.Rows)
	if err != nil || done.Added != 1 || left != 0 {
		t.Errorf("%+v, %d left, %v", done, left, err)
	}
	if done, _, err = claudecode.Import(t.Context(), db, "bot", file.Rows); err != nil || done != (usage.Recorded{}) {
		t.Errorf("again: %+v, %v", done, err)
	}
	other, err := claudecode.ReadTranscript("other", "", strings.NewReader(transcript))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := claudecode.Import(t.Context(), db, "other", other.Rows); err != nil {
		t.Fatal(err)
	}
	var cost int64
	if err := db.QueryRow(t.Context(), "select cost_micros from usage where source_id = 'other/req_1'").Scan(&cost); err != nil || cost != 1000+500+500+1250+4000 {
		t.Errorf("cost %d, %v", cost, err)
	}
	// Telemetry without ids of requests: nothing tells what was counted already.
	if _, err := claudecode.Events(t.Context(), db, "bot", []otlp.Record{event("", "s3", "9")}, now); err != nil {
		t.Fatal(err)
	}
	for i := range file.Rows {
		file.Rows[i].Session, file.Rows[i].ID = "s3", "bot/other"
	}
	if done, left, err = claudecode.Import(t.Context(), db, "bot", file.Rows); err != nil || done.Added != 0 || left != 1 {
		t.Errorf("a session that was told without ids: %+v, %d left, %v", done, left, err)
	}
}

// Events that share a number are other requests all the same: a session that is
// taken up again counts anew, and where sessions have no names, all begin at 1.
func TestEventsWithTheSameSequence(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	now := time.Unix(2_000_000_000, 0)
	event := func(session string, at int64) otlp.Record {
		return otlp.Record{Event: "claude_code.api_request", Time: uint64(at * 1e9), Attributes: map[string]string{"session.id": session, "event.sequence": "1",
			"model": "claude-haiku-4-5", "input_tokens": "1000", "output_tokens": "0"}}
	}
	records := []otlp.Record{event("s", 1_900_000_000), event("s", 1_900_000_500), event("", 1_900_000_000), event("", 1_900_000_500)}
	for _, want := range []int64{4, 0} {
		if got, err := claudecode.Events(t.Context(), db, "bot", records, now); err != nil || got.Added != want || got.Grown != 0 {
			t.Errorf("%+v, %v, want %d", got, err, want)
		}
	}
}

// Where sessions have no names, what events and metrics tell of the same time
// counts once, whichever came first.
func TestMetricsAndEventsWithoutSessions(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	for _, first := range []string{"events", "metrics"} {
		if _, err := db.Exec(t.Context(), "delete from usage"); err != nil {
			t.Fatal(err)
		}
		now := time.Unix(2_000_000_000, 0)
		send := map[string]func(){
			"events": func() {
				_, err := claudecode.Events(t.Context(), db, "bot", []otlp.Record{{Event: "claude_code.api_request", Time: 1_900_000_030e9,
					Attributes: map[string]string{"event.sequence": "1", "model": "claude-haiku-4-5", "input_tokens": "1000"}}}, now)
				if err != nil {
					t.Fatal(err)
				}
			},
			"metrics": func() {
				for minute := range uint64(2) { // in the first there were no events yet
					_, err := claudecode.Metrics(t.Context(), db, "bot", []otlp.Point{{Metric: "claude_code.token.usage", Temporality: otlp.Delta, Value: 1000,
						Start: 1_899_999_940e9 + minute*60e9, Time: 1_900_000_000e9 + minute*60e9, Attributes: map[string]string{"type": "input", "model": "claude-haiku-4-5"}}}, now)
					if err != nil {
						t.Fatal(err)
					}
				}
			},
		}
		send[first]()
		send[map[string]string{"events": "metrics", "metrics": "events"}[first]]()
		want := int64(2000)
		if first == "events" {
			want = 1000 // an event is known after the first minute, too: rather less than twice
		}
		var got int64
		if err := db.QueryRow(t.Context(), "select sum(input)::bigint from usage").Scan(&got); err != nil || got != want {
			t.Errorf("%s first: %d, want %d (%v)", first, got, want, err)
		}
	}
}

// A fortune is not taken for a cost, and does not keep the rest out.
func TestMetricsAbsurd(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	at := map[string]string{"type": "input", "model": "claude-haiku-4-5", "session.id": "s"}
	points := []otlp.Point{{Metric: "claude_code.token.usage", Temporality: otlp.Delta, Time: 5, Value: 1000, Attributes: at}}
	for _, v := range []float64{math.NaN(), math.Inf(1), -1, 1e9} {
		for _, temporality := range []otlp.Temporality{otlp.Delta, otlp.Cumulative} {
			points = append(points, otlp.Point{Metric: "claude_code.cost.usage", Temporality: temporality, Time: 5, Value: v, Attributes: at})
		}
	}
	if _, err := claudecode.Metrics(t.Context(), db, "bot", points, time.Now()); err != nil {
		t.Fatal(err)
	}
	var got int64
	if err := db.QueryRow(t.Context(), "select cost_micros from usage where input = 1000").Scan(&got); err != nil || got != 1000 {
		t.Errorf("%d, %v", got, err)
	}
}

// A running sum that began again under the same start, points out of order, and
// those of another agent.
func TestMetricsRunningSums(t *testing.T) {
	t.Parallel()
	db := postgrestest.New(t)
	now := time.Unix(2_000_000_000, 0)
	point := func(at uint64, total float64) otlp.Point {
		return otlp.Point{Metric: "claude_code.token.usage", Temporality: otlp.Cumulative, Start: 1, Time: at, Value: total,
			Attributes: map[string]string{"type": "input", "model": "claude-haiku-4-5", "session.id": "s"}}
	}
	for _, p := range []otlp.Point{point(10, 100), point(30, 250), point(20, 180), point(30, 250), point(40, 20)} {
		if _, err := claudecode.Metrics(t.Context(), db, "bot", []otlp.Point{p}, now); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := claudecode.Metrics(t.Context(), db, "other", []otlp.Point{point(10, 7)}, now); err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]int64{"bot": 270, "other": 7} {
		var got int64
		if err := db.QueryRow(t.Context(), "select sum(input)::bigint from usage where agent_id = $1", agent).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, want %d (%v)", agent, got, want, err)
		}
	}
}
