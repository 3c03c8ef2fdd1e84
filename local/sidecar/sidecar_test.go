package sidecar_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"pawgate/internal/caller"
	"pawgate/internal/client/llama"
	"pawgate/internal/postgres"
	"pawgate/internal/postgres/postgrestest"
	"pawgate/internal/serve"
	"pawgate/internal/tool"
	"pawgate/internal/tool/tooltest"
	"pawgate/local/sidecar"
)

// running is a sidecar on a port of its own.
type running struct {
	url    string
	db     *pgxpool.Pool
	signer caller.Signer
	stop   func() error
}

func keys(t *testing.T) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

func config(t *testing.T, public ed25519.PublicKey, databaseURL string) sidecar.Config {
	t.Helper()
	return sidecar.Config{
		Serve: serve.Config{PublicKey: caller.FormatKey(public)}, Postgres: postgres.Config{URL: databaseURL},
		Llama: llama.Config{Data: t.TempDir()}, Addr: "127.0.0.1:0", ID: "test-host",
	}
}

func start(t *testing.T, adjust func(*sidecar.Config)) running {
	t.Helper()
	public, private := keys(t)
	url := postgrestest.CloneURL(t)
	cfg := config(t, public, url)
	if adjust != nil {
		adjust(&cfg)
	}
	ctx, cancel := context.WithCancel(t.Context())
	addr, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() { done <- sidecar.Run(ctx, cfg, slog.New(slog.DiscardHandler), func(a net.Addr) { addr <- a }) }()
	r := running{db: postgrestest.Pool(t, postgres.Config{URL: url}), signer: caller.NewSigner(private, time.Now)}
	stopped := false
	r.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { _ = r.stop() })
	select {
	case a := <-addr:
		scheme := "http://"
		if cfg.CertFile != "" {
			scheme = "https://"
		}
		r.url = scheme + a.String()
	case err := <-done:
		stopped = true
		t.Fatalf("the sidecar did not start: %v", err)
	}
	return r
}

func call(t *testing.T, signer caller.Signer, category, name, args string) tool.Call {
	t.Helper()
	signed, err := signer.Sign(tooltest.Who("a"), category, name, []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return tool.Call{V: tool.Version, RequestID: "r1", Tool: name, Arguments: json.RawMessage(args),
		Deadline: time.Now().Add(10 * time.Second), Assertion: signed}
}

func post(t *testing.T, client *http.Client, url string, c tool.Call) (int, string) {
	t.Helper()
	body, err := tool.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// A category called without a valid assertion for exactly this call refuses.
func TestRun_assertion(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	_, stranger := keys(t)
	expired := caller.NewSigner(stranger, func() time.Time { return time.Now().Add(-time.Hour) })
	change := func(edit func(*tool.Call)) tool.Call {
		c := call(t, r.signer, "model", "hardware_info", `{}`)
		edit(&c)
		return c
	}
	for _, c := range []struct {
		name, category string
		call           tool.Call
		want           string // part of the answer
	}{
		{"valid", "model", call(t, r.signer, "model", "hardware_info", `{}`), `"ok":{`},
		{"missing", "model", change(func(c *tool.Call) { c.Assertion = "" }), "denied"},
		{"forged", "model", call(t, caller.NewSigner(stranger, time.Now), "model", "hardware_info", `{}`), "denied"},
		{"expired", "model", call(t, expired, "model", "hardware_info", `{}`), "denied"},
		{"other_tool", "model", change(func(c *tool.Call) { c.Tool = "model_list" }), "denied"},
		{"other_arguments", "model", change(func(c *tool.Call) { c.Arguments = json.RawMessage(`{"x":1}`) }), "denied"},
		{"other_category", "model", call(t, r.signer, "inference", "hardware_info", `{}`), "denied"},
		{"sent_to_another_category", "inference", call(t, r.signer, "model", "hardware_info", `{}`), "denied"},
		{"unsigned_caller", "model", change(func(c *tool.Call) { c.Assertion, c.Caller = "", &caller.Caller{Agent: "a"} }), "denied"},
		{"tampered", "model", change(func(c *tool.Call) { c.Assertion = c.Assertion[:len(c.Assertion)-4] + "AAAA" }), "denied"},
		{"no_algorithm", "model", change(func(c *tool.Call) {
			parts := strings.Split(c.Assertion, ".")
			c.Assertion = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + parts[1] + "."
		}), "denied"},
		{"unknown_category", "memory", call(t, r.signer, "memory", "memory_search", `{}`), "not_found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, answer := post(t, http.DefaultClient, r.url+"/call/"+c.category, c.call)
			if !strings.Contains(answer, c.want) {
				t.Errorf("got %s, want %s", answer, c.want)
			}
		})
	}
}

// The exception for unsigned calls is for functions; here it opens nothing.
func TestRun_SAM_local_opens_nothing(t *testing.T) {
	t.Parallel()
	public, _ := keys(t)
	cfg := config(t, public, "postgres://127.0.0.1:1/none")
	cfg.Serve = serve.Config{SAMLocal: true}
	err := sidecar.Run(t.Context(), cfg, slog.New(slog.DiscardHandler), nil)
	if err == nil || !strings.Contains(err.Error(), "PAWGATE_ASSERTION_PUBLIC_KEY") {
		t.Errorf("got %v, want a refusal to start without a key", err)
	}
}

func TestRun_refuses_to_start(t *testing.T) {
	t.Parallel()
	public, _ := keys(t)
	for _, c := range []struct {
		name   string
		adjust func(*sidecar.Config)
		want   string
	}{
		{"every_address_without_TLS", func(c *sidecar.Config) { c.Addr = ":0" }, "TLS"},
		{"IPv6_every_address", func(c *sidecar.Config) { c.Addr = "[::]:0" }, "TLS"},
		{"network_address", func(c *sidecar.Config) { c.Addr = "10.1.2.3:8181" }, "PAWGATE_SIDECAR_CERT"},
		{"no_address", func(c *sidecar.Config) { c.Addr = "8181" }, "host:port"},
		{"no_key", func(c *sidecar.Config) { c.Serve.PublicKey = "" }, "PAWGATE_ASSERTION_PUBLIC_KEY"},
		{"broken_key", func(c *sidecar.Config) { c.Serve.PublicKey = "AAAA" }, "PAWGATE_ASSERTION_PUBLIC_KEY"},
		{"no_database", func(c *sidecar.Config) { c.Postgres.URL = "" }, "DATABASE_URL"},
		{"certificate_without_key", func(c *sidecar.Config) { c.CertFile = "x" }, "PAWGATE_SIDECAR_CERT_KEY"},
		{"missing_certificate", func(c *sidecar.Config) { c.CertFile, c.KeyFile = "/nowhere/c", "/nowhere/k" }, "read the certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := config(t, public, "postgres://127.0.0.1:1/none")
			c.adjust(&cfg)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err := sidecar.Run(ctx, cfg, slog.New(slog.DiscardHandler), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to name %s", err, c.want)
			}
		})
	}
}

