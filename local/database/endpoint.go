//go:build linux || darwin

package database

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	appRole   = "pawgate"       // owns the database pawgate, may create databases, is no superuser
	adminRole = "pawgate_admin" // the superuser; used here only, to make the other
	dbName    = "pawgate"

	// socketPort is part of a socket's name only; no TCP port is taken.
	socketPort = 5432
	// maxSocketPath is the shortest limit among the systems served: sun_path holds 104 bytes with its NUL on macOS, 108
	// on Linux.
	maxSocketPath = 103
	// portPatience is how long a restart waits for its old port, which pools hold on to, before it takes another.
	portPatience = 5 * time.Second
)

// endpoint is where the server listens: a folder with its socket, or a port of 127.0.0.1.
type endpoint struct {
	socket string
	port   int
}

// endpoint is the socket in the folder run, unless its path is too long or would be split at a comma by the server or
// by a client.
func (h home) endpoint() endpoint {
	dir := h.path("run")
	if len(fmt.Sprintf("%s/.s.PGSQL.%d", dir, socketPort)) > maxSocketPath || strings.ContainsAny(dir, `,"`) {
		return endpoint{}
	}
	return endpoint{socket: dir, port: socketPort}
}

// url is for role in db. Over TCP it refuses any way to authenticate but SCRAM, in which the server proves that it
// knows the password too: a stranger who took the port while the server was down learns nothing.
func (e endpoint) url(role, password, db string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(role, password), Path: "/" + db}
	q := url.Values{}
	if e.socket != "" {
		q.Set("host", e.socket)
		q.Set("port", strconv.Itoa(e.port))
	} else {
		u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(e.port))
		q.Set("sslmode", "disable")
		q.Set("require_auth", "scram-sha-256")
	}
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // Clients decode a query's plus differently.
	return u.String()
}

// choosePort picks a free port of 127.0.0.1: the one had before, for as long as somebody else might let go of it, else
// one below the range that systems hand out for outgoing connections, so that none of those takes it during a restart.
func (h home) choosePort(ctx context.Context, before int) (int, error) {
	for waited := time.Duration(0); before != 0 && waited < portPatience; waited += 100 * time.Millisecond {
		if portFree(before) {
			return before, nil
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
	const low, count = 20000, 10000
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(h.dir)) // A hash never fails.
	first := int(hash.Sum32() % count)
	for i := range count {
		if port := low + (first+i)%count; portFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("choose port: none free on 127.0.0.1 from %d to %d", low, low+count-1)
}

func portFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
