package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"pawgate/internal/agentfile"
)

// setRules reads the file of "agent rules" and sends its text.
func setRules(ctx context.Context, a *app, p parsed, r row) error {
	if name, ok := p.args["source"].(string); ok {
		text, err := readText(a.stdin, name)
		if err != nil {
			return err
		}
		p.args["source"] = text
		if text == "" {
			return fmt.Errorf("%s is empty; --clear removes all rules", name)
		}
	}
	return a.perform(ctx, p, r)
}

// readText reads a file that an operator names; "-" is stdin.
func readText(stdin io.Reader, name string) (string, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return "", err // it names the file
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, agentfile.MaxSize+1))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return string(text), nil
}
