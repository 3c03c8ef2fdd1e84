package otlp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pawgate/internal/otlp"
)

// FuzzProtobuf: whatever comes, it is read or refused, and quickly.
func FuzzProtobuf(f *testing.F) {
	f.Add([]byte("\x0a\x02\x12\x00"))
	f.Add([]byte("\x0a\x10\x12\x0e\x12\x0c\x0a\x01a\x3a\x07\x0a\x05\x19\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		points, err := otlp.MetricsProtobuf(body)
		if err != nil && err != otlp.ErrMalformed && err != otlp.ErrTooMany {
			t.Errorf("%v", err)
		}
		if len(points) > len(body) {
			t.Errorf("%d points of %d bytes", len(points), len(body))
		}
		if _, err := otlp.LogsProtobuf(body); err != nil && err != otlp.ErrMalformed && err != otlp.ErrTooMany {
			t.Errorf("%v", err)
		}
	})
}

func TestRejected(t *testing.T) {
	t.Parallel()
	if got := otlp.RejectedProtobuf(0, "x"); got != nil {
		t.Errorf("%q", got)
	}
	if got := string(otlp.RejectedProtobuf(3, "old")); got != "\x0a\x07\x08\x03\x12\x03old" {
		t.Errorf("%q", got)
	}
	if got := string(otlp.RejectedJSON("rejectedLogRecords", 3, "old")); got != `{"partialSuccess":{"errorMessage":"old","rejectedLogRecords":"3"}}` {
		t.Error(got)
	}
}

// A body within the size that is taken must not become hundreds of megabytes in
// memory: empty parts cost the sender two or three bytes each.
func TestTooMany(t *testing.T) { // not parallel: it measures memory
	wrap := func(parts []byte, tags ...byte) []byte {
		for _, tag := range tags {
			parts = append(binary.AppendUvarint([]byte{tag}, uint64(len(parts))), parts...)
		}
		return parts
	}
	inJSON := func(before, part, after string) []byte {
		return []byte(before + strings.Repeat(part+",", 200_000) + part + after)
	}
	attribute := func(n int) []byte { return fmt.Appendf([]byte("\x3a\x0d\x0a\x06"), "%06d\x12\x03\x0a\x01x", n) }
	var attributes []byte
	for n := range 200 {
		attributes = append(attributes, attribute(n)...)
	}
	for name, read := range map[string]func() error{
		"points": func() error {
			_, err := otlp.MetricsProtobuf(wrap(bytes.Repeat([]byte{0x0a, 0}, 1_000_000), 0x3a, 0x12, 0x12, 0x0a))
			return err
		},
		"attributes": func() error {
			_, err := otlp.MetricsProtobuf(wrap(attributes, 0x0a, 0x3a, 0x12, 0x12, 0x0a))
			return err
		},
		"records": func() error {
			_, err := otlp.LogsProtobuf(wrap(bytes.Repeat([]byte{0x12, 0}, 1_000_000), 0x12, 0x0a))
			return err
		},
		"points in JSON": func() error {
			_, err := otlp.MetricsJSON(inJSON(`{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"sum":{"dataPoints":[`, `{}`, `]}}]}]}]}`))
			return err
		},
		"records in JSON": func() error {
			_, err := otlp.LogsJSON(inJSON(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[`, `{}`, `]}]}]}`))
			return err
		},
		"attributes in JSON": func() error {
			_, err := otlp.LogsJSON(inJSON(`{"resourceLogs":[{"resource":{"attributes":[`, `{"key":"a"}`, `]}}]}`))
			return err
		},
		"parts in JSON": func() error {
			_, err := otlp.LogsJSON([]byte(`{"resourceLogs":[` + strings.Repeat("0,", 5_000_000) + `0]}`))
			return err
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := read(); err != otlp.ErrTooMany {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
			t.Errorf("%s: %d MB", name, took)
		}
	}
}
