// Command newtool adds a tool to a category: the file of its handler, a test
// that calls it, the row in the category's table, and everything that is
// generated from the table. It is what "make tool" runs:
//
//	make tool NAME=weather_today CATEGORY=web VERB=read
//
// The tool answers at once, with an example argument that one replaces. The
// program never overwrites a file, writes nothing when anything about the
// request is wrong, and adds no category.
//
// Exit status: 0 done, 1 failed, 2 asked wrongly.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], ".", generate, os.Stdout, os.Stderr)) }

// usageError is a request that cannot be met as it is.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// run adds one tool to the tree at root. refresh renews what is generated.
func run(args []string, root string, refresh func(root string) error, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("newtool", flag.ContinueOnError)
	set.SetOutput(stderr)
	var r request
	set.StringVar(&r.name, "name", "", "the tool's name, such as weather_today")
	set.StringVar(&r.category, "category", "", "the category it belongs to, such as web")
	set.StringVar(&r.verb, "verb", "", "read, write or destroy")
	if err := set.Parse(args); err != nil {
		return 2
	}
	err := add(r, root, refresh, stdout)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, "make tool:", err)
		return 2
	}
	fmt.Fprintln(stderr, "make tool:", err)
	return 1
}

func add(r request, root string, refresh func(string) error, out io.Writer) error {
	if err := r.check(); err != nil {
		return err
	}
	p, err := prepare(r, root)
	if err != nil {
		return err
	}
	if err := p.write(root); err != nil {
		return err
	}
	fmt.Fprintf(out, "wrote %s\nwrote %s\nadded a row to %s\n", p.handler.name, p.test.name, p.table.name)
	if err := refresh(root); err != nil {
		return fmt.Errorf("the tool is written, but make generate does not pass yet: %w", err)
	}
	fmt.Fprintf(out, "renewed internal/catalog/%s.json and the tables of README.md\n\n", r.category)
	fmt.Fprintf(out, "Next: say in its row what %s does, give it its own arguments, then\n  go test ./%s && make check\n",
		r.name, filepath.ToSlash(filepath.Dir(p.table.name)))
	fmt.Fprintln(out, "The guide is in README.md under \"Adding a tool\".")
	return nil
}

// generate is "make generate" without its summary.
func generate(root string) error {
	cmd := exec.Command("go", "test", "-count=1", "-run", "Fresh", "./internal/catalog", "./internal/checks")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "UPDATE=1")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
