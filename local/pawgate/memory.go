package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"pawgate/internal/category/memory"
	"pawgate/internal/plural"
	"pawgate/internal/tool"
)

func memoryRows() []row {
	file := operand{word: "FILE", argument: "file"}
	maybeFile := operand{word: "FILE", argument: "file", optional: true}
	owner := operand{word: "OWNER", argument: "owner_id"}
	return []row{
		{name: "memory export", operands: []operand{anAgent, maybeFile}, run: exportMemories, filled: []string{"after"},
			local:    []tool.Property{localText("file", "Where to; standard output if left out")},
			examples: []string{"memory export clerk clerk.jsonl", "--stack prod memory export clerk > clerk.jsonl"}},
		{name: "memory import", operands: []operand{anAgent, file}, run: importMemories, filled: []string{"lines"},
			local: []tool.Property{
				localText("file", "JSON Lines, a DuDuClaw memory database, or - for JSON Lines on standard input"),
				localText("owner", "Of a DuDuClaw database: only this owner's rows; all owners' if left out"),
			},
			examples: []string{"memory import clerk clerk.jsonl", "memory import clerk memory.db --owner dudu --dry-run"}},
		{name: "memory backfill", operands: []operand{anAgent}, run: backfillMemories, filled: []string{"after"},
			examples: []string{"memory backfill clerk", "--stack prod memory backfill clerk"}},
		{name: "memory limits", operands: []operand{anAgent}, examples: []string{
			"memory limits clerk", "memory limits clerk --max-per-day 500", "memory limits clerk --clear"}},
		{name: "memory share", operands: []operand{owner, anAgent}, examples: []string{
			"memory share clerk analyst --tag public --until 90d", "memory share clerk analyst"}},
		{name: "memory unshare", operands: []operand{owner, anAgent}, examples: []string{"memory unshare clerk analyst"}},
		{name: "memory shares", operands: []operand{maybeAgent}, examples: []string{"memory shares", "memory shares clerk --json"},
			view: view{list: "shares", empty: "no agent reads another's memories", columns: []column{
				{"OWNER", "owner_id"}, {"READER", "agent_id"}, {"TAGS", "tags"}, {"GRANTED BY", "granted_by"}, {"GRANTED", "granted_at"}, {"UNTIL", "until"}, {"EXPIRED", "expired"},
			}}},
	}
}

func localText(name, about string) tool.Property {
	return tool.Property{Name: name, Schema: &tool.Schema{Types: []string{"string"}, Description: about}}
}

// ask runs the row's command and reads its result.
func ask[R any](ctx context.Context, run runner, r row, args map[string]any) (R, error) {
	var result R
	raw, err := run(ctx, r.name, args)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, fmt.Errorf("read result: %w", err)
	}
	return result, nil
}

// exportMemories writes part after part. The file gets its name when it is
// whole, so that half an export is not taken for one.
func exportMemories(ctx context.Context, a *app, p parsed, r row) error {
	name, _ := p.args["file"].(string)
	delete(p.args, "file")
	run, leave, err := a.runner(ctx, p.stack)
	if err != nil {
		return err
	}
	defer leave()
	write := func(w io.Writer) error {
		told := time.Now()
		done, err := memory.WritePages(w, func(e memory.Exported) {
			if time.Since(told) > time.Second {
				told = time.Now()
				a.progress("%s so far", plural.Of(e.Memories, "memory", "memories"))
			}
		}, func(after int32) (memory.Page, error) {
			p.args["after"] = after
			return ask[memory.Page](ctx, run, r, p.args)
		})
		if err == nil {
			a.progress("%s and %s of %v, all", plural.Of(done.Memories, "memory", "memories"), plural.Of(done.Aliases, "alias", "aliases"), p.args["agent_id"])
		}
		return err
	}
	if name == "" || name == "-" {
		return write(a.stdout)
	}
	return writeWhole(name, write)
}

