package stdio

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const benchLine = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_search","arguments":{"query":"backup","limit":10}}}`

// instant answers at once with a result of moderate size.
func instant(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"status\":\"ok\",\"memories\":[]}"}],"structuredContent":{"status":"ok","memories":[]}}}`)
}

// BenchmarkCall is what one call costs with an instant handler: called
// directly, through the pump in this process, and through the pump and HTTP on
// loopback. One call at a time, so the figure is latency.
func BenchmarkCall(b *testing.B) {
	b.Run("handler", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w := httptest.NewRecorder()
			instant(w, httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(benchLine)))
		}
	})
	b.Run("pump", func(b *testing.B) {
		benchPump(b, Options{Transport: InProcess(http.HandlerFunc(instant))})
	})
	b.Run("bridge", func(b *testing.B) {
		srv := httptest.NewServer(http.HandlerFunc(instant))
		defer srv.Close()
		benchPump(b, Options{URL: srv.URL + "/mcp", Key: testKey})
	})
}

func benchPump(b *testing.B, o Options) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	o.In, o.Out = inR, outW
	done := make(chan error, 1)
	go func() { done <- Run(b.Context(), o) }()
	answers := bufio.NewReader(outR)
	line := []byte(benchLine + "\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := inW.Write(line); err != nil {
			b.Fatal(err)
		}
		if _, err := answers.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	inW.Close()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
