package otlp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
)

// number is a 64-bit number, which JSON carries as text, though some senders do
// not.
type number string

// UnmarshalJSON takes a number with quotes or without.
func (n *number) UnmarshalJSON(b []byte) error {
	if len(b) >= 2 && b[0] == '"' {
		b = b[1 : len(b)-1]
	}
	*n = number(b)
	return nil
}

func (n number) unsigned() uint64 {
	v, err := strconv.ParseUint(string(n), 10, 64)
	if err != nil {
		return 0
	}
	return v
}

type jsonValue struct {
	String *string  `json:"stringValue"`
	Int    *number  `json:"intValue"`
	Double *float64 `json:"doubleValue"`
	Bool   *bool    `json:"boolValue"`
}

func (v jsonValue) text() string {
	switch {
	case v.String != nil:
		return *v.String
	case v.Int != nil:
		return string(*v.Int)
	case v.Double != nil:
		return strconv.FormatFloat(*v.Double, 'g', -1, 64)
	case v.Bool != nil:
		return strconv.FormatBool(*v.Bool)
	}
	return ""
}

type jsonAttributes []struct {
	Key   string    `json:"key"`
	Value jsonValue `json:"value"`
}

func (a jsonAttributes) table() (map[string]string, error) {
	if len(a) > maxAttributes {
		return nil, ErrTooMany
	}
	m := map[string]string{}
	for _, kv := range a {
		if text := kv.Value.text(); kv.Key != "" && text != "" {
			m[kv.Key] = text
		}
	}
	return m, nil
}

// read reads a body into a request. What it will be in memory its commas tell
// before: there is one between any two parts of it.
func read(body []byte, request any) error {
	switch {
	case bytes.Count(body, []byte{','}) > maxParts:
		return ErrTooMany
	case json.Unmarshal(body, request) != nil:
		return ErrMalformed
	}
	return nil
}

type jsonResource struct {
	Attributes jsonAttributes `json:"attributes"`
}

type jsonPoint struct {
	Attributes jsonAttributes `json:"attributes"`
	Start      number         `json:"startTimeUnixNano"`
	Time       number         `json:"timeUnixNano"`
	Double     *float64       `json:"asDouble"`
	Int        *number        `json:"asInt"`
}

func (p jsonPoint) value() (float64, error) {
	switch {
	case p.Double != nil:
		return *p.Double, nil
	case p.Int != nil:
		v, err := strconv.ParseInt(string(*p.Int), 10, 64)
		if err != nil {
			return 0, ErrMalformed
		}
		return float64(v), nil
	}
	return 0, nil
}

func (p jsonPoint) point() (Point, error) {
	value, err := p.value()
	if err != nil {
		return Point{}, err
	}
	attributes, err := p.Attributes.table()
	return Point{Attributes: attributes, Start: p.Start.unsigned(), Time: p.Time.unsigned(), Value: value}, err
}

// MetricsJSON reads an ExportMetricsServiceRequest in JSON.
func MetricsJSON(body []byte) ([]Point, error) {
	var request struct {
		Groups []struct {
			Resource jsonResource `json:"resource"`
			Scopes   []struct {
				Metrics []struct {
					Name string `json:"name"`
					Sum  *struct {
						Points      []jsonPoint `json:"dataPoints"`
						Temporality Temporality `json:"aggregationTemporality"`
					} `json:"sum"`
				} `json:"metrics"`
			} `json:"scopeMetrics"`
		} `json:"resourceMetrics"`
	}
	if err := read(body, &request); err != nil {
		return nil, err
	}
	var out []Point
	for _, group := range request.Groups {
		resource, err := group.Resource.Attributes.table()
		if err != nil {
			return nil, err
		}
		for _, scope := range group.Scopes {
			for _, m := range scope.Metrics {
				if m.Sum == nil {
					continue
				}
				for _, p := range m.Sum.Points {
					point, err := p.point()
					if err != nil || len(out) == maxItems {
						return nil, cmp.Or(err, ErrTooMany)
					}
					point.Metric, point.Temporality, point.Resource = m.Name, m.Sum.Temporality, resource
					out = append(out, point)
				}
			}
		}
	}
	return out, nil
}

// LogsJSON reads an ExportLogsServiceRequest in JSON.
func LogsJSON(body []byte) ([]Record, error) {
	var request struct {
		Groups []struct {
			Resource jsonResource `json:"resource"`
			Scopes   []struct {
				Records []struct {
					Time       number         `json:"timeUnixNano"`
					Observed   number         `json:"observedTimeUnixNano"`
					Event      string         `json:"eventName"`
					Body       jsonValue      `json:"body"`
					Attributes jsonAttributes `json:"attributes"`
				} `json:"logRecords"`
			} `json:"scopeLogs"`
		} `json:"resourceLogs"`
	}
	if err := read(body, &request); err != nil {
		return nil, err
	}
	var out []Record
	for _, group := range request.Groups {
		resource, err := group.Resource.Attributes.table()
		if err != nil {
			return nil, err
		}
		for _, scope := range group.Scopes {
			for _, l := range scope.Records {
				attributes, err := l.Attributes.table()
				if err != nil || len(out) == maxItems {
					return nil, cmp.Or(err, ErrTooMany)
				}
				r := Record{Event: l.Event, Attributes: attributes, Resource: resource, Time: l.Time.unsigned()}
				r.settle(l.Body.text(), l.Observed.unsigned())
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// RejectedJSON is RejectedProtobuf in JSON. member is rejectedDataPoints or
// rejectedLogRecords.
func RejectedJSON(member string, items int, why string) []byte {
	if items == 0 {
		return []byte("{}")
	}
	encoded, err := json.Marshal(map[string]any{"partialSuccess": map[string]any{member: strconv.Itoa(items), "errorMessage": why}})
	if err != nil {
		return []byte("{}")
	}
	return encoded
}
