package model_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"pawgate/internal/client/hub"
	"pawgate/internal/client/llama"
	"pawgate/internal/client/llama/gguf/gguftest"
	"pawgate/internal/client/llama/hardware"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// fakeHub is a hub with one repository, org/tiny-GGUF: tiny.gguf is real, the
// others are only listed.
type fakeHub struct {
	*httptest.Server
	tiny []byte
	// hold, when set, keeps downloads from going on.
	hold chan struct{}
}

func newHub(t *testing.T) *fakeHub {
	t.Helper()
	h := &fakeHub{tiny: gguftest.Tiny()}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const gib = 1 << 30
	file := func(name string, size int, sum string) string {
		return fmt.Sprintf(`{"rfilename":%q,"size":%d,"lfs":{"sha256":%q,"size":%d}}`, name, size, sum, size)
	}
	sum := sha256.Sum256(h.tiny)
	other := strings.Repeat("ab", 32)
	switch {
	case r.URL.Path == "/api/models" && r.URL.Query().Get("search") == "tiny":
		fmt.Fprint(w, `[{"id":"org/tiny-GGUF"},{"id":"org/broken"},{"id":"Qwen/empty"}]`)
	case r.URL.Path == "/api/models":
		fmt.Fprint(w, `[]`)
	case strings.HasPrefix(r.URL.Path, "/api/models/org/tiny-GGUF"):
		fmt.Fprintf(w, `{"sha":%q,"downloads":9,"gguf":{"total":1000000000},"siblings":[%s]}`, commit, strings.Join([]string{
			file("tiny.gguf", len(h.tiny), hex.EncodeToString(sum[:])), file("tiny-F16.gguf", 9*gib, other), file("tiny-Q4_K_M.gguf", 2*gib, other),
			file("tiny-IQ2_XXS.gguf", gib, other), file("mmproj-F16.gguf", 100, other),
			file("BF16/tiny-BF16-00001-of-00002.gguf", 9*gib, other), file("BF16/tiny-BF16-00002-of-00002.gguf", 9*gib, other)}, ","))
	case strings.HasPrefix(r.URL.Path, "/api/models/Qwen/empty"):
		fmt.Fprintf(w, `{"sha":%q,"siblings":[{"rfilename":"README.md"}]}`, commit)
	case r.URL.Path == "/org/tiny-GGUF/resolve/"+commit+"/tiny.gguf":
		_, _ = w.Write(h.tiny[:10])
		if h.hold != nil {
			w.(http.Flusher).Flush()
			select {
			case <-h.hold:
			case <-r.Context().Done():
				return
			}
		}
		_, _ = w.Write(h.tiny[10:])
	default:
		http.NotFound(w, r)
	}
}

// setupAt is the category with a hub, on a host with eight gigabytes free.
func setupAt(t *testing.T, h *fakeHub) bench {
	t.Helper()
	b := setupHub(t, llama.Config{Server: "none"}, hub.Config{URL: h.URL})
	b.host.Hardware = hardware.Prober{OS: "linux", Run: nowhere, Root: fstest.MapFS{
		"proc/meminfo": {Data: []byte("MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")}}}
	return b
}
