package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"pawgate/internal/router"
	"pawgate/internal/settings"
	"pawgate/local/server"
)

// configs are the structs whose fields are the settings that help lists.
func configs() []any {
	return []any{server.Settings{}, bridgeSettings{}, stackSettings{}, sidecarSettings{}.Sidecar, signingSettings{}}
}

func runHelp(_ context.Context, a *app, args []string) error {
	switch {
	case len(args) == 0:
		overview(a.stdout)
		return nil
	case len(args) == 1 && args[0] == "settings":
		helpSettings(a.stdout)
		return nil
	}
	c, rest, err := find(args)
	switch {
	case err != nil && len(args) == 1:
		return helpGroup(a.stdout, args[0])
	case err != nil:
		return err
	case len(rest) > 0:
		return usagef("help takes the name of one command, such as: pawgate help agent create")
	}
	c.help(a.stdout)
	return nil
}

func overview(w io.Writer) {
	fmt.Fprint(w, "pawgate serves an agent's tools over MCP, behind one gate.\n\nCommands:\n")
	list(w, func(command) bool { return true })
	fmt.Fprint(w, "\nOperator's commands take --json for the bare result and --stack NAME to run on a\ndeployment. pawgate help COMMAND tells more, pawgate help settings what the\nenvironment sets.\n")
}

func helpSettings(w io.Writer) {
	fmt.Fprint(w, "Settings, from the environment. A value may be a reference: env://NAME,\nfile://PATH, secretsmanager://ID#KEY or ssm://NAME.\n\n")
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, s := range settings.List(configs()...) {
		about := s.About
		if s.Default != "" {
			about += " (" + s.Default + ")"
		}
		fmt.Fprintf(t, "  %s\t%s\n", s.Name, about)
	}
	t.Flush()
}

// helpGroup shows the commands that start with a word.
func helpGroup(w io.Writer, word string) error {
	in := func(c command) bool { return strings.HasPrefix(c.name, word+" ") }
	for _, c := range commands() {
		if in(c) {
			list(w, in)
			return nil
		}
	}
	return unknown([]string{word})
}

func list(w io.Writer, in func(command) bool) {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, c := range commands() {
		if in(c) {
			fmt.Fprintf(t, "  %s\t%s\n", c.name, c.about)
		}
	}
	t.Flush()
}

func runVersion(_ context.Context, a *app, args []string) error {
	if len(args) > 0 {
		return usagef("version takes nothing")
	}
	fmt.Fprintf(a.stdout, "pawgate %s%s %s %s/%s\n", router.Version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// revision is the commit that the program was built from, where the build
// recorded it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return " (" + s.Value[:12] + ")"
		}
	}
	return ""
}
