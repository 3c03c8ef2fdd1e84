//go:build linux || darwin

package database

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func TestParsePidfile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want pidfile
		ok   bool
	}{
		"ready":     {"421\n/d/data\n1764500000\n5432\n/d/run\n\n  5432001    131072\nready   \n", pidfile{421, endpoint{"/d/run", 5432}, "ready"}, true},
		"on a port": {"421\n/d/data\n1764500000\n20117\n\n127.0.0.1\n  5432001    131072\nstopping\n", pidfile{421, endpoint{"", 20117}, "stopping"}, true},
		"cut short": {"421\n/d/data\n", pidfile{pid: 421}, true},
		"one line":  {"421", pidfile{pid: 421}, true},
		"empty":     {"", pidfile{}, false},
		"garbage":   {"\x00\x00", pidfile{}, false},
		"init":      {"1\n", pidfile{}, false},
		"group":     {"-421\n", pidfile{}, false}, // Single-user mode writes its number so; kill would hit a whole group.
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := parsePidfile(tt.text)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(pidfile{}, endpoint{})); diff != "" || ok != tt.ok {
				t.Errorf("ok is %v, want %v (-want +got):\n%s", ok, tt.ok, diff)
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("x", maxSocketPath-len("//run/.s.PGSQL.5432"))
	for name, tt := range map[string]struct {
		dir    string
		socket bool
	}{
		"short":    {"/home/a/.local/share/pawgate/postgres", true},
		"space":    {"/Users/a/Library/Application Support/pawgate/postgres", true},
		"odd":      {"/data/50% done? #1 & more/postgres", true},
		"longest":  {long, true},
		"too long": {long + "x", false},
		"comma":    {"/data/a,b/postgres", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := home{dir: tt.dir}.endpoint()
			if (at.socket != "") != tt.socket {
				t.Fatalf("endpoint is %+v, want a socket: %v", at, tt.socket)
			}
			if !tt.socket {
				at.port = 20001
			}
			cfg, err := pgx.ParseConfig(at.url("pawgate", "s3cret", "pawgate"))
			check(t, err)
			want := []any{"127.0.0.1", uint16(at.port), "pawgate", "s3cret", "pawgate"}
			if tt.socket {
				want[0] = tt.dir + "/run"
			}
			if diff := cmp.Diff(want, []any{cfg.Host, cfg.Port, cfg.User, cfg.Password, cfg.Database}); diff != "" {
				t.Errorf("pgx reads another address (-want +got):\n%s", diff)
			}
			if u, err := url.Parse(at.url("a", "b", "c")); err != nil || strings.Contains(u.RawQuery, "+") {
				t.Errorf("url is %v (%v), want one without a plus", u, err)
			}
		})
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	h := home{dir: t.TempDir()}
	var first, again secret
	check(t, h.loadSecret(&first))
	check(t, h.loadSecret(&again))
	if first != again || len(first) < 20 {
		t.Errorf("secrets are %d and %d long and equal: %v; want the same one kept", len(first), len(again), first == again)
	}
	if app, admin := first.password(appRole), first.password(adminRole); app == admin || strings.Contains(app, string(first)) {
		t.Error("the roles' passwords give each other away")
	}
	check(t, os.WriteFile(h.path("password"), nil, 0o600))
	var empty secret
	if err := h.loadSecret(&empty); err == nil {
		t.Error("an empty password file is accepted")
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	h := home{dir: t.TempDir()}
	check(t, os.Mkdir(h.path("log"), 0o700))
	check(t, os.WriteFile(h.path("start.log"), []byte("redirecting\n"), 0o600))
	for i := range 7 {
		check(t, os.WriteFile(h.path(fmt.Sprintf("log/postgresql-2026120%d-100000.log", i)), []byte(strings.Repeat("old\n", 3000)+fmt.Sprintf("FATAL:  day %d\n", i)), 0o600))
	}
	check(t, os.WriteFile(h.path("log/notes"), []byte("mine"), 0o600))
	h.pruneLogs()
	want := []string{"postgresql-20261203-100000.log", "postgresql-20261204-100000.log", "postgresql-20261205-100000.log", "postgresql-20261206-100000.log"}
	if diff := cmp.Diff(want, h.logNames()); diff != "" {
		t.Errorf("logs kept (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(h.path("log/notes")); err != nil {
		t.Errorf("another file was removed: %v", err)
	}
	if got := h.tail(); !strings.HasSuffix(got, "FATAL:  day 6") {
		t.Errorf("tail is %q, want the newest log's end", got)
	}
	// A link planted by the server's account is not followed out of the folder.
	secret := t.TempDir() + "/secret"
	check(t, os.WriteFile(secret, []byte("top secret"), 0o600))
	check(t, os.Symlink(secret, h.path("log/postgresql-99.log")))
	if got := h.tail(); strings.Contains(got, "top secret") {
		t.Errorf("tail is %q, which lies outside the folder", got)
	}
}