func TestRun_port_taken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	public, _ := keys(t)
	cfg := config(t, public, "postgres://127.0.0.1:1/none")
	cfg.Addr = l.Addr().String()
	if err := sidecar.Run(t.Context(), cfg, slog.New(slog.DiscardHandler), nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("got %v", err)
	}
}

func TestRun_TLS(t *testing.T) {
	t.Parallel()
	cert, key, roots := selfSigned(t)
	r := start(t, func(c *sidecar.Config) { c.CertFile, c.KeyFile, c.Addr = cert, key, "0.0.0.0:0" })
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(r.url, "https://"))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	if code, answer := post(t, client, "https://127.0.0.1:"+port+"/call/model", call(t, r.signer, "model", "hardware_info", `{}`)); code != 200 || !strings.Contains(answer, `"ok"`) {
		t.Errorf("over TLS: %d %s", code, answer)
	}
	if resp, err := http.Get("http://127.0.0.1:" + port + "/healthz"); err == nil {
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("it answers in the clear too")
		}
	}
}

// It says what it is at start, and that it is gone at the end.
func TestRun_reports(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	read := func() (categories []string, state string, memory int64) {
		deadline := time.Now().Add(10 * time.Second)
		for time.Now().Before(deadline) {
			err := r.db.QueryRow(t.Context(), `select categories, report->>'state', (report->'hardware'->'memory'->>'total_bytes')::bigint
				from sidecars where id = 'test-host' and reported_at > now() - interval '1 minute'`).Scan(&categories, &state, &memory)
			if err == nil {
				return categories, state, memory
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Fatal("no report in 10 s")
		return nil, "", 0
	}
	categories, state, memory := read()
	if strings.Join(categories, " ") != "model inference llamafile" || state != "running" || memory <= 0 {
		t.Errorf("report: %v %s %d", categories, state, memory)
	}
	if err := r.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, state, _ = read(); state != "stopped" {
		t.Errorf("after its end the report says %s", state)
	}
}

// A database that is away keeps nobody from using the host.
func TestRun_without_database(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *sidecar.Config) { c.Postgres.URL = "postgres://127.0.0.1:1/none" })
	if _, answer := post(t, http.DefaultClient, r.url+"/call/model", call(t, r.signer, "model", "hardware_info", `{}`)); !strings.Contains(answer, `"ok"`) {
		t.Errorf("hardware_info: %s", answer)
	}
	if _, answer := post(t, http.DefaultClient, r.url+"/call/inference", call(t, r.signer, "inference", "inference_status", `{}`)); !strings.Contains(answer, "unavailable") {
		t.Errorf("inference_status: %s", answer)
	}
}
