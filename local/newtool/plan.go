package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"
)

var (
	//go:embed templates/tool.go.tmpl
	handlerTemplate string
	//go:embed templates/tool_test.go.tmpl
	testTemplate string
)

// file is one file to write, named from the root of the tree.
type file struct {
	name    string
	content []byte
}

// plan is everything that a request writes, made before anything is written.
type plan struct{ handler, test, table file }

// words are what the templates say.
type words struct {
	Package, Tool, Verb string
	Handler, Title      string // weatherToday, WeatherToday
	Receiver            string // "w web"
}

// prepare reads the category and renders the files.
func prepare(r request, root string) (plan, error) {
	dir := filepath.Join("internal", "category", r.category)
	base := filepath.Join(dir, r.file())
	p := plan{handler: file{name: base + ".go"}, test: file{name: base + "_test.go"}, table: file{name: filepath.Join(dir, r.category+".go")}}
	for _, name := range []string{p.handler.name, p.test.name} {
		if _, err := os.Stat(filepath.Join(root, name)); !errors.Is(err, fs.ErrNotExist) {
			return plan{}, usagef("%s exists already and is not overwritten; choose another NAME", name)
		}
	}
	source, err := os.ReadFile(filepath.Join(root, p.table.name))
	if err != nil {
		return plan{}, fmt.Errorf("read the category's table: %w", err)
	}
	pkg, err := parsePackage(filepath.Join(root, dir), r.category, source)
	if err != nil {
		return plan{}, err
	}
	handler, err := pkg.choose(r)
	if err != nil {
		return plan{}, err
	}
	w := words{Package: r.category, Tool: r.name, Verb: r.verb, Handler: handler, Title: title(handler), Receiver: pkg.receiver}
	if p.handler.content, err = render(handlerTemplate, w); err != nil {
		return plan{}, err
	}
	if p.test.content, err = render(testTemplate, w); err != nil {
		return plan{}, err
	}
	row := fmt.Sprintf("tool.%s(%q, %q, %s.%s),", verbs()[r.verb], r.name, about(r), pkg.variable, handler)
	p.table.content, err = pkg.insert(row)
	return p, err
}

// about is a description to start from; an empty one would not assemble.
func about(r request) string {
	text := bytes.ReplaceAll([]byte(r.name), []byte("_"), []byte(" "))
	return title(string(text[:1])) + string(text[1:]) + ", for the subject given."
}

func render(text string, w words) ([]byte, error) {
	t, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, w); err != nil {
		return nil, fmt.Errorf("render template: %w", err)
	}
	formatted, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("format what was rendered: %w", err)
	}
	return formatted, nil
}

// write writes the two new files and then the table, whose row is what makes
// the tool exist. What it made is taken back when a later step fails.
func (p plan) write(root string) error {
	var made []string
	for _, f := range []file{p.handler, p.test} {
		path := filepath.Join(root, f.name)
		if err := create(path, f.content); err != nil {
			remove(made)
			return err
		}
		made = append(made, path)
	}
	if err := replace(filepath.Join(root, p.table.name), p.table.content); err != nil {
		remove(made)
		return err
	}
	return nil
}

// create writes a new file and refuses one that exists.
func create(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		remove([]string{path})
		return fmt.Errorf("write file: %w", err)
	}
	return nil
}

// replace exchanges a file whole, so that a full disk cannot cut the table.
func replace(path string, content []byte) error {
	draft := path + ".new"
	if err := create(draft, content); err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		remove([]string{draft})
		return fmt.Errorf("replace table: %w", err)
	}
	return nil
}

func remove(paths []string) {
	for _, path := range paths {
		_ = os.Remove(path)
	}
}
