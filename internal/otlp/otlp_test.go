package otlp_test

import (
	"testing"

	"pawgate/internal/otlp"
)

// FuzzProtobuf: whatever comes, it is read or refused, and quickly.
func FuzzProtobuf(f *testing.F) {
	f.Add([]byte("\x0a\x02\x12\x00"))
	f.Add([]byte("\x0a\x10\x12\x0e\x12\x0c\x0a\x01a\x3a\x07\x0a\x05\x19\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		points, err := otlp.MetricsProtobuf(body)
		if err != nil && err != otlp.ErrMalformed {
			t.Errorf("%v", err)
		}
		if len(points) > len(body) {
			t.Errorf("%d points of %d bytes", len(points), len(body))
		}
		if _, err := otlp.LogsProtobuf(body); err != nil && err != otlp.ErrMalformed {
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
