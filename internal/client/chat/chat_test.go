package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pawgate/internal/client/chat"
)

// serve is a server that answers with one text, and the last body it got.
func serve(t *testing.T, api chat.API, status int, answer string, headers ...string) (chat.Model, *http.Request, *string) {
	t.Helper()
	var seen http.Request
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		seen, body = *r, string(b)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	m, err := chat.New(chat.Config{API: api, URL: server.URL + "/v1/", Key: "sk-secret"})
	if err != nil {
		t.Fatal(err)
	}
	return m, &seen, &body
}

func echo() chat.Tool {
	return chat.Tool{Name: "echo", About: "Give back.", Schema: json.RawMessage(`{"type":"object"}`)}
}

// talk is a conversation in which two calls were made already.
func talk(native string) chat.Request {
	return chat.Request{Model: "m", System: "be brief", MaxTokens: 50, Tools: []chat.Tool{echo()}, Messages: []chat.Message{
		{Role: chat.User, Text: "go"},
		{Role: chat.Assistant, Native: json.RawMessage(native)},
		{Role: chat.User, Results: []chat.Result{{ID: "c1", Text: "one"}, {ID: "c2", Text: "two", Failed: true}}},
	}}
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		api                chat.API
		native, path, want string
		header, value      string
	}{
		{chat.OpenAI, `{"role":"assistant","tool_calls":[]}`, "/v1/chat/completions",
			`{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"go"},{"role":"assistant","tool_calls":[]},` +
				`{"role":"tool","content":"one","tool_call_id":"c1"},{"role":"tool","content":"two","tool_call_id":"c2"}],` +
				`"tools":[{"type":"function","function":{"name":"echo","description":"Give back.","parameters":{"type":"object"}}}],"max_tokens":50,"stream":false}`,
			"Authorization", "Bearer sk-secret"},
		{chat.Anthropic, `[{"type":"thinking","thinking":"hm","signature":"s"}]`, "/v1/messages",
			`{"model":"m","max_tokens":50,"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],"messages":[` +
				`{"role":"user","content":[{"type":"text","text":"go"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"one"},` +
				`{"type":"tool_result","tool_use_id":"c2","content":"two","is_error":true,"cache_control":{"type":"ephemeral"}}]}],` +
				`"tools":[{"name":"echo","description":"Give back.","input_schema":{"type":"object"}}]}`,
			"X-Api-Key", "sk-secret"},
	} {
		t.Run(string(c.api), func(t *testing.T) {
			t.Parallel()
			m, seen, body := serve(t, c.api, 200, `{"choices":[{"message":{"content":"x"}}]}`)
			if _, err := m.Complete(t.Context(), talk(c.native)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, *body); diff != "" {
				t.Errorf("question (-want +got):\n%s", diff)
			}
			if seen.URL.Path != c.path || seen.Header.Get(c.header) != c.value {
				t.Errorf("%s, %s", seen.URL.Path, seen.Header.Get(c.header))
			}
			if c.api == chat.Anthropic && seen.Header.Get("Anthropic-Version") != "2023-06-01" {
				t.Errorf("version %q", seen.Header.Get("Anthropic-Version"))
			}
			q := talk(c.native)
			q.NoCalls = true
			if _, err := m.Complete(t.Context(), q); err != nil || !strings.Contains(*body, `"tool_choice":`) || !strings.Contains(*body, `"none"`) {
				t.Errorf("no calls: %v %s", err, *body)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		api    chat.API
		answer string
		want   chat.Completion
		native string // what of it goes back, when it is checked
	}{
		"openai words": {chat.OpenAI, `{"id":"x1","model":"served","choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"hi","annotations":[]}}],
			"usage":{"prompt_tokens":100,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":4}}}`,
			chat.Completion{Message: chat.Message{Text: "hi"}, ID: "x1", Model: "served", Stop: chat.Done,
				Usage: chat.Usage{Input: 40, CacheRead: 60, Output: 9, Reasoning: 4}}, `{"content":"hi","role":"assistant"}`},
		"openai calls; a server that says stop, gives no ids, and signs": {chat.OpenAI, `{"choices":[{"finish_reason":"stop","message":{"content":null,"reasoning_content":"hm","tool_calls":[
			{"function":{"name":"a","arguments":"{\"x\": 1}"},"extra_content":{"signature":"s"}},
			{"id":"","function":{"name":"b","arguments":{"y":2}}},
			{"id":"c","function":{"name":"c","arguments":"{\"broken\":"}},
			{"id":"c","function":{"name":"d"}}]}}]}`,
			chat.Completion{Message: chat.Message{Calls: []chat.Call{
				{ID: "call_1", Name: "a", Arguments: `{"x": 1}`}, {ID: "call_2", Name: "b", Arguments: `{"y":2}`},
				{ID: "c", Name: "c", Arguments: `{"broken":`, Broken: true}, {ID: "call_4", Name: "d", Arguments: `{}`},
			}}, Stop: chat.Calls},
			`{"content":null,"reasoning_content":"hm","role":"assistant","tool_calls":[` +
				`{"extra_content":{"signature":"s"},"function":{"arguments":"{\"x\": 1}","name":"a"},"id":"call_1","type":"function"},` +
				`{"function":{"arguments":"{\"y\":2}","name":"b"},"id":"call_2","type":"function"},` +
				`{"function":{"arguments":"{}","name":"c"},"id":"c","type":"function"},` +
				`{"function":{"arguments":"{}","name":"d"},"id":"call_4","type":"function"}]}`},
		"openai arguments that are no object": {chat.OpenAI, `{"choices":[{"message":{"tool_calls":[{"id":"c","function":{"name":"a","arguments":"[1]"}}]}}]}`,
			chat.Completion{Message: chat.Message{Calls: []chat.Call{{ID: "c", Name: "a", Arguments: "[1]", Broken: true}}}, Stop: chat.Calls}, ""},
		"openai cut":      {chat.OpenAI, `{"choices":[{"finish_reason":"length","message":{"content":"h"}}]}`, chat.Completion{Message: chat.Message{Text: "h"}, Stop: chat.Length}, ""},
		"openai filtered": {chat.OpenAI, `{"choices":[{"finish_reason":"content_filter","message":{"refusal":"no"}}]}`, chat.Completion{Message: chat.Message{Text: "no"}, Stop: chat.Filtered}, ""},
		"openai parts":    {chat.OpenAI, `{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, chat.Completion{Message: chat.Message{Text: "ab"}, Stop: chat.Done}, ""},
		"openai nothing":  {chat.OpenAI, `{"choices":[{"message":{"content":null}}]}`, chat.Completion{Stop: chat.Done}, `{"content":"","role":"assistant"}`},
		"anthropic calls": {chat.Anthropic, `{"id":"m1","model":"served","stop_reason":"tool_use","content":[{"type":"thinking","thinking":"hm","signature":"s"},
			{"type":"text","text":"look"},{"type":"tool_use","id":"t1","name":"a","input":{"x":1}},{"type":"tool_use","id":"t2","name":"b","input":{}}],
			"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":70,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":10}}}`,
			chat.Completion{Message: chat.Message{Text: "look", Calls: []chat.Call{{ID: "t1", Name: "a", Arguments: `{"x":1}`}, {ID: "t2", Name: "b", Arguments: `{}`}}},
				ID: "m1", Model: "served", Stop: chat.Calls, Usage: chat.Usage{Input: 10, Output: 5, CacheRead: 70, CacheWrite5m: 20, CacheWrite1h: 10}},
			`[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"look"},{"type":"tool_use","id":"t1","name":"a","input":{"x":1}},{"type":"tool_use","id":"t2","name":"b","input":{}}]`},
		"anthropic cut":     {chat.Anthropic, `{"stop_reason":"max_tokens","content":[{"type":"text","text":"h"}]}`, chat.Completion{Message: chat.Message{Text: "h"}, Stop: chat.Length}, ""},
		"anthropic window":  {chat.Anthropic, `{"stop_reason":"model_context_window_exceeded","content":[{"type":"text","text":"h"}]}`, chat.Completion{Message: chat.Message{Text: "h"}, Stop: chat.Length}, ""},
		"anthropic refusal": {chat.Anthropic, `{"stop_reason":"refusal","content":[]}`, chat.Completion{Stop: chat.Filtered}, ""},
		"anthropic words":   {chat.Anthropic, `{"stop_reason":"end_turn","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`, chat.Completion{Message: chat.Message{Text: "ab"}, Stop: chat.Done}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _, _ := serve(t, c.api, 200, c.answer)
			got, err := m.Complete(t.Context(), chat.Request{Model: "m", Messages: []chat.Message{{Role: chat.User, Text: "go"}}})
			if err != nil {
				t.Fatal(err)
			}
			c.want.Role = chat.Assistant
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(chat.Message{}, "Native")); diff != "" {
				t.Errorf("completion (-want +got):\n%s", diff)
			}
			if c.native != "" && string(got.Native) != c.native {
				t.Errorf("goes back:\n%s\nwant\n%s", got.Native, c.native)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		answer  string
		headers []string
		want    chat.Error
	}{
		"limit in seconds":   {429, `{"error":{"message":"slow down"}}`, []string{"Retry-After", "7"}, chat.Error{Again: true, After: 7 * time.Second, Text: "the model's server answers HTTP 429: slow down"}},
		"limit in ms":        {429, `{}`, []string{"Retry-After-Ms", "1500", "Retry-After", "9"}, chat.Error{Again: true, After: 1500 * time.Millisecond, Text: "the model's server answers HTTP 429"}},
		"overloaded":         {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, nil, chat.Error{Again: true, Text: "the model's server answers HTTP 529: Overloaded"}},
		"HTML":               {502, `<html>bad gateway</html>`, nil, chat.Error{Again: true, Text: "the model's server answers HTTP 502"}},
		"error as a string":  {400, `{"error":"no such model"}`, nil, chat.Error{Text: "the model's server answers HTTP 400: no such model"}},
		"key quoted":         {400, `{"error":{"message":"bad sk-secret\n here"}}`, nil, chat.Error{Text: "the model's server answers HTTP 400: bad [key] here"}},
		"wrong key":          {401, `{"error":{"message":"Incorrect API key sk-s***"}}`, nil, chat.Error{Text: "the model's server refuses the key (HTTP 401); PAWGATE_CHAT_KEY sets it"}},
		"no money":           {429, `{"error":{"code":"insufficient_quota","message":"x"}}`, nil, chat.Error{Text: "the account at the model's provider has no money left"}},
		"told not to repeat": {500, `{}`, []string{"X-Should-Retry", "false"}, chat.Error{Text: "the model's server answers HTTP 500"}},
		"redirect":           {307, ``, []string{"Location", "http://127.0.0.1:1/"}, chat.Error{Text: "the model's server answers HTTP 307"}},
		"long":               {400, `{"error":{"message":"` + strings.Repeat("長", 200) + `"}}`, nil, chat.Error{Text: "the model's server answers HTTP 400: " + strings.Repeat("長", 100) + "…"}},
		"not JSON":           {200, `oops`, nil, chat.Error{Text: "the model's server does not answer as its API says; is PAWGATE_CHAT_API right?"}},
		"no choice":          {200, `{}`, nil, chat.Error{Again: true, Text: "the model's server answers without a choice"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _, _ := serve(t, chat.OpenAI, c.status, c.answer, c.headers...)
			_, err := m.Complete(t.Context(), chat.Request{})
			var got *chat.Error
			if !errors.As(err, &got) {
				t.Fatalf("error %v", err)
			}
			c.want.Status = c.status
			if diff := cmp.Diff(c.want, *got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// Trouble on the way says nothing of the address, and may pass; the end of the
// context is not trouble.
func TestBroken(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("{"))
	}))
	m, err := chat.New(chat.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // cut off, then gone
		_, err = m.Complete(t.Context(), chat.Request{})
		var got *chat.Error
		if !errors.As(err, &got) || !got.Again || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("error %v", err)
		}
		server.Close()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Complete(ended, chat.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A model that refuses max_tokens is asked with the new name from then on.
func TestNewNameOfTheLimit(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		asked = append(asked, string(b))
		if strings.Contains(string(b), `"max_tokens"`) {
			w.WriteHeader(400)
			_, _ = w.Write([]byte(`{"error":{"message":"Unsupported parameter: use 'max_completion_tokens' instead.","code":"unsupported_parameter"}}`))
			return
		}
		_, _ = w.Write([]byte(`{"choices":[{"message":{"content":"x"}}]}`))
	}))
	t.Cleanup(server.Close)
	m, err := chat.New(chat.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := m.Complete(t.Context(), chat.Request{MaxTokens: 9}); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) != 3 || !strings.Contains(asked[2], `"max_completion_tokens":9`) {
		t.Errorf("asked %q", asked)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg      chat.Config
		provider string
		want     string
	}{
		"openai without a server": {chat.Config{}, "", "PAWGATE_CHAT_URL must be set"},
		"anthropic's, no key":     {chat.Config{API: chat.Anthropic}, "", "PAWGATE_CHAT_KEY must be set"},
		"anthropic's own":         {chat.Config{API: chat.Anthropic, Key: "k"}, "anthropic", ""},
		"a provider":              {chat.Config{URL: "https://api.mistral.ai/v1", Key: "k"}, "mistral", ""},
		"this machine":            {chat.Config{URL: "http://127.0.0.1:1/v1", Key: "k"}, "local", ""},
		"named":                   {chat.Config{URL: "http://localhost:1", Provider: "own"}, "own", ""},
		"key in the clear":        {chat.Config{URL: "http://models.example/v1", Key: "k"}, "", "must be https"},
		"no URL":                  {chat.Config{URL: "file:///etc/passwd"}, "", "not an http or https URL"},
		"unknown API":             {chat.Config{API: "gopher"}, "", "must be openai or anthropic"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := chat.New(c.cfg)
			switch {
			case c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			case err == nil && m.Provider() != c.provider:
				t.Errorf("provider %s, want %s", m.Provider(), c.provider)
			}
		})
	}
}
