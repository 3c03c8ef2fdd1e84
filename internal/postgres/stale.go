package postgres

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// trusted is how long an idle connection is used without asking the server.
	trusted = time.Second
	// pingTimeout is what a server may take to answer that question. A
	// connection that a firewall forgot while the process was frozen answers
	// nothing at all, and without a bound a call would wait for it to its end.
	pingTimeout = time.Second
	// farewell is how long a broken connection keeps its place in the pool.
	// pgx waits 15 s for the other end to say goodbye, and a function has two
	// places.
	farewell = 500 * time.Millisecond
)

// suspect says which idle connections are pinged before they are used: those
// idle for long, and those on which something has arrived. A server says
// nothing to an idle client but that the session is over, and this look costs
// no round trip.
func suspect(_ context.Context, p pgxpool.ShouldPingParams) bool {
	return p.IdleDuration > trusted || arrived(p.Conn.PgConn().Conn())
}

// drop closes a connection that broke off, if the other end does not.
func drop(c *pgx.Conn) {
	if !c.IsClosed() {
		return // to be closed in order
	}
	select {
	case <-c.PgConn().CleanupDone():
	case <-time.After(farewell):
		_ = c.PgConn().Conn().Close() // it is broken already
	}
}

// arrived reports whether reading from the connection would not wait: there is
// data, an end, or an error.
func arrived(c net.Conn) bool {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = wrapped.NetConn()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	// Control, not Read: pgx may have a reader of its own waiting on this very
	// connection, and Read would queue behind it.
	readable := false
	err = raw.Control(func(fd uintptr) { readable = peek(fd) })
	return readable || err != nil
}
