package odoo_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"pawgate/internal/client/odoo/odootest"
	"pawgate/internal/postgres/postgrestest"
)

// BenchmarkOverhead measures what a tool adds to Odoo's own time (J83): the
// median of odoo_search less that of the same request sent bare, one after the
// other against the fake, so that what else the machine does hits both.
func BenchmarkOverhead(b *testing.B) {
	for _, major := range []int{18, 19} {
		b.Run(map[int]string{18: "jsonrpc", 19: "json2"}[major], func(b *testing.B) {
			t := setupOn(b, major, postgrestest.Clone(b))
			t.ok("odoo_search", `{"model":"res.partner","fields":["name","country_id"]}`) // finds the fields
			var through, bare []time.Duration
			for b.Loop() {
				began := time.Now()
				t.ok("odoo_search", `{"model":"res.partner","fields":["name","country_id"]}`)
				through = append(through, time.Since(began))
				began = time.Now()
				t.bare(b, major)
				bare = append(bare, time.Since(began))
			}
			slices.Sort(through)
			slices.Sort(bare)
			n := len(bare)
			b.ReportMetric(milliseconds(through[n/2]-bare[n/2]), "overhead-p50-ms")
			b.ReportMetric(milliseconds(through[n*99/100]-bare[n*99/100]), "overhead-p99-ms")
		})
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// bare sends the search as odoo_search does, and nothing else.
func (b *bench) bare(t testing.TB, major int) {
	t.Helper()
	domain, options := []any{}, object{"fields": []string{"id", "name", "country_id"}, "limit": 21, "offset": 0, "order": "id desc", "context": object{"bin_size": true}}
	path, body := "/jsonrpc", object{"jsonrpc": "2.0", "method": "call", "id": 1, "params": object{"service": "object", "method": "execute_kw",
		"args": []any{b.Database, 2, odootest.Key, "res.partner", "search_read", []any{domain}, options}}}
	if major >= 19 {
		options["domain"] = domain
		path, body = "/json/2/res.partner/search_read", options
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+path, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"bearer " + odootest.Key}, "X-Odoo-Database": {b.Database}}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(said, []byte("Deco Addict")) {
		t.Fatalf("the bare request: %d %s %v", answer.StatusCode, said, err)
	}
}
