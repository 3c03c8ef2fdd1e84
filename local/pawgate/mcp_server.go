package main

import (
	"context"
	"flag"
	"net/http"

	"pawgate/internal/router"
	"pawgate/internal/settings"
	"pawgate/local/server"
	"pawgate/local/stdio"
)

// bridgeSettings make the shim a bridge to a deployed router.
type bridgeSettings struct {
	URL string `envconfig:"PAWGATE_URL" desc:"deployed router that mcp-server bridges to, as https://HOST/mcp"`
	Key string `envconfig:"PAWGATE_KEY" desc:"key for PAWGATE_URL"`
}

func runMCPServer(ctx context.Context, a *app, args []string) error {
	set := flag.NewFlagSet("mcp-server", flag.ContinueOnError)
	agent := set.String("agent", "default", "")
	if err := parseFlags(set, args); err != nil {
		return err
	}
	var bridge bridgeSettings
	if err := settings.Load(ctx, &bridge); err != nil {
		return err
	}
	options := stdio.Options{In: a.stdin, Out: a.stdout, Log: a.log}
	if bridge.URL != "" {
		options.URL, options.Key = bridge.URL, bridge.Key
		return stdio.Run(ctx, options)
	}
	return a.serveStdio(ctx, options, *agent)
}

// serveStdio is the shim with the router in this process. Who runs it owns the
// database, so it needs no key: it acts as the agent named.
func (a *app) serveStdio(ctx context.Context, options stdio.Options, agent string) error {
	var s server.Settings
	if err := settings.Load(ctx, &s); err != nil {
		return err
	}
	a.logTo(s.LogLevel)
	options.Log = a.log
	local, err := server.Open(ctx, s, a.log)
	if err != nil {
		return err
	}
	defer local.Close()
	if err := local.CheckAgent(ctx, agent); err != nil {
		return err
	}
	if local.FirstKey != "" {
		a.log.Info("the first agent was made; \"pawgate key create default\" makes a key for HTTP clients")
	}
	door := router.NewLocalDoor(agent)
	options.Transport = stdio.InProcess(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local.Router.ServeHTTP(w, r.WithContext(door.Open(r.Context())))
	}))
	return stdio.Run(ctx, options)
}
