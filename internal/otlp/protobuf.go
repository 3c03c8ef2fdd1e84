package otlp

import (
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a protobuf message: a number, or bytes.
type field struct {
	number protowire.Number
	value  uint64 // varint, fixed64 or fixed32
	bytes  []byte // length-delimited
}

// fields reads a message field by field. visit's error ends it.
func fields(message []byte, visit func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return ErrMalformed
		}
		message = message[n:]
		f := field{number: number}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.value = uint64(v)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return ErrMalformed
		}
		message = message[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// inner visits the messages in one field of a message.
func inner(message []byte, number protowire.Number, visit func([]byte) error) error {
	return fields(message, func(f field) error {
		if f.number != number || f.bytes == nil {
			return nil
		}
		return visit(f.bytes)
	})
}

// The numbers of the fields that are read.
const (
	resourceOf, scopesOf, itemsOf = 1, 2, 2 // ResourceMetrics, ScopeMetrics and those of logs
	attributesOfResource          = 1
	metricName, metricSum         = 1, 7
	sumPoints, sumTemporality     = 1, 2
	pointStart, pointTime         = 2, 3
	pointDouble, pointInt         = 4, 6
	pointAttributes               = 7
	recordTime, recordObserved    = 1, 11
	recordBody, recordAttributes  = 5, 6
	recordEvent                   = 12
)

// MetricsProtobuf reads an ExportMetricsServiceRequest.
func MetricsProtobuf(body []byte) ([]Point, error) {
	var out []Point
	err := each(body, func(resource map[string]string, metric []byte) error {
		m := Point{Resource: resource}
		var points [][]byte
		err := fields(metric, func(f field) error {
			switch f.number {
			case metricName:
				m.Metric = string(f.bytes)
			case metricSum:
				return fields(f.bytes, func(f field) error {
					switch f.number {
					case sumPoints:
						if len(out)+len(points) == maxItems {
							return ErrTooMany
						}
						points = append(points, f.bytes)
					case sumTemporality:
						m.Temporality = Temporality(f.value)
					}
					return nil
				})
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, p := range points {
			point := m
			if err := point.read(p); err != nil {
				return err
			}
			out = append(out, point)
		}
		return nil
	})
	return out, err
}

func (p *Point) read(message []byte) error {
	p.Attributes = map[string]string{}
	return fields(message, func(f field) error {
		switch f.number {
		case pointStart:
			p.Start = f.value
		case pointTime:
			p.Time = f.value
		case pointDouble:
			p.Value = math.Float64frombits(f.value)
		case pointInt:
			p.Value = float64(int64(f.value))
		case pointAttributes:
			return attribute(f.bytes, p.Attributes)
		}
		return nil
	})
}

// LogsProtobuf reads an ExportLogsServiceRequest.
func LogsProtobuf(body []byte) ([]Record, error) {
	var out []Record
	err := each(body, func(resource map[string]string, message []byte) error {
		r := Record{Resource: resource, Attributes: map[string]string{}}
		var text string
		var observed uint64
		if len(out) == maxItems {
			return ErrTooMany
		}
		err := fields(message, func(f field) error {
			switch f.number {
			case recordTime:
				r.Time = f.value
			case recordObserved:
				observed = f.value
			case recordEvent:
				r.Event = string(f.bytes)
			case recordBody:
				var err error
				text, err = anyValue(f.bytes)
				return err
			case recordAttributes:
				return attribute(f.bytes, r.Attributes)
			}
			return nil
		})
		r.settle(text, observed)
		out = append(out, r)
		return err
	})
	return out, err
}

// settle fills in what a record says elsewhere.
func (r *Record) settle(body string, observed uint64) {
	if r.Event == "" {
		r.Event = body
	}
	if r.Time == 0 {
		r.Time = observed
	}
}

// each visits what lies below the resources and scopes of a request.
func each(body []byte, visit func(resource map[string]string, item []byte) error) error {
	return inner(body, 1, func(group []byte) error {
		resource := map[string]string{}
		err := inner(group, resourceOf, func(r []byte) error {
			return inner(r, attributesOfResource, func(kv []byte) error { return attribute(kv, resource) })
		})
		if err != nil {
			return err
		}
		return inner(group, scopesOf, func(scope []byte) error {
			return inner(scope, itemsOf, func(item []byte) error { return visit(resource, item) })
		})
	})
}

// attribute reads a KeyValue.
func attribute(message []byte, into map[string]string) error {
	var key, value string
	err := fields(message, func(f field) error {
		var err error
		switch f.number {
		case 1:
			key = string(f.bytes)
		case 2:
			value, err = anyValue(f.bytes)
		}
		return err
	})
	if key != "" && value != "" {
		into[key] = value
	}
	if len(into) > maxAttributes {
		return ErrTooMany
	}
	return err
}

// anyValue reads an AnyValue as text; a list is none.
func anyValue(message []byte) (text string, err error) {
	err = fields(message, func(f field) error {
		switch f.number {
		case 1:
			text = string(f.bytes)
		case 2:
			text = strconv.FormatBool(f.value != 0)
		case 3:
			text = strconv.FormatInt(int64(f.value), 10)
		case 4:
			text = strconv.FormatFloat(math.Float64frombits(f.value), 'g', -1, 64)
		}
		return nil
	})
	return text, err
}

// RejectedProtobuf is an answer that says how many items were not taken, and why;
// nothing at all when all were.
func RejectedProtobuf(items int, why string) []byte {
	if items == 0 {
		return nil
	}
	partial := protowire.AppendTag(nil, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, uint64(items))
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, why)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}
