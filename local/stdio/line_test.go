package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readAll drains a lineReader: lines, and for each one too long a note of the
// id found in it.
func readAll(r io.Reader, limit int) (got []string, err error) {
	lines := newLineReader(r, 64<<10, limit)
	for {
		line, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return got, nil
		case errors.Is(err, errLineTooLong):
			id, err := lines.skip(line)
			if err != nil {
				return got, err
			}
			got = append(got, "too long "+string(id))
		case err != nil:
			return got, err
		default:
			got = append(got, string(line))
		}
	}
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 200_000) // more than the buffer
	tests := []struct {
		name, in string
		limit    int
		want     []string
	}{
		{"nothing", "", 8, nil},
		{"one", "ab\n", 8, []string{"ab"}},
		{"no newline", "ab\ncd", 8, []string{"ab", "cd"}},
		{"CRLF", "ab\r\ncd\r\n", 8, []string{"ab", "cd"}},
		{"empty lines", "\n\r\n\n", 8, []string{"", "", ""}},
		{"carriage return within", "a\rb\n", 8, []string{"a\rb"}},
		{"longer than the buffer", big + "\ny\n", 1 << 20, []string{big, "y"}},
		{"at the limit", "12345678\n9\n", 8, []string{"12345678", "9"}},
		{"at the limit, CRLF", "12345678\r\n12345678\r", 8, []string{"12345678", "12345678"}},
		{"over the limit", "123456789\n9\n", 8, []string{"too long ", "9"}},
		{"over the limit at the end", "a\n123456789", 8, []string{"a", "too long "}},
		{"twice over", `{"id":1,"x":"` + big + "\"}\n" + `{"x":"` + big + `","id":"b"}`, 8, []string{"too long 1", `too long "b"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in)), iotest.DataErrReader(strings.NewReader(tt.in))} {
				got, err := readAll(r, tt.limit)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("lines (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestLineReaderErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, in := range []string{"", "ab", strings.Repeat("x", 100)} {
		_, err := readAll(io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken)), 8)
		if !errors.Is(err, broken) {
			t.Errorf("%d bytes, then an error: got %v, want it", len(in), err)
		}
	}
}

// A line of 100 MB takes little time and no memory. Not parallel: it counts what
// the process allocates.
func TestLongLine(t *testing.T) {
	t.Run("MCP-19 100 MB of brackets", func(t *testing.T) {
		checkLongLine(t, `{"id":5,"x":`, '[', "", "too long ")
	})
	t.Run("MCP-20 100 MB of text", func(t *testing.T) {
		checkLongLine(t, `{"params":{"x":"`, 'x', `"},"id":6}`, "too long 6")
	})
}

func checkLongLine(t *testing.T, head string, fill byte, tail, want string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	in := io.MultiReader(strings.NewReader(head), io.LimitReader(repeat(fill), 100<<20), strings.NewReader(tail+"\n{}\n"))
	got, err := readAll(in, 1<<20)
	runtime.ReadMemStats(&after)
	if diff := cmp.Diff([]string{want, "{}"}, got); diff != "" || err != nil {
		t.Errorf("error %v, lines (-want +got):\n%s", err, diff)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("allocated %d bytes in all, want a few times the limit at most", took)
	}
}

type repeat byte

func (b repeat) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte{byte(b)}, min(len(p), 16)))
	for n := 16; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
	return len(p), nil
}

func TestIDScanner(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{`{"id":1}`, "1"},
		{` { "id" : "a\"b" , "x":1}`, `"a\"b"`},
		{`{"x":{"id":2},"id":3}`, "3"},
		{`{"x":[{"id":2}],"y":"\"id\":4","id":3,"z":"`, "3"},
		{`{"x":"a,\"id\":9"}`, ""},
		{`{"params":{"id":2}}`, ""},
		{`{"id":1,"id":2}`, ""},
		{`{"id":{"a":1}}`, ""},
		{`{"id":[1]}`, ""},
		{`{"id":1e3}`, ""},
		{`{"id":1.5}`, ""},
		{`{"id":null}`, ""},
		{`{"id":true}`, ""},
		{`{"id":-7}`, "-7"},
		{`{"id":9007199254740993,"x":"`, "9007199254740993"},
		{`{"Id":1,"ID":2,"idx":3,"i":4}`, ""},
		{`{"id":"` + strings.Repeat("x", maxID) + `"}`, ""},
		{`[{"id":1}]`, ""},
		{`"id":1`, ""},
		{``, ""},
	}
	for _, tt := range tests {
		var whole, bytewise idScanner
		whole.feed([]byte(tt.in))
		for _, b := range []byte(tt.in) {
			bytewise.feed([]byte{b})
		}
		if string(whole.id()) != tt.want || string(bytewise.id()) != tt.want {
			t.Errorf("id of %s = %q, %q; want %q", clip(tt.in, 60), whole.id(), bytewise.id(), tt.want)
		}
	}
}

// FuzzLineReader: whatever comes in and however it is cut, the lines are those
// of bytes.Split, the long ones are skipped whole, and the pump's own look at
// each line agrees with encoding/json and answers what it refuses in one line.
func FuzzLineReader(f *testing.F) {
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n\r\n[1]\n{\"id\":\"a\xff\"}"), uint8(16))
	f.Add([]byte("{\"id\":7,\"x\":\"................................................................\"}\n"), uint8(8))
	f.Add([]byte(`{"id":1,"id":{},"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"\u0000"},"method":"tools/call"}`), uint8(255))
	f.Add([]byte("00\r"), uint8(2))
	f.Add([]byte("\x00\n\"\\\n{\"id\""), uint8(0))
	f.Fuzz(func(t *testing.T, in []byte, limit uint8) {
		got, err := readAll(iotest.HalfReader(bytes.NewReader(in)), int(limit))
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Split(in, []byte("\n"))
		if last := len(want) - 1; len(want[last]) == 0 {
			want = want[:last]
		}
		if len(got) != len(want) {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
		for i, line := range want {
			line = bytes.TrimSuffix(line, []byte("\r"))
			if len(line) <= int(limit) {
				if got[i] != string(line) {
					t.Fatalf("line %d = %q, want %q", i, got[i], line)
				}
			}
			checkScan(t, line)
			checkMessage(t, line)
		}
	})
}

func checkScan(t *testing.T, line []byte) {
	t.Helper()
	var s idScanner
	s.feed(line)
	id := s.id()
	if id != nil && !usableID(id) {
		t.Fatalf("id %q of %q is not usable", id, line)
	}
	object, err := members(line)
	if err != nil || object == nil || s.found != 1 || bytes.Contains(line, []byte(`\u`)) {
		return
	}
	if want := object["id"]; usableID(want) && string(id) != string(want) {
		t.Fatalf("id of %q = %q, want %q", line, id, want)
	}
}

func checkMessage(t *testing.T, line []byte) {
	t.Helper()
	if line = bytes.Trim(line, " \t\r"); len(line) == 0 {
		return
	}
	m := readMessage(line)
	if m.refusal != nil {
		if !json.Valid(m.refusal) || bytes.ContainsAny(m.refusal, "\n\r") {
			t.Fatalf("refusal of %q is %q", line, m.refusal)
		}
		return
	}
	if line[0] != '{' || !json.Valid(line) || !bytes.Equal(m.body, line) {
		t.Fatalf("passed on %q as %q", line, m.body)
	}
	for _, value := range []string{m.meta, m.method, m.name} {
		if enc := encodeHeader(value); strings.ContainsFunc(enc, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("header value %q", enc)
		}
	}
	idKey(m.id)
}

// FuzzEvents: no stream makes the reader fail, hang or exceed its limit, and a
// stream that the writer's side would make comes out as it went in.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: {}\n\n: c\r\ndata: a\rdata: b\r\n\r\ndata"), "x")
	f.Add([]byte("\xef\xbb\xbfdata:\n\ndata:  two\n\n"), "{\"a\":1}")
	f.Fuzz(func(t *testing.T, stream []byte, text string) {
		events := newEventReader(iotest.HalfReader(bytes.NewReader(stream)), 64)
		for {
			data, err := events.next()
			if err != nil {
				break
			}
			if len(data) == 0 || len(data) > 64 || bytes.ContainsRune(data, '\r') {
				t.Fatalf("event %q", data)
			}
		}
		if strings.ContainsAny(text, "\r\n") || text == "" || len(text) > 64 {
			return
		}
		events = newEventReader(strings.NewReader("data: "+text+"\n\n"), 64)
		if data, err := events.next(); err != nil || string(data) != text {
			t.Fatalf("event = %q, %v; want %q", data, err, text)
		}
	})
}
