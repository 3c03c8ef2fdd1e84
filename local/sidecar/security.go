package sidecar

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// security decides how the address may be served: with the certificate, or
// without one on loopback only. nil means without.
func (cfg Config) security() (*certificate, error) {
	if (cfg.CertFile == "") != (cfg.KeyFile == "") {
		return nil, errors.New("set both PAWGATE_SIDECAR_CERT and PAWGATE_SIDECAR_CERT_KEY, or neither")
	}
	if cfg.CertFile != "" {
		c := &certificate{certFile: cfg.CertFile, keyFile: cfg.KeyFile}
		if _, err := c.current(nil); err != nil {
			return nil, err
		}
		return c, nil
	}
	addr, err := net.ResolveTCPAddr("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("PAWGATE_SIDECAR_ADDR %q is no address: write host:port", cfg.Addr)
	}
	if addr.IP == nil || !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("PAWGATE_SIDECAR_ADDR %s can be reached from the network: "+
			"set PAWGATE_SIDECAR_CERT and PAWGATE_SIDECAR_CERT_KEY for TLS, or listen on 127.0.0.1", cfg.Addr)
	}
	return nil, nil
}

// certificate is a key pair that is read again when its file changes, so that
// a renewed one needs no restart.
type certificate struct {
	certFile, keyFile string

	mu     sync.Mutex
	loaded time.Time // modification time of the file that pair was read from
	pair   *tls.Certificate
}

// config is nil for a sidecar without a certificate: plain HTTP.
func (c *certificate) config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.current}
}

// current serves the last good pair when a renewal is half written.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.certFile)
	if err == nil && c.pair != nil && info.ModTime().Equal(c.loaded) {
		return c.pair, nil
	}
	pair, loadErr := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if loadErr != nil {
		if c.pair != nil {
			return c.pair, nil
		}
		return nil, fmt.Errorf("read the certificate of PAWGATE_SIDECAR_CERT and its key: %w", loadErr)
	}
	c.pair = &pair
	if err == nil {
		c.loaded = info.ModTime()
	}
	return c.pair, nil
}
