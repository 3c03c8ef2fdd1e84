package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// session is a running pump with a client's hands on both ends.
type session struct {
	t    *testing.T
	in   *io.PipeWriter
	out  chan string
	log  *logBuffer
	stop context.CancelFunc
	done chan error
}

// start runs a pump; o's In, Out and Log are the session's own.
func start(t *testing.T, o Options) *session {
	t.Helper()
	r, w := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	s := &session{t: t, in: w, out: make(chan string, 4096), log: &logBuffer{}, stop: stop, done: make(chan error, 1)}
	o.In, o.Out = r, lineSink{t, s.out}
	o.Log = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	go func() {
		s.done <- Run(ctx, o)
		close(s.out)
	}()
	t.Cleanup(func() { stop(); w.Close() })
	return s
}

// local is the options for a handler in this process.
func local(h http.HandlerFunc) Options { return Options{Transport: InProcess(h)} }

func (s *session) send(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(s.in, line+"\n"); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *session) recv() string {
	s.t.Helper()
	line, ok := <-s.out
	if !ok {
		s.t.Fatal("the pump ended before this message")
	}
	return line
}

// want receives one message and compares it.
func (s *session) want(line string) {
	s.t.Helper()
	if diff := cmp.Diff(line, s.recv()); diff != "" {
		s.t.Fatalf("message (-want +got):\n%s", diff)
	}
}

// end closes the input and returns what was still written, and Run's error.
func (s *session) end() ([]string, error) {
	s.in.Close()
	var rest []string
	for line := range s.out {
		rest = append(rest, line)
	}
	return rest, <-s.done
}

// wantEnd ends the session and expects nothing more from it.
func (s *session) wantEnd() {
	s.t.Helper()
	rest, err := s.end()
	if len(rest) > 0 || err != nil {
		s.t.Fatalf("end: got messages %q, error %v; want none", rest, err)
	}
}

// lineSink is a client's eye: every write must be one line of JSON.
type lineSink struct {
	t   *testing.T
	out chan<- string
}

func (s lineSink) Write(b []byte) (int, error) {
	line, ok := bytes.CutSuffix(b, []byte("\n"))
	if !ok || bytes.ContainsAny(line, "\r\n") || !json.Valid(line) {
		s.t.Errorf("stdout got %q, want one line of JSON", b)
	}
	s.out <- string(line)
	return len(b), nil
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// echo answers every request with its own body as result, notifications with
// 202.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id := requestID(body)
	if id == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(withID(id, "result", body))
}

func requestID(body []byte) json.RawMessage {
	object, _ := members(body)
	if _, ok := object["method"]; !ok {
		return nil
	}
	return object["id"]
}

// echoed is what echo answers to a line.
func echoed(id, line string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + line + `}` }

func call1(id, method string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`
}

func TestRunFraming(t *testing.T) {
	t.Parallel()
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	refusal := func(id, code, text string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + code + `,"message":"` + text + `"}}`
	}
	long := `{"jsonrpc":"2.0","method":"tools/call","params":{"id":7,"a":"` + strings.Repeat("x", 2000) + `"}`
	tooLong := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":"message longer than 1024 bytes, send a smaller one","data":{"reason":"too_large"}}}`
	}
	batch := refusal("null", "-32600", "batches are not supported, send one message per line")
	notObject := refusal("null", "-32600", "a message must be a JSON object")
	at := func(n string) string { return refusal("null", "-32700", "parse error: not valid JSON at byte "+n) }
	tests := []struct {
		name, in string
		want     []string
	}{
		{"one line, no handshake", list + "\n", []string{echoed("1", list)}},
		{"last line without newline", list, []string{echoed("1", list)}},
		{"CRLF", list + "\r\n", []string{echoed("1", list)}},
		{"empty lines and spaces", "\n\r\n  \t\n" + list + "\n\n", []string{echoed("1", list)}},
		{"byte order mark", "\xef\xbb\xbf" + list + "\n", []string{echoed("1", list)}},
		{"nothing", "", nil},
		{"MCP-06 string id stays a string", call1(`"1"`, "ping"), []string{echoed(`"1"`, call1(`"1"`, "ping"))}},
		{"MCP-12 every digit kept",
			`{"jsonrpc":"2.0","id":9007199254740993,"method":"m","params":{"chat":1234567890123456789}}`,
			[]string{echoed("9007199254740993", `{"jsonrpc":"2.0","id":9007199254740993,"method":"m","params":{"chat":1234567890123456789}}`)}},
		{"truncated JSON", `{"jsonrpc":"2.0","id":1,"method":"tools/li`, []string{at("42")}},
		{"no JSON", "hello\n", []string{refusal("null", "-32700", "parse error: not valid JSON")}},
		{"a number", "5\n", []string{notObject}},
		{"a string", `"tools/list"` + "\n", []string{notObject}},
		{"MCP-04 batch", "[" + list + "]\n", []string{batch}},
		{"empty batch", "[]\n", []string{batch}},
		{"MCP-16 invalid UTF-8", `{"jsonrpc":"2.0","id":1,"method":"m` + "\xff" + `"}`, []string{refusal("null", "-32700", "parse error: not valid UTF-8")}},
		{"MCP-17 raw NUL", `{"jsonrpc":"2.0","id":1,"method":"a` + "\x00" + `"}`, []string{at("36")}},
		{"MCP-29 second value on the line", list + list, []string{at("47")}},
		{"MCP-29 stray bracket", list + "]", []string{at("47")}},
		{"MCP-29 stray word", list + " x", []string{at("48")}},
		{"too long, id last", long + `,"id":2}` + "\n" + list + "\n", []string{tooLong("2"), echoed("1", list)}},
		{"too long, id first", `{"id":"a b","x":"` + strings.Repeat("y", 2000) + `"}` + "\n" + list, []string{tooLong(`"a b"`), echoed("1", list)}},
		{"too long, no id", long + "}\n" + list, []string{tooLong("null"), echoed("1", list)}},
		{"too long, two ids", `{"id":1,` + long[1:] + `,"id":2}`, []string{tooLong("null")}},
		{"too long by one byte", strings.Repeat("1", 1025) + "\n" + list, []string{tooLong("null"), echoed("1", list)}},
		{"just short enough", strings.Repeat("1", 1024) + "\n", []string{notObject}},
		{"no method goes to the endpoint", `{"jsonrpc":"2.0"}`, []string{
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"HTTP 202 Accepted from the local router: the request was accepted but not answered","data":{"reason":"bad_answer","http_status":202}}}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := make(chan string, 16)
			o := local(echo)
			o.In, o.Out, o.MaxLine, o.InFlight = strings.NewReader(tt.in), lineSink{t, out}, 1024, 1
			if err := Run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			close(out)
			var got []string
			for line := range out {
				got = append(got, line)
			}
			if diff := cmp.Diff(sorted(tt.want), sorted(got)); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunBadInputLives(t *testing.T) {
	t.Parallel()
	refused := []struct{ name, line string }{
		{"MCP-19 10001 levels", `{"id":1,"method":"m","params":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + "}"},
		{"MCP-19 7 MiB of brackets", strings.Repeat("[", 7<<20)},
	}
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, local(echo))
			s.send(tt.line)
			if got := s.recv(); !strings.Contains(got, `"id":null,"error":{"code":-32700`) {
				t.Errorf("got %s, want -32700", got)
			}
			s.send(call1("2", "ping"))
			s.want(echoed("2", call1("2", "ping")))
			s.wantEnd()
		})
	}
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}
