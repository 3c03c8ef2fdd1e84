// Package listen answers HTTP on a listener for as long as a command runs:
// with limits against clients that send slowly or keep connections open for
// nothing, and with an end that lets running calls finish.
package listen

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = time.Minute
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	drainTimeout  = 15 * time.Second
)

// Serve answers until ctx ends, then waits for running calls, 15 s at most:
// calls that ignore their deadline do not keep the host up. Without security
// it speaks plain HTTP. It fails when the listener does.
func Serve(ctx context.Context, listener net.Listener, security *tls.Config, handler http.Handler) error {
	srv := &http.Server{
		Handler:           handler,
		TLSConfig:         security,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
	}
	failed := make(chan error, 1)
	go func() {
		if security == nil {
			failed <- srv.Serve(listener)
			return
		}
		failed <- srv.ServeTLS(listener, "", "")
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := srv.Shutdown(drain); err != nil {
		_ = srv.Close()
	}
	return nil
}
