package server_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pawgate/internal/settings"
	"pawgate/local/server"
)

// TestLoopbackByDefault: CVE-2026-23744: nobody but this machine is served
// unless somebody says so.
func TestLoopbackByDefault(t *testing.T) {
	t.Parallel()
	for _, s := range settings.List(server.Settings{}) {
		if s.Name == "PAWGATE_ADDR" && s.Default != "127.0.0.1:8080" {
			t.Errorf("the default address is %s", s.Default)
		}
	}
}

func TestLoopbackHosts(t *testing.T) {
	t.Parallel()
	loopback := []string{"localhost", "127.0.0.1", "[::1]"}
	for addr, want := range map[string][]string{
		"127.0.0.1:8080": loopback, "localhost:1": loopback, "[::1]:80": loopback, "127.8.8.8:1": loopback,
		"0.0.0.0:8080": nil, "10.0.0.1:80": nil, ":8080": nil, "nonsense": nil,
	} {
		if diff := cmp.Diff(want, server.LoopbackHosts(addr)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", addr, diff)
		}
	}
}
