package claudecode

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"pawgate/internal/postgres"
	"pawgate/internal/usage"
)

// entry is a line of a transcript, as far as it tells of usage.
type entry struct {
	Type      string    `json:"type"`
	Session   string    `json:"sessionId"`
	RequestID string    `json:"requestId"`
	Timestamp time.Time `json:"timestamp"`
	CostUSD   *float64  `json:"costUSD"` // older versions
	Message   struct {
		ID    string `json:"id"`
		Model string `json:"model"`
		Usage *struct {
			Input      int64  `json:"input_tokens"`
			Output     int64  `json:"output_tokens"`
			CacheWrite int64  `json:"cache_creation_input_tokens"`
			CacheRead  int64  `json:"cache_read_input_tokens"`
			Speed      string `json:"speed"`
			Creation   struct {
				Hour int64 `json:"ephemeral_1h_input_tokens"`
			} `json:"cache_creation"`
		} `json:"usage"`
	} `json:"message"`
}

// Transcript is what a file of transcripts tells.
type Transcript struct {
	Rows  []usage.Row // one for each answer, with the most that was logged of it
	Lines int
	Bad   int // lines that are no JSON, such as one that was being written
}

// maxLine is the longest line that is read, in bytes; results of tools are long.
const maxLine = 64 << 20

// ReadTranscript reads a transcript, a line of JSON for each entry. Of it only
// times, models, ids and counts are kept, no text of a conversation. An answer
// that was logged while it grew, or again when a session was taken up, is one.
func ReadTranscript(agent, user string, file io.Reader) (Transcript, error) {
	var t Transcript
	place := map[string]int{}
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := readLine(lines)
		if len(line) > 0 {
			t.Lines++
			row, ok, bad := rowOf(agent, user, line)
			if bad {
				t.Bad++
			}
			if at, seen := place[row.ID]; ok && seen {
				if row.Output >= t.Rows[at].Output {
					t.Rows[at] = row
				}
			} else if ok {
				place[row.ID] = len(t.Rows)
				t.Rows = append(t.Rows, row)
			}
		}
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return t, fmt.Errorf("read transcript: %w", err)
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, more, err := r.ReadLine()
		line = append(line, part...)
		if err != nil || !more {
			return line, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("a line is longer than %d MB", maxLine>>20)
		}
	}
}

func rowOf(agent, user string, line []byte) (row usage.Row, ok, bad bool) {
	var e entry
	if json.Unmarshal(line, &e) != nil {
		return usage.Row{}, false, true
	}
	u := e.Message.Usage
	if e.Type != "assistant" || u == nil || e.Timestamp.IsZero() || e.Message.Model == "" || e.Message.Model == "<synthetic>" {
		return usage.Row{}, false, false
	}
	row = usage.Row{At: e.Timestamp.UTC(), Agent: agent, User: user, Session: cut(e.Session), Provider: "anthropic", Model: cut(e.Message.Model),
		Input: max(0, u.Input), Output: max(0, u.Output), CacheRead: max(0, u.CacheRead), CacheWrite1: max(0, u.Creation.Hour), Source: usage.SourceClaudeCode}
	row.CacheWrite = max(0, u.CacheWrite-row.CacheWrite1) // what is not said to live for an hour lives for five minutes
	if u.Speed == "fast" {
		row.Model += ":fast"
	}
	if e.CostUSD != nil {
		row.Reported = micros(*e.CostUSD)
	}
	id := e.RequestID
	if id == "" {
		id = e.Message.ID
	}
	row.ID = requestID(agent, id)
	return row, id != "", false
}

// Import records a transcript. Sessions of which telemetry told without the ids of
// requests are left out, because nothing would tell what was counted; their
// number is given.
func Import(ctx context.Context, db postgres.DB, agent string, rows []usage.Row) (done usage.Recorded, left int, err error) {
	covered, err := postgres.Every[struct{ Session string }](ctx, db, coveredSQL, agent, usage.SourceClaudeCode, sessions(rows))
	if err != nil {
		return done, 0, fmt.Errorf("read sessions: %w", err)
	}
	for _, c := range covered {
		rows = slices.DeleteFunc(slices.Clone(rows), func(r usage.Row) bool { return r.Session == c.Session })
	}
	done, err = record(ctx, db, agent, rows)
	return done, len(covered), err
}
