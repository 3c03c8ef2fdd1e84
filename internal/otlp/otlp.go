// Package otlp reads what the OpenTelemetry Protocol carries over HTTP, as far as
// sums of numbers and log records go: in protobuf or in JSON.
//
// It reads the wire format itself. The generated types register themselves when a program
// starts, which the router's cold start would pay for at every start and use at
// almost none. What it does not know it passes over, as both encodings ask for.
//
// (opentelemetry.io/docs/specs/otlp, and the .proto files of
// github.com/open-telemetry/opentelemetry-proto)
package otlp

import "errors"

// Temporality says what the value of a point is of.
type Temporality int

// The temporalities.
const (
	Unspecified Temporality = iota
	Delta                   // since the point before
	Cumulative              // since the start
)

// Point is a number of a sum.
type Point struct {
	Metric      string
	Temporality Temporality
	Attributes  map[string]string // of the point; numbers and booleans as text, lists left out
	Resource    map[string]string // of whoever sent it
	Start, Time uint64            // nanoseconds since 1970
	Value       float64
}

// Record is a log record, or an event.
type Record struct {
	Event      string // its event name, or its body where that is a text
	Attributes map[string]string
	Resource   map[string]string
	Time       uint64 // nanoseconds since 1970, when it happened or was seen
}

// Bounds of one body, so that a small one does not grow large in memory. The SDKs
// send 512 records at once, collectors some thousands.
const (
	maxItems      = 20_000  // points or records
	maxAttributes = 128     // of one, and of whoever sent it, as the SDKs bound them
	maxParts      = 400_000 // commas of JSON
)

// ErrTooMany is a body that has more than may be sent at once.
var ErrTooMany = errors.New("the body has more than 20,000 points or records, or one of them more than 128 attributes; send fewer at once")

// ErrMalformed is a body that cannot be read. The text of what is wrong is not
// kept: it may quote the body.
var ErrMalformed = errors.New("the body is not what its content type says")
