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

// ErrMalformed is a body that cannot be read. The text of what is wrong is not
// kept: it may quote the body.
var ErrMalformed = errors.New("the body is not what its content type says")
