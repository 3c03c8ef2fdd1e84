package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"pawgate/internal/operator"
	"pawgate/internal/settings"
	"pawgate/local/listen"
	"pawgate/local/server"
)

// serverCommands are the doors: the local server and the stdio shim.
func serverCommands() []command {
	return []command{
		{name: "serve", about: "Serve MCP over HTTP on this machine, with every category in this process.",
			detail:   "Without DATABASE_URL a private PostgreSQL cluster is started and shared with\nevery other pawgate of this user. The first start makes the agent default and\nshows its key, once. Scheduled tasks, reminders and work for agents are done here\ntoo; their model is PAWGATE_CHAT_URL's.\n",
			examples: []string{"serve"}, run: runServe},
		{name: "mcp-server", usage: "[--agent NAME]", about: "Speak MCP on standard input and output, for Claude Code.",
			detail:   "Acts as agent default of the local cluster, or as the agent named. With\nPAWGATE_URL and PAWGATE_KEY it is a bridge to a deployed router instead.\n",
			examples: []string{"mcp-server", "mcp-server --agent researcher"}, run: runMCPServer},
	}
}

func runServe(ctx context.Context, a *app, args []string) error {
	if len(args) > 0 {
		return wrongArguments("serve", args)
	}
	var s server.Settings
	if err := settings.Load(ctx, &s); err != nil {
		return err
	}
	a.logTo(s.LogLevel)
	// Before the database is started: a busy port is the likelier mistake.
	listener, err := net.Listen("tcp", s.Addr)
	if err != nil {
		return cannotListen("PAWGATE_ADDR", s.Addr, err)
	}
	defer listener.Close()
	addr := listener.Addr().String()
	if len(s.AllowedHosts) == 0 {
		s.AllowedHosts = server.LoopbackHosts(addr)
	}
	local, err := server.Open(ctx, s, a.log)
	if err != nil {
		return err
	}
	defer local.Close()
	welcome(a.stdout, addr, local.FirstKey)
	go maintain(ctx, local, a.log)
	ctx, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() { local.Work(ctx, s, a.log) })
	defer working.Wait() // what is under way is given back before the database is left
	defer stop()
	return listen.Serve(ctx, listener, nil, local.Router)
}

// cannotListen says what is wrong with the address of a setting.
func cannotListen(setting, addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use by another program, or by pawgate already; %s names another address", addr, setting)
	}
	return fmt.Errorf("%s must be an address to listen on, such as 127.0.0.1:8080: %w", setting, err)
}

// welcome tells how to connect.
func welcome(w io.Writer, addr, key string) {
	fmt.Fprintf(w, "pawgate serves MCP at http://%s/mcp\n", addr)
	shown := "$KEY"
	if key != "" {
		fmt.Fprintf(w, "\nThe first key, of agent default, shown this once:\n  %s\n", key)
		shown = key
	}
	program, err := os.Executable()
	if err != nil {
		program = "pawgate"
	}
	program = shellWord(program)
	fmt.Fprintf(w, "\nAdd it to Claude Code, over stdio or over HTTP (one of the two):\n")
	fmt.Fprintf(w, "  claude mcp add pawgate%s -- %s mcp-server\n", carried(), program)
	fmt.Fprintf(w, "  claude mcp add --transport http pawgate http://%s/mcp --header \"Authorization: Bearer %s\"\n", addr, shown)
	if key == "" {
		fmt.Fprintf(w, "\nA new key: %s key create default --scope \"*\"\n", program)
	}
}

// carried are the settings of this server that the shim must be started with
// to find the same database.
func carried() string {
	var flags strings.Builder
	for _, name := range []string{"PAWGATE_DATA", "DATABASE_URL"} {
		switch value := os.Getenv(name); {
		case value == "":
		case name == "DATABASE_URL": // it may hold a password
			fmt.Fprintf(&flags, " -e %s=\"$%s\"", name, name)
		default:
			fmt.Fprintf(&flags, " -e %s=%s", name, shellWord(value))
		}
	}
	return flags.String()
}

// plainWord needs no quotes in any shell.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+=,-]+$`)

// shellWord is a text as one word of a command line to be pasted.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// maintainEvery is how often what is of no use any more is removed.
const maintainEvery = time.Hour

// maintain keeps the database tidy while the server runs.
func maintain(ctx context.Context, local *server.Local, log *slog.Logger) {
	ticker := time.NewTicker(maintainEvery)
	defer ticker.Stop()
	for {
		if _, err := operator.Maintain(ctx, local.DB, time.Now()); err != nil && ctx.Err() == nil {
			log.Warn("maintain database", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// logTo sets the level of the log on stderr.
func (a *app) logTo(level slog.Level) {
	a.log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
	slog.SetDefault(a.log)
}

func wrongArguments(command string, args []string) error {
	for _, arg := range args {
		if arg == "-h" || arg == "--help" || arg == "-help" {
			return errHelp
		}
	}
	return usagef("%s takes no %q; pawgate help %s tells more", command, args[0], command)
}
