//go:build unix

package postgres

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"
)

// TestArrived: a look at a connection tells silence from news, takes nothing
// away, and never waits; also through TLS.
func TestArrived(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*testing.T) (net.Conn, net.Conn){"plain": plain, "tls": encrypted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far := connect(t)
			if arrived(near) {
				t.Error("something arrived on a silent connection")
			}
			withReader(t, near, far)
			if _, err := far.Write([]byte("FATAL")); err != nil {
				t.Fatal(err)
			}
			wantArrival(t, near, "data")
			b := make([]byte, 5)
			if n, err := near.Read(b); err != nil || string(b[:n]) != "FATAL" {
				t.Errorf("read %q, %v after the look", b[:n], err)
			}
			if arrived(near) {
				t.Error("what was read arrived again")
			}
			far.Close()
			wantArrival(t, near, "the end")
			near.Close()
			if !arrived(near) {
				t.Error("a connection closed here looks alive")
			}
		})
	}
	t.Run("no socket", func(t *testing.T) {
		a, b := net.Pipe()
		defer a.Close()
		b.Close()
		if arrived(a) {
			t.Error("a pipe cannot be looked at")
		}
	})
}

// withReader: pgx leaves a reader on a connection when a write was slow. The
// look does not wait for it.
func withReader(t *testing.T, near, far net.Conn) {
	t.Helper()
	read := make(chan struct{})
	go func() { defer close(read); _, _ = near.Read(make([]byte, 1)) }()
	time.Sleep(20 * time.Millisecond) // until the reader waits
	looked := make(chan bool, 1)
	go func() { looked <- arrived(near) }()
	select {
	case news := <-looked:
		if news {
			t.Error("something arrived on a silent connection with a reader on it")
		}
	case <-time.After(5 * time.Second):
		t.Error("the look waits for a reader")
	}
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-read
}

func wantArrival(t *testing.T, c net.Conn, what string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !arrived(c); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not show", what)
		}
	}
}

func plain(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

func encrypted(t *testing.T) (net.Conn, net.Conn) {
	t.Helper()
	near, far := plain(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	client := tls.Client(near, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // both ends are this test
	// As in a session of PostgreSQL, the server speaks first after the
	// handshake, and that takes the session tickets along.
	go func() { _, _ = server.Write([]byte("ready")) }()
	if _, err := client.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	return client, server
}
