package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"pawgate/internal/near"
)

// command is one row of the command line.
type command struct {
	name     string // one to three words, such as "agent create"
	usage    string // operands and flags after the name
	about    string // one sentence
	detail   string // flags and whatever else is worth saying, ready to print
	examples []string
	run      func(ctx context.Context, a *app, args []string) error
}

// errHelp is a command that was asked for its help text.
var errHelp = errors.New("help wanted")

// commands is the table, in the order of the help text.
func commands() []command {
	return slices.Concat(
		serverCommands(),
		runCommands(),
		sidecarCommands(),
		operatorCommands(),
		costCommands(),
		skillCommands(),
		licenceCommands(),
		[]command{
			{name: "help", usage: "[COMMAND | settings]", about: "Show the commands, the settings, or all of one command.", run: runHelp},
			{name: "version", about: "Show the version.", run: runVersion},
		})
}

// find gives the command that a command line names, and its arguments. Flags
// before the name are the command's too.
func find(args []string) (command, []string, error) {
	flags, words := leadingFlags(args)
	switch {
	case len(words) == 0 || isHelp(words[0]):
		words = []string{"help"}
	case words[0] == "--version" || words[0] == "-version":
		words = []string{"version"}
	case len(words) == 2 && isHelp(words[1]) && len(group(words[0])) > 0:
		words = []string{"help", words[0]}
	}
	if words[0] == "audit" && (len(words) == 1 || strings.HasPrefix(words[1], "-")) {
		words = slices.Insert(words, 1, "list") // what one wants of it nearly always
	}
	for _, n := range []int{3, 2, 1} {
		if len(words) < n {
			continue
		}
		name := strings.Join(words[:n], " ")
		name = cmp.Or(aliases[name], name)
		for _, c := range commands() {
			if c.name == name {
				return c, append(flags, words[n:]...), nil
			}
		}
	}
	return command{}, nil, unknown(words)
}

func isHelp(word string) bool { return word == "-h" || word == "-help" || word == "--help" }

// leadingFlags splits off what stands before the command's name: --json and
// --stack, the flags that every operator's command has.
func leadingFlags(args []string) (flags, rest []string) {
	for len(args) > 0 {
		name := strings.TrimLeft(args[0], "-")
		switch {
		case name == args[0]:
			return flags, args
		case name == "stack" && len(args) > 1:
			flags, args = append(flags, args[:2]...), args[2:]
		case name == "json" || strings.HasPrefix(name, "stack="):
			flags, args = append(flags, args[0]), args[1:]
		default:
			return flags, args
		}
	}
	return flags, args
}

// group is what may follow the first word of several commands.
func group(first string) (rest []string) {
	for _, c := range commands() {
		if word, more, ok := strings.Cut(c.name, " "); ok && word == first {
			rest = append(rest, more)
		}
	}
	return rest
}

func unknown(words []string) error {
	if rest := group(words[0]); len(rest) > 0 {
		text := fmt.Sprintf("%s takes one of: %s", words[0], strings.Join(rest, ", "))
		if len(words) > 1 {
			text += near.DidYouMean(words[1], rest)
		}
		return usagef("%s; pawgate help %s tells more", text, words[0])
	}
	if flag, ok := strings.CutPrefix(words[0], "-"); ok {
		if strings.TrimPrefix(flag, "-") == "stack" {
			return usagef("--stack needs the name of a deployment and a command, such as: pawgate --stack prod agent list")
		}
		return usagef("%s stands before no command; pawgate help lists them", words[0])
	}
	var firsts []string
	for _, c := range commands() {
		first, _, _ := strings.Cut(c.name, " ")
		firsts = append(firsts, first)
	}
	return usagef("unknown command %q%s; pawgate help lists them", words[0], near.DidYouMean(words[0], firsts))
}

// help prints everything about one command.
func (c command) help(w io.Writer) {
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n", c.about, strings.TrimRight("pawgate "+c.name+" "+c.usage, " "))
	if c.detail != "" {
		fmt.Fprintf(w, "\n%s", c.detail)
	}
	if len(c.examples) > 0 {
		fmt.Fprintf(w, "\nExamples:\n")
		for _, e := range c.examples {
			fmt.Fprintf(w, "  pawgate %s\n", e)
		}
	}
}
