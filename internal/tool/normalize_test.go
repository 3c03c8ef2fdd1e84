package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pawgate/internal/fault"
	"pawgate/internal/tool"
)

type filter struct {
	Since string `json:"since,omitempty" doc:"From when"`
	Layer string `json:"layer,omitempty" doc:"Which" enum:"fact,event"`
}

type sample struct {
	Query  string            `json:"query" doc:"What" maxlen:"10"`
	Limit  int               `json:"limit,omitempty" doc:"How many" min:"1" max:"100"`
	Weight float64           `json:"weight,omitempty" doc:"How much" min:"0"`
	Deep   *bool             `json:"deep,omitempty" doc:"Whether"`
	IDs    []int64           `json:"ids,omitempty" doc:"Which"`
	Tags   []string          `json:"tags,omitempty" doc:"Words" enum:"a,b"`
	Filter filter            `json:"filter,omitzero" doc:"Only these"`
	Chat   tool.ID           `json:"chat,omitempty" doc:"Where"`
	Domain tool.List         `json:"domain,omitempty" doc:"Conditions"`
	Values tool.Object       `json:"values,omitempty" doc:"Anything"`
	Labels map[string]string `json:"labels,omitempty" doc:"Names"`
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	schema := tool.SchemaOf[sample]()
	for _, c := range []struct{ name, in, want, refused, part string }{
		{"as it is", `{"query":"x"}`, `{"query":"x"}`, "", ""},
		{"order and blanks", ` { "limit" : 5 , "query" : "x" } `, `{"query":"x","limit":5}`, "", ""},
		{"one escaping", `{"query":"\u0041\/"}`, `{"query":"A/"}`, "", ""},
		{"optional null left out", `{"query":"x","limit":null}`, `{"query":"x"}`, "", ""},
		{"number in text", `{"query":"x","limit":"5"}`, `{"query":"x","limit":5}`, "", ""},
		{"boolean in text", `{"query":"x","deep":"true"}`, `{"query":"x","deep":true}`, "", ""},
		{"array in text", `{"query":"x","ids":"[1, 2]"}`, `{"query":"x","ids":[1,2]}`, "", ""},
		{"object in text", `{"query":"x","filter":"{\"since\":\"y\"}"}`, `{"query":"x","filter":{"since":"y"}}`, "", ""},
		{"digits are kept", `{"query":"x","ids":[9007199254740993]}`, `{"query":"x","ids":[9007199254740993]}`, "", ""},
		{"identifier as number", `{"query":"x","chat":-1001234567890123456}`, `{"query":"x","chat":"-1001234567890123456"}`, "", ""},
		{"identifier as text", `{"query":"x","chat":"-100"}`, `{"query":"x","chat":"-100"}`, "", ""},
		{"text stays text", `{"query":"5"}`, `{"query":"5"}`, "", ""},
		{"open array", `{"query":"x","domain":[["a","=",1.50],"|"]}`, `{"query":"x","domain":[["a","=",1.50],"|"]}`, "", ""},
		{"open object", `{"query":"x","values":{"b":1,"a":[2]}}`, `{"query":"x","values":{"a":[2],"b":1}}`, "", ""},
		{"map sorted", `{"query":"x","labels":{"b":"1","a":"2"}}`, `{"query":"x","labels":{"a":"2","b":"1"}}`, "", ""},
		{"missing", `{}`, "", "query", "Missing required parameter: query"},
		{"required null", `{"query":null}`, "", "query", "Missing required parameter: query"},
		{"unknown", `{"query":"x","q":1}`, "", "q", `unknown argument "q"; this tool takes query, limit`},
		{"misspelt required", `{"qery":"x"}`, "", "qery", `unknown argument "qery"`},
		{"unknown inside", `{"query":"x","filter":{"sinec":"y"}}`, "", "filter.sinec", `unknown argument "filter.sinec"; this tool takes since, layer`},
		{"case variant", `{"Query":"x"}`, "", "Query", `unknown argument "Query"`},
		{"number for text", `{"query":5}`, "", "query", "query must be a string"},
		{"fraction for a whole number", `{"query":"x","limit":5.5}`, "", "limit", "limit must be a whole number"},
		{"word for a number", `{"query":"x","limit":"many"}`, "", "limit", "limit must be a whole number"},
		{"null in text", `{"query":"x","limit":"null"}`, "", "limit", "limit must be a whole number"},
		{"text in text", `{"query":"x","limit":"\"5\""}`, "", "limit", "limit must be a whole number"},
		{"yes for a boolean", `{"query":"x","deep":"yes"}`, "", "deep", "deep must be true or false"},
		{"one for a boolean", `{"query":"x","deep":1}`, "", "deep", "deep must be true or false"},
		{"too small", `{"query":"x","limit":0}`, "", "limit", "limit must be between 1 and 100"},
		{"below", `{"query":"x","weight":-0.1}`, "", "weight", "weight must be at least 0"},
		{"beyond any number", `{"query":"x","weight":1e999}`, "", "weight", "too large"},
		{"H2 too small to be kept", `{"query":"x","weight":1e-999999}`, "", "weight", "too large an exponent"},
		{"H2 too many digits", `{"query":"x","weight":5.` + strings.Repeat("0", 20_000) + `}`, "", "weight", "too many digits"},
		{"H2 deep inside", `{"query":"x","values":{"a":[1e-999999]}}`, "", "values.a", "too large an exponent"},
		{"H2 in an open array", `{"query":"x","domain":[["a","=",1e999]]}`, "", "domain[0]", "too large an exponent"},
		{"beyond 64 bits", `{"query":"x","ids":[92233720368547758070]}`, "", "ids[0]", "too large"},
		{"wrong word", `{"query":"x","tags":["a","c"]}`, "", "tags[1]", "tags[1] must be one of a, b"},
		{"too long", `{"query":"12345678901"}`, "", "query", "at most 10 characters, not 11"},
		{"ten wide characters fit", `{"query":"一二三四五六七八九十"}`, `{"query":"一二三四五六七八九十"}`, "", ""},
		{"NUL", `{"query":"a\u0000"}`, "", "query", "NUL"},
		{"NUL deep inside", `{"query":"x","values":{"a":["\u0000"]}}`, "", "values.a", "NUL"},
		{"NUL in text that is unwrapped", `{"query":"x","domain":"[\"\\u0000\"]"}`, "", "domain[0]", "NUL"},
		{"twice", `{"query":"x","query":"y"}`, "", "arguments", "twice"},
		{"not an object", `[]`, "", "arguments", "arguments must be an object"},
		{"a number", `5`, "", "arguments", "arguments must be an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := schema.Normalize([]byte(c.in))
			if c.refused == "" {
				if err != nil || string(got) != c.want {
					t.Fatalf("got %s, %v; want %s", got, err, c.want)
				}
				return
			}
			e, ok := fault.InvalidOf(err)
			if !ok || e.Parameter != c.refused || !strings.Contains(e.Message, c.part) {
				t.Errorf("got %s, %#v; want %s refused with %q", got, err, c.refused, c.part)
			}
		})
	}
}

// TestSchemaRoundTrip: what is published reads back as the same schema.
func TestSchemaRoundTrip(t *testing.T) {
	t.Parallel()
	want := tool.SchemaOf[sample]()
	encoded, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := new(tool.Schema)
	if err := json.Unmarshal(encoded, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(tool.Schema{})); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, encoded)
	}
}

// FuzzNormalize: no input breaks it, and its output is its own normal form
// and decodes into the struct.
func FuzzNormalize(f *testing.F) {
	schema := tool.SchemaOf[sample]()
	for _, seed := range []string{`{"query":"x","limit":"5","domain":[1],"labels":{"a":"b"}}`, `{`, `null`, `{"query":"\ud83d"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := schema.Normalize(in)
		if err != nil {
			if _, ok := fault.InvalidOf(err); !ok {
				t.Fatalf("not an invalid argument: %v", err)
			}
			return
		}
		twice, err := schema.Normalize(once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("%s became %s, %v", once, twice, err)
		}
		var s sample
		if err := json.Unmarshal(once, &s); err != nil {
			t.Fatalf("%s does not decode: %v", once, err)
		}
	})
}
