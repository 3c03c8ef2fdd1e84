package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

func soulRows() []row {
	return []row{
		{name: "soul show", operands: []operand{anAgent}, run: bareMember("content"), examples: []string{"soul show clerk", "soul show clerk --version 2 > SOUL.md"}},
		{name: "soul log", operands: []operand{anAgent}, examples: []string{"soul log clerk"},
			view: view{list: "versions", empty: "no soul yet", columns: []column{
				{"VERSION", "version"}, {"BYTES", "bytes"}, {"BY", "written_by"}, {"AT", "written_at"}, {"NOTE", "note"},
			}}},
		{name: "soul diff", operands: []operand{anAgent}, run: bareMember("diff"), examples: []string{"soul diff clerk", "soul diff clerk --from 2 --to 5"}},
		{name: "soul set", operands: []operand{anAgent, {word: "FILE", argument: "content"}}, run: setSoul, examples: []string{
			"soul set clerk SOUL.md", `soul set clerk - --reason "shorter" < SOUL.md`}, view: view{hide: []string{"diff"}}},
		{name: "soul rollback", operands: []operand{anAgent, {word: "VERSION", argument: "version"}}, examples: []string{
			"soul rollback clerk 2"}, view: view{hide: []string{"diff"}}},
	}
}

// bareMember prints one text of the result as it is.
func bareMember(name string) func(context.Context, *app, parsed, row) error {
	return func(ctx context.Context, a *app, p parsed, r row) error {
		if p.json {
			return a.perform(ctx, p, r)
		}
		run, leave, err := a.runner(ctx, p.stack)
		if err != nil {
			return err
		}
		defer leave()
		result, err := run(ctx, r.name, p.args)
		if err != nil {
			return err
		}
		var members map[string]json.RawMessage
		var text string
		if err := json.Unmarshal(result, &members); err != nil {
			return fmt.Errorf("show result: %w", err)
		}
		if err := json.Unmarshal(members[name], &text); err != nil {
			return fmt.Errorf("show result: %w", err)
		}
		_, err = io.WriteString(a.stdout, text)
		return err
	}
}

// setSoul sends the text of a file; "-" is stdin.
func setSoul(ctx context.Context, a *app, p parsed, r row) error {
	name, _ := p.args["content"].(string)
	text, err := readUTF8(a.stdin, name)
	if err != nil {
		return err
	}
	p.args["content"] = text
	return a.perform(ctx, p, r)
}