// writeWhole writes a file that only its owner may read, all or nothing.
func writeWhole(name string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return usagef("%s is a folder; name a file in it", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if failed := new(fs.PathError); errors.As(err, &failed) {
		return fmt.Errorf("cannot write %s: %w", name, failed.Err) // the name of the temporary file helps nobody
	} else if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// importPart is how many bytes of lines one command carries; a function takes
// 6 MB at most, in which a line may be written longer.
const importPart = 2 << 20

// importMemories sends the lines of a file part after part, and tells what
// became of them.
func importMemories(ctx context.Context, a *app, p parsed, r row) error {
	name, _ := p.args["file"].(string)
	owner, _ := p.args["owner"].(string)
	delete(p.args, "file")
	delete(p.args, "owner")
	run, leave, err := a.runner(ctx, p.stack)
	if err != nil {
		return err
	}
	defer leave()
	dry, _ := p.args["dry_run"].(bool)
	in := &memoryImport{app: a, dry: dry, done: memory.Imported{Skipped: map[string]int{}}, send: func(lines string) (memory.Imported, error) {
		p.args["lines"] = lines
		return ask[memory.Imported](ctx, run, r, p.args)
	}}
	if err := in.read(name, owner); err != nil && in.done.Read > 0 {
		return errors.Join(err, fmt.Errorf("%d were read; importing the file again goes on", in.done.Read))
	} else if err != nil {
		return err
	}
	result, err := in.result()
	if err != nil {
		return fmt.Errorf("show result: %w", err)
	}
	if err := a.show(result, p.json, view{}); err != nil {
		return err
	}
	if d := in.done; d.Read > 0 && d.Stored+d.Known+d.Aliases == 0 {
		return errors.New("nothing was taken: see what was skipped, and why")
	}
	return nil
}

// memoryImport gathers lines into parts and adds up what became of them.
type memoryImport struct {
	app  *app
	send func(lines string) (memory.Imported, error)
	part bytes.Buffer
	done memory.Imported
	dry  bool // nothing is kept, so nothing may be called stored
}

// result is what became of the lines, under a name that is true of them.
func (in *memoryImport) result() ([]byte, error) {
	if !in.dry {
		return json.Marshal(in.done)
	}
	return json.Marshal(struct {
		DryRun     bool `json:"dry_run"`
		Read       int  `json:"read"`
		WouldStore int  `json:"would_store"`
		Known      int  `json:"known"`
		Aliases    int  `json:"aliases"`
		Skipped    any  `json:"skipped"`
	}{true, in.done.Read, in.done.Stored, in.done.Known, in.done.Aliases, in.done.Skipped})
}

func (in *memoryImport) read(name, owner string) error {
	source := in.app.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err // it names the file
		}
		defer f.Close()
		source = f
	}
	lines := bufio.NewReaderSize(source, 1<<16)
	if head, _ := lines.Peek(len(sqliteHeader)); string(head) == sqliteHeader {
		if name == "-" {
			return usagef("a DuDuClaw database must be a file, not standard input")
		}
		return in.database(name, owner)
	}
	if owner != "" {
		return usagef("--owner is for a DuDuClaw database; %s is none", name)
	}
	for {
		line, err := memory.ReadLine(lines)
		if errors.Is(err, io.EOF) {
			return in.flush()
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 { // no command can carry it as it is
			line = []byte("no text")
		}
		if err := in.add(line); err != nil {
			return err
		}
	}
}

// sqliteHeader begins every SQLite database (SQLite file format, section 1.3).
const sqliteHeader = "SQLite format 3\x00"

func (in *memoryImport) database(name, owner string) error {
	converted, err := memory.ReadDuDuClaw(name, owner, in.add)
	if err != nil {
		return err
	}
	if err := in.flush(); err != nil {
		return err
	}
	in.done.Read = converted.Read
	for reason, n := range converted.Skipped {
		in.done.Skipped[reason] += n
	}
	return nil
}

func (in *memoryImport) add(line []byte) error {
	if in.part.Len() > 0 && in.part.Len()+len(line) > importPart {
		if err := in.flush(); err != nil {
			return err
		}
	}
	in.part.Write(line)
	in.part.WriteByte('\n')
	return nil
}

func (in *memoryImport) flush() error {
	if in.part.Len() == 0 {
		return nil
	}
	part, err := in.send(in.part.String())
	if err != nil {
		return err
	}
	in.part.Reset()
	in.done.Read += part.Read
	in.done.Stored += part.Stored
	in.done.Known += part.Known
	in.done.Aliases += part.Aliases
	for reason, n := range part.Skipped {
		in.done.Skipped[reason] += n
	}
	stored := "stored"
	if in.dry {
		stored = "would be stored"
	}
	in.app.progress("%d read, %d %s, %d known before", in.done.Read, in.done.Stored, stored, in.done.Known)
	return nil
}

// backfillMemories asks for part after part until nothing is left.
func backfillMemories(ctx context.Context, a *app, p parsed, r row) error {
	run, leave, err := a.runner(ctx, p.stack)
	if err != nil {
		return err
	}
	defer leave()
	var total memory.Backfilled
	for {
		p.args["after"] = total.Next
		part, err := ask[memory.Backfilled](ctx, run, r, p.args)
		if err != nil && total.Done > 0 {
			return errors.Join(err, fmt.Errorf("%d were done; the same command goes on", total.Done))
		} else if err != nil {
			return err
		}
		total.Done, total.Missing, total.Next = total.Done+part.Done, part.Missing, part.Next
		a.progress("%d done, %d to do", total.Done, total.Missing)
		if part.Done == 0 || part.Missing == 0 {
			break
		}
	}
	result, err := json.Marshal(map[string]int{"done": total.Done, "missing": total.Missing})
	if err != nil {
		return fmt.Errorf("show result: %w", err)
	}
	return a.show(result, p.json, view{})
}

// progress tells on stderr how far a long command has come.
func (a *app) progress(text string, args ...any) {
	fmt.Fprintf(a.stderr, "pawgate: "+text+"\n", args...)
}
