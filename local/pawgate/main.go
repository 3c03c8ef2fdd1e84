// Command pawgate is everything one runs by hand: the local server and its
// stdio shim, the sidecar, and the operator's commands.
//
// The commands are a table (see commands), read by the package flag alone: the
// flags of an operator's command are its argument schema, so there is nothing
// that a command framework would add but its size and its dependencies. Flags
// may stand before, between and after the operands.
//
// An operator's command runs on the local database; with --stack it is sent,
// as the same JSON, to the admin function of a deployment.
//
// Exit status: 0 done, 1 failed, 2 used wrongly, 3 a run that a limit ended.
// Results go to stdout, all else to stderr. Text from outside is shown without control characters, so
// that no agent's name can steer a terminal.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Exit statuses.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitLimit
)

// app is what a command may use of the process around it.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	log            *slog.Logger
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	slog.SetDefault(log)
	status := (&app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, log: log}).run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// usageError is a command line that cannot be understood.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// limitError is a run that ended before its answer.
type limitError struct{ text string }

func (e limitError) Error() string { return e.text }

func usagef(text string, args ...any) error { return usageError{fmt.Sprintf(text, args...)} }

// run runs one command line and gives its exit status.
func (a *app) run(ctx context.Context, args []string) int {
	c, rest, err := find(args)
	if err == nil {
		err = c.run(ctx, a, rest)
	}
	var usage usageError
	var limit limitError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errHelp):
		c.help(a.stdout)
		return exitOK
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(a.stderr, "pawgate:", printable(line))
	}
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &limit):
		return exitLimit
	}
	return exitFailed
}
