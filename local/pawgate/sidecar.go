package main

import (
	"context"
	"fmt"
	"net"

	"pawgate/internal/settings"
	"pawgate/local/server"
	"pawgate/local/sidecar"
)

// sidecarSettings are the sidecar's own, and those that find the private
// database where DATABASE_URL is not set.
type sidecarSettings struct {
	Sidecar sidecar.Config
	Local   server.Settings
}

func sidecarCommands() []command {
	return []command{
		{name: "sidecar", about: "Serve the categories that run local models, for a router elsewhere.",
			detail: "Listens on PAWGATE_SIDECAR_ADDR: on loopback, or anywhere with a certificate\n" +
				"(PAWGATE_SIDECAR_CERT and PAWGATE_SIDECAR_CERT_KEY). Calls need the router's assertion,\n" +
				"checked with PAWGATE_ASSERTION_PUBLIC_KEY. The router finds it by PAWGATE_SIDECAR_URL.\n",
			examples: []string{"sidecar"}, run: runSidecar},
	}
}

func runSidecar(ctx context.Context, a *app, args []string) error {
	if len(args) > 0 {
		return wrongArguments("sidecar", args)
	}
	var s sidecarSettings
	if err := settings.Load(ctx, &s); err != nil {
		return err
	}
	a.logTo(s.Local.LogLevel)
	if err := s.Sidecar.Check(); err != nil { // before the database is started
		return err
	}
	url, leave, err := server.Database(ctx, s.Local, a.log)
	if err != nil {
		return err
	}
	defer leave()
	s.Sidecar.Postgres.URL = url
	return sidecar.Run(ctx, s.Sidecar, a.log, func(addr net.Addr) {
		fmt.Fprintf(a.stdout, "pawgate sidecar listens on %s\n", addr)
	})
}
